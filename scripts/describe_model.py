"""Show what a model of your own would be measured as, before a GPU is touched: its parameters, what
goes in, what the loss is, the blocks and ranges that were found, a step's operations and least
memory, and what could not be found out.

The model's file is code: it is imported and runs as you. Nothing is downloaded.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from stepscope.config.flags import CONFIG, mapping, positive
from stepscope.model.own.reference import HUGGING_FACE, ModelError
from stepscope.yaml_files import read_yaml, unreadable


def main() -> None:
    given = parser().parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch is imported
    from stepscope.model.own import assembled

    try:
        reference, keys = chosen(given)
        found = assembled.describe(reference, keys, given.context, given.batch)
    except ModelError as error:
        sys.exit(f"error: {error}")
    except MemoryError:
        sys.exit(f"error: {reference}: out of memory on the CPU; describe a smaller one")
    print(
        json.dumps(found, indent=2)
        if given.json
        else "\n".join(lines(found, given.context, given.batch))
    )


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument(
        "model", nargs="?", help="FILE.py:FUNCTION, or hf:NAME of an architecture of transformers"
    )
    flags.add_argument(
        "--keys", default="{}", metavar="JSON", help="what the function takes beside the context"
    )
    flags.add_argument(
        "--models", metavar="NAME", help="instead: a name under models in the configuration"
    )
    flags.add_argument(
        "--config", type=Path, default=CONFIG, help="that configuration (default: config.yaml)"
    )
    flags.add_argument(
        "--context", type=positive, default=128, help="sequence length in tokens (default: 128)"
    )
    flags.add_argument("--batch", type=positive, default=4, help="sequences (default: 4)")
    flags.add_argument("--json", action="store_true", help="print it as a record holds it")
    return flags


def chosen(given: argparse.Namespace) -> tuple[str, dict]:
    """(reference, keys) of the flags. Raises ModelError where they name no model."""
    if (given.model is None) == (given.models is None):
        raise ModelError("give FILE.py:FUNCTION or hf:NAME, or else --models NAME")
    if given.model is not None:
        try:
            return given.model, mapping(given.keys)
        except argparse.ArgumentTypeError as error:
            raise ModelError(f"--keys: {error}") from None
    return of_configuration(given.config, given.models)


def of_configuration(path: Path, name: str) -> tuple[str, dict]:
    """(reference, keys) of a name under `models`. Raises ModelError if it is not there."""
    if wrong := unreadable(path):
        raise ModelError(wrong.splitlines()[0])
    models = read_yaml(path).get("models") or {}
    if name not in models:
        raise ModelError(
            f"{path} has no model {name!r}; under models there are: {', '.join(models) or 'none'}"
        )
    keys = dict(models[name])
    if "hf" in keys:
        return f"{HUGGING_FACE}{keys.pop('hf')}", keys
    if "build" not in keys:
        raise ModelError(f"{path}: models.{name} has neither build nor hf")
    return keys.pop("build"), keys


def lines(found: dict, context: int, batch: int) -> list[str]:
    """The description in words, a line each."""
    blocks, operations, count = found["blocks"], found["flops"], found["parameters"]
    trainable, attention = found["trainable_parameters"], found["attention"]
    gradients = found["trained_bytes"]  # of which AdamW's two moments are twice as many
    said: list[str] = []

    def say(name: str, text: str) -> None:
        said.append(f"{name:11} {text}")

    keys = "".join(f" {key}={value}" for key, value in found["keys"].items())
    say("model", found["reference"] + keys)
    say("class", f"{found['class']}, {found['dtype']}")
    some = f", of which {trainable:,} are trained" if trainable != count else ""
    say("parameters", f"{count:,}{some}")
    if attention:
        say("attention", f"{attention} (transformers: config._attn_implementation)")
    say("inputs", f"{found['inputs']}; batch {batch}, context {context}")
    say("loss", found["loss"])
    say("blocks", "{count} x {class} in {path}".format(**blocks) if blocks else "none")
    say("ranges", ", ".join(found["ranges"]) or "none")
    counted = "not counted"
    if operations:
        whole, forward = _giga(operations["counter"]), _giga(operations["forward"])
        counted = f"{whole} counted by torch, {forward} of them forward"
    say("operations", counted)
    say(
        "memory",
        f"{_mebi(found['parameters_bytes'])} parameters, {_mebi(gradients)} gradients,"
        f" {_mebi(2 * gradients)} optimizer,"
        f" {_mebi(found['buffers_bytes'])} buffers; activations are measured",
    )
    for line in found["unknown"]:
        say("unknown", line)
    return said


def _giga(operations: int) -> str:
    return f"{operations / 1e9:,.3f} GFLOP"


def _mebi(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


if __name__ == "__main__":
    main()
