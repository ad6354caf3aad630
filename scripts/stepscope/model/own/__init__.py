"""Models that the user brings: a file with a function that builds one. That of an architecture of
Hugging Face transformers is models/hf.py.

A user's file is code: it is imported and runs as the user who measures it. What stands here needs
no torch until a model is built, so that the plan can read references and find the files behind
them.
"""

from stepscope.model.own.reference import (
    HUGGING_FACE,
    ModelError,
    Reference,
    Unsupported,
    parse,
)

__all__ = [
    "HUGGING_FACE",
    "ModelError",
    "Reference",
    "Unsupported",
    "adapt",
    "build",
    "describe",
    "parse",
]


def build(reference: str, keys: dict, context: int, batch: int, device, seed: int):
    """The model of a reference as an OwnModel: random weights in fp32 on `device`, seeded; see
    own.assembled.build."""
    from stepscope.model.own import assembled

    return assembled.build(reference, keys, context, batch, device, seed)


def describe(reference: str, keys: dict, context: int, batch: int, seed: int = 0) -> dict:
    """What would be built and run, found without a GPU; see own.assembled.describe."""
    from stepscope.model.own import assembled

    return assembled.describe(reference, keys, context, batch, seed)


def adapt(own, spec: dict) -> None:
    """Make the model run as a spec's options say. Raises Unsupported where it cannot; see
    own.adapting.adapt."""
    from stepscope.model.own import adapting

    adapting.adapt(own, spec)
