"""An architecture of the installed transformers, with random weights; nothing is downloaded.

    models: {llama: {hf: llama, num_hidden_layers: 8}}

is this file's build("llama", num_hidden_layers=8).
"""

import difflib
import functools
import inspect
import sys

import torch
import transformers
from torch import nn


def build(
    context: int,
    name: str,
    dtype: str = "float32",
    attn_implementation: str | None = None,
    **keys: object,
) -> nn.Module:
    """name: an architecture, a folder with a config.json, or a repository in Hugging Face's cache.
    dtype: of its weights, whatever its configuration says, which is how they are stored. keys: in
    place of what the configuration has. Raises ValueError for keys that it does not have."""
    config = _configuration(name, keys)
    if attn_implementation:
        config._attn_implementation = attn_implementation
    longest = getattr(config, "max_position_embeddings", None)
    if isinstance(longest, int) and longest < context:
        raise ValueError(
            f"max_position_embeddings is {longest}, less than the context of {context}; add the key"
            f" max_position_embeddings: {context}"
        )
    module = _class(config)(config)
    # Complex tables, and those beside parameters that have the type already, stay.
    wanted = getattr(torch, dtype)
    if any(each.dtype != wanted for each in module.parameters()):
        for each in (*module.parameters(), *module.buffers()):
            if each.is_floating_point():
                each.data = each.data.to(wanted)
    return module


def _configuration(name: str, keys: dict[str, object]):
    """The configuration with the keys in place of its values."""
    if name in transformers.CONFIG_MAPPING:
        make = functools.partial(transformers.AutoConfig.for_model, name)
    else:
        make = functools.partial(_of_files, name)
    plain = make()
    taken = inspect.signature(type(plain).__init__).parameters
    unknown = [key for key in keys if not hasattr(plain, key) and key not in taken]
    # Some are read by the model alone, with another value where they are not there.
    source = inspect.getsource(sys.modules[_class(plain).__module__]) if unknown else ""
    for key in unknown:
        if f'getattr(config, "{key}"' not in source:
            close = difflib.get_close_matches(key, plain.to_dict(), n=1)
            remedy = f"did you mean {close[0]!r}?" if close else "remove it"
            raise ValueError(f"{type(plain).__name__} has no key {key!r}; {remedy}")
    return make(**keys)


def _of_files(name: str, **keys: object):
    """The configuration of a folder, or of a repository in Hugging Face's cache."""
    try:
        return transformers.AutoConfig.from_pretrained(
            name, local_files_only=True, trust_remote_code=False, **keys
        )
    except OSError as error:
        raise ValueError(
            f"there is no folder {name} with a config.json, no architecture of that name in the"
            " installed transformers, and no such repository in Hugging Face's cache; nothing is"
            " downloaded: give a folder, or an architecture with its keys, as hf: qwen3"
        ) from error


def _class(config) -> type[nn.Module]:
    """The class that the configuration names, else the architecture's language model."""
    for name in config.architectures or []:
        if hasattr(transformers, name):
            return getattr(transformers, name)
    mapping = transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    if type(config) not in mapping:
        raise ValueError(
            f"transformers has no causal language model of {config.model_type}; build it in a file"
            " of your own, with make_batch and loss"
        )
    # Of some architectures a pair of classes, the usual one first.
    found = mapping[type(config)]
    return found[0] if isinstance(found, tuple) else found
