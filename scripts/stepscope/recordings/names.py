"""What people call the phases of a training step, and names that differ only in a number.

A name is taken for a phase if each of its words is one: "forward pass", "Forward_Pass",
"loss.backward()" and "Optimizer.step#AdamW.step", but not "attention forward", which is a part of
one.
"""

import re

LONGEST = 200  # characters: no longer name is looked at

# The first that has a word of the name decides.
_MEANINGS: tuple[tuple[str, frozenset[str]], ...] = (
    ("", frozenset({"zero", "zerograd"})),
    (
        "optimizer",
        frozenset(
            {
                "optimizer",
                "optimiser",
                "optim",
                "opt",
                "adam",
                "adamw",
                "sgd",
                "lion",
                "lamb",
                "muon",
                "update",
            }
        ),
    ),
    ("backward", frozenset({"backward", "bwd", "backprop", "backpropagation"})),
    ("inference", frozenset({"inference", "infer"})),
    ("forward", frozenset({"forward", "fwd"})),
    ("loss", frozenset({"loss", "criterion", "entropy"})),
    ("step", frozenset({"step", "iteration", "iter", "batch"})),
)
# Words that say nothing beside those.
_BESIDE = frozenset(
    [
        "a", "all", "and", "call", "compute", "cross", "do", "full", "grad", "grads", "gradients", "main", "model",
        "my", "net", "network", "of", "parameter", "parameters", "params", "pass", "phase", "profiler", "run",
        "steps", "the", "torch", "total", "train", "trainer", "training", "weight", "weights", "whole", "with",
    ]
)  # fmt: skip
_KNOWN = _BESIDE.union(*(words for _, words in _MEANINGS))
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# A number by itself, or behind a word that counts: "iteration 3", "layers.3.attention", "block3";
# not "fp16", "3x3".
_NUMBERS = re.compile(
    r"(?i)(?<![a-z0-9])\d{1,12}(?![a-z0-9])"
    r"|(?<![a-z])(layer|block|iter|iteration|step|batch|microbatch|epoch|stage|head|expert)\d{1,12}(?![a-z0-9])"
)


def words(name: str) -> list[str]:
    """The words of a name in lower case, numbers included; `crossEntropy_2` is cross, entropy,
    2."""
    return [word.lower() for word in _WORD.findall(name[:LONGEST].replace("AdamW", "Adamw"))]


def meaning(name: str) -> str | None:
    """Which phase a name means, "" for what is between phases, None for a part of one or anything
    else."""
    if len(name) > LONGEST:
        return None
    found = words(name)
    plain = {word for word in found if not word.isdigit()}
    if not plain or not plain <= _KNOWN:
        return None
    if plain == {"batch"} and len(plain) == len(found):
        return None  # "batch" without a number is as often the loading of one
    return next((phase for phase, known in _MEANINGS if plain & known), None)


def family(name: str) -> str:
    """The name with `*` for each number that counts: "layers.3.attention" is of
    "layers.*.attention"."""
    if len(name) > LONGEST:
        return name
    return _NUMBERS.sub(lambda found: (found[1] or "") + "*", name)
