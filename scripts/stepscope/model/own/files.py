"""The file that a model of one's own is made of. Standard library only."""

from pathlib import Path

from stepscope.model.own.reference import ModelError, Reference, parse


def file_of(reference: str) -> Path | None:
    """The file of a model or a step, or the config.json of an architecture that has one here.

    Raises ModelError for a file that is not there.
    """
    parsed = parse(reference)
    return parsed.existing_file() if parsed.file else _config_of(parsed)


def _config_of(parsed: Reference) -> Path | None:
    """The config.json of an architecture: in its folder, or in Hugging Face's cache. Raises
    ModelError for a repository, `owner/name`, that is in neither."""
    if parsed.folder:
        return parsed.folder / "config.json"
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(parsed.name, "config.json")
    except HFValidationError:
        return None
    if isinstance(found, str):
        return Path(found)
    if "/" in parsed.name:
        raise ModelError(
            f"{parsed.text} is not in Hugging Face's cache, and nothing is downloaded; give a"
            " folder with a config.json, or an architecture with its keys, as hf: qwen3"
        )
    return None
