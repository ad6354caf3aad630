"""What people call the phases of a training step, and names that differ only in a number.

A name is taken for a phase if a library gives it to one, or if each of its words is one: "forward
pass", "Forward_Pass" and "loss.backward()", but not "attention forward", which is a part of one,
nor "forward_backward", which is two of them.
"""

import re
from functools import lru_cache

LONGEST = 200  # characters: no longer name is looked at

# Names that libraries give to their ranges, before all words: the first that fits decides. What a
# wrapped module calls its own forward is one only where no other of them is around it, which is not
# decided here.
_LIBRARIES: tuple[tuple[str | None, str], ...] = (
    # torch.optim, and every class derived from its own, Apex's and bitsandbytes' too
    ("optimizer", r"^Optimizer\.step#"),
    ("", r"^Optimizer\.zero_grad#"),
    # torch.nn.parallel and torch.distributed.fsdp
    ("forward", r"^(Distributed|FullySharded)?DataParallel\.forward$"),
    # DeepSpeed: its engine's step is the optimizer's, the pipeline's train_batch is all
    ("step", r"^\w*Engine\.train_batch$"),
    ("inference", r"^\w*Engine\.eval_batch$"),
    ("forward", r"^\w*Engine\.forward$"),
    ("backward", r"^\w*Engine\.backward$"),
    ("optimizer", r"^\w*Engine\.(step|_take_model_step)$"),
    # Lightning: its optimizer_step holds the whole closure, forward and backward pass
    ("step", r"^\[(pl|lightning)\]\[profile\]run_training_batch$"),
    (None, r"^\[(pl|lightning)\].*optimizer_step$"),
    ("", r"^\[(pl|lightning)\].*\.optimizer_zero_grad$"),
    ("forward", r"^\[(pl|lightning)\].*Strategy\w*\.training_step$"),
    ("inference", r"^\[(pl|lightning)\].*Strategy\w*\.(validation|test|predict)_step$"),
    ("backward", r"^\[(pl|lightning)\].*Strategy\w*\.backward$"),
    (None, r"^\[(pl|lightning)\]"),
    # Accelerate, and what wraps an optimizer in it, DeepSpeed and Megatron
    ("backward", r"^Accelerator\.backward$"),
    ("optimizer", r"^\w*Optimizer\w*\.step$"),
    ("backward", r"^\w*Optimizer\w*\.backward$"),
    ("", r"^\w*Optimizer\w*\.zero_grad$"),
    # vLLM
    ("inference", r"^gpu_model_runner: forward$"),
    ("step", r"^execute_(model|context_\d)"),
)
# A name with words of two of these is none of them.
_APART = {"forward", "backward", "optimizer"}
# What a word means, and words that say nothing beside those. Of several the first here decides.
_MEANINGS = re.compile(
    r"(?P<between>zero(?:grad)?)"
    r"|(?P<optimizer>optimi[sz]er|optim|opt|update|adamw?|sgd|lion|lamb|muon|rmsprop)"
    r"|(?P<backward>backward|bwd|backprop|backpropagation)"
    r"|(?P<inference>inference|infer)"
    r"|(?P<forward>forward|fwd)"
    r"|(?P<loss>loss|criterion|entropy)"
    r"|(?P<step>step|iteration|iter|batch)"
    r"|(?P<beside>a|all|and|call|compute|cross|do|full|grads?|gradients|main|model|my|net|network"
    r"|of|parameters?|params|pass|phase|profiler|run|steps|the|torch|total"
    r"|train|trainer|training|weights?|whole|with)"
)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# A number by itself, or behind a word that counts: "iteration 3", "layers.3.attention", "block3";
# not "fp16", "3x3".
_NUMBERS = re.compile(
    r"(?i)(?<![a-z0-9])\d{1,12}(?![a-z0-9])"
    r"|(?<![a-z])(layer|block|iter|iteration|step|batch|microbatch|epoch|stage|head"
    r"|expert)\d{1,12}(?![a-z0-9])"
)


def words(name: str) -> list[str]:
    """The words of a name in lower case, numbers included; `crossEntropy_2` is cross, entropy,
    2."""
    return [word.lower() for word in _WORD.findall(name[:LONGEST].replace("AdamW", "Adamw"))]


@lru_cache(maxsize=1 << 16)
def meaning(name: str) -> str | None:
    """Which phase a name means, "" for what is between phases, None for a part of one or anything
    else."""
    if len(name) > LONGEST:
        return None
    for phase, pattern in _LIBRARIES:
        if re.search(pattern, name):
            return phase
    found = words(name)
    plain = {word for word in found if not word.isdigit()}
    meanings = [_MEANINGS.fullmatch(word) for word in plain]
    said = {found.lastgroup for found in meanings if found}
    if not all(meanings):
        return None
    if plain == {"batch"} and len(plain) == len(found):
        return None  # "batch" without a number is as often the loading of one
    if "between" in said:
        return ""
    if len(said & _APART) > 1:
        return None
    return next((phase for phase in _MEANINGS.groupindex if phase in said - {"beside"}), None)


def is_operator(name: str) -> bool:
    """Whether a range's name is one of autograd's own, such as aten::mm or MmBackward0; "Backward"
    alone is a phase."""
    if "::" in name:
        return True
    return name.rstrip("0123456789").endswith("Backward") and meaning(name) != "backward"


def family(name: str) -> str:
    """The name with `*` for each number that counts: "layers.3.attention" is of
    "layers.*.attention"."""
    if len(name) > LONGEST:
        return name
    return _NUMBERS.sub(lambda found: (found[1] or "") + "*", name)
