"""The flags of the measuring programs, and the way from flags to a cell's spec.

Every key of a spec is a flag of the same name. One that is neutral stands in a spec only where it
was changed.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from stepscope.axes import MASKS, MODES, PLAIN_STEP, is_step
from stepscope.machine import identity
from stepscope.model.chosen import PACKAGES, names
from stepscope.model.formats import PRECISIONS
from stepscope.model.own.reference import ModelError, parse
from stepscope.model.shape import ModelShape

from . import ConfigError, own_models
from .grid import NEUTRAL, Study, changed, check_blocks
from .model_cells import SHAPE
from .profilers import NSYS_NEUTRAL

CONFIG = Path(__file__).resolve().parents[3] / "config.yaml"
N = TypeVar("N", int, float)
_NAME = re.compile(r"[\w.+=-]+")


@dataclass(frozen=True)
class Settings:
    """What does not belong to the spec: the output folder (None: only print) and the time limit in
    minutes."""

    out: Path | None
    time_limit: float


def _number(kind: type[N], least: int, text: str) -> N:
    """A finite number of at least so much."""
    try:
        value = kind(text)
    except ValueError:
        words = "whole number" if kind is int else "number"
        raise argparse.ArgumentTypeError(f"{text!r} is no {words}") from None
    if not least <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is out of range; use at least {least}")
    return value


positive = partial(_number, int, 1)
not_negative = partial(_number, int, 0)
several = partial(_number, int, 2)
duration = partial(_number, float, 0)


def lengths(text: str) -> list[int]:
    """Whole numbers of at least 1, as a list in JSON or separated by commas."""
    return [positive(part.strip()) for part in text.strip("[] ").split(",")]


def mapping(text: str) -> dict:
    """A mapping in JSON."""
    found = _json(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(
            f'{text!r} is no mapping in JSON, such as {{"layers": 12}}'
        )
    return found


def variants(text: str) -> list[dict]:
    """A list of mappings in JSON, each with a `name` of its own that can stand in a table."""
    found = _json(text)
    given = found if isinstance(found, list) else []
    names = {str(one.get("name", "")) for one in given if isinstance(one, dict)}
    if not given or len(names) < len(given) or not all(map(_NAME.fullmatch, names)):
        raise argparse.ArgumentTypeError(
            'give a list such as [{"name": "naive"}], each with a name of its own, of letters,'
            " digits and . _ = + -"
        )
    return given


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


Choices = Iterable[str] | None


class Flag(NamedTuple):
    """type: how its text is read. default: None of what need not be given, or is neutral."""

    help: str
    type: Callable = str
    default: object = None
    choices: Choices = None


MODEL = (
    "size",
    *SHAPE,
    "vocab_size",
    "model",
    "model_keys",
    "step",
    "step_keys",
    "context",
    "batch",
    "key_value_heads",
    "window",
)
OPTIONS = ("mode", *PLAIN_STEP)
# What a model of a size, one of one's own, or steps of one's own do not take: these are as their
# file builds them.
NOT_OF = {
    "size": ("model_keys", "step_keys"),
    "model": (*SHAPE, "vocab_size", "key_value_heads", "window", "step_keys"),
    "step": ("size", *SHAPE, "vocab_size", "key_value_heads", "window", "model_keys", *OPTIONS),
}
FIXED = ("warmup", "steps")
BUDGET = ("processes", "warmup", "steps", "max_steps", "max_seconds")
COMMON = ("seed", "threads", "device")
NSYS = tuple(NSYS_NEUTRAL)
BESIDE = ("size", "time_limit", "out")  # in no spec

FLAGS = {
    "size": Flag("name of a size in config.yaml, instead of the four numbers below"),
    "d_model": Flag("width of the residual stream", positive),
    "d_ff": Flag("width of the feed-forward layer", positive),
    "num_layers": Flag("number of blocks", positive),
    "num_heads": Flag("attention heads of a block", positive),
    "vocab_size": Flag("number of different tokens", positive, 10_000),
    "model": Flag(
        "FILE:FUNCTION that builds a model of one's own, or hf:NAME; the file is code that runs"
        " as you"
    ),
    "model_keys": Flag('what it is built with, in JSON, as {"layers": 12}', mapping),
    "step": Flag("FILE:FUNCTION that builds a training step of one's own; it runs as you, too"),
    "step_keys": Flag("what that is built with, likewise", mapping),
    "context": Flag("sequence length in tokens", positive, 128),
    "batch": Flag("sequences", positive, 4),
    "key_value_heads": Flag("heads of K and V; 0: as many as heads", not_negative),
    "window": Flag(
        "tokens that one sees at most, itself and those just before it; 0: all before it",
        not_negative,
    ),
    "precision": Flag(
        "fp32 has TF32 off; 16 bits: autocast", str, PLAIN_STEP["precision"], PRECISIONS
    ),
    "mode": Flag("the heaviest thing to run", choices=MODES),
    "attention": Flag("implementation", choices=names("attention")),
    "compile": Flag(
        "torch.compile of each block or of the whole model; graphs: of blocks, replayed from CUDA"
        " graphs",
        choices=names("compile"),
    ),
    "optimizer": Flag("implementation, of AdamW or another", choices=names("optimizer")),
    "loss": Flag("implementation of cross-entropy", choices=names("loss")),
    "checkpoint": Flag(
        "keep the input of every so many blocks alone, compute the rest again; 0: no", not_negative
    ),
    "devices": Flag("devices of this machine that share a step", several),
    "variants": Flag("what takes turns, as a list in JSON; see above", variants, []),
    "d_head": Flag("dimension of a head", positive, 64),
    "lengths": Flag("sequence lengths in tokens, as a list in JSON", lengths, [256, 1024, 4096]),
    "tokens": Flag("batch x length, instead of --batch", positive),
    "heads": Flag("0: no dimension of heads", not_negative),
    "mask": Flag("causal: query i sees keys 0 to i", choices=MASKS),
    "operation": Flag("what to measure", str, "matmul", ("matmul", "copy")),
    "order": Flag("order of the square matrices (8192)", positive),
    "mebibytes": Flag("size of the copied tensor (2048)", positive),
    "probe": Flag(
        "what to probe",
        str,
        "accumulation",
        ("accumulation", "autocast", "normalisation"),
    ),
    "profiler": Flag(
        "auto: nsys on a GPU if it is on the PATH, else torch.profiler",
        str,
        "auto",
        ("auto", "nsys", "torch", "none"),
    ),
    "start": Flag("cold: also what a process's first step contains", choices=("warm", "cold")),
    "nsys_trace": Flag("what nsys traces; also osrt, cublas, cudnn"),
    "nsys_python_backtrace": Flag("Python's stack", choices=("none", "cuda")),
    "nsys_pytorch": Flag(
        "ranges of operators", choices=("none", "autograd-nvtx", "autograd-shapes-nvtx")
    ),
    "processes": Flag("fresh processes, one after the other", positive, 3),
    "warmup": Flag("steps before the measured ones", not_negative, 2),
    "learning_rate": Flag("of the optimizer", duration, 1e-3),
    "steps": Flag("fewest measured steps of a series", positive, 3),
    "max_steps": Flag("most measured steps of a series", positive, 20),
    "max_seconds": Flag("seconds after which a series ends that has --steps", duration, 0.5),
    "seed": Flag("of weights and random inputs", not_negative, 0),
    "threads": Flag("processor threads (1 on a GPU, else all usable cores but one)", positive),
    "device": Flag("what to measure on", str, "auto", ("auto", "cuda", "cpu")),
    "time_limit": Flag("minutes after which to give up", duration, 60.0),
    "out": Flag("folder for record.json and samples.csv (without it, only print)", Path),
}


def read(
    description: str | None,
    words: list[str],
    study: Study,
    keys: tuple[str, ...],
    **defaults: object,
) -> tuple[dict, Settings, Callable]:
    """(the spec of a cell, what does not belong to it, what ends the program with one line) from a
    program's flags.

    keys: the flags that the program has beside those of all programs. defaults: of flags that have
    another one in this program. Ends the program with one line for a model that cannot be, or a
    device that is not to be had.
    """
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    chosen = dict.fromkeys((*keys, *COMMON, *BESIDE[1:]))
    usual = {key: flag.default for key, flag in FLAGS.items()} | NEUTRAL | defaults
    what_runs = parser.add_mutually_exclusive_group() if "size" in chosen else parser
    for key in chosen:
        flag = FLAGS[key]
        (what_runs if key in NOT_OF else parser).add_argument(
            _flag(key),
            type=flag.type,
            default=usual[key],
            choices=list(flag.choices) if flag.choices else None,
            help=flag.help,
        )
    given = vars(parser.parse_args(words))
    try:
        given["device"] = identity.choose_device(given["device"])
        if given["threads"] is None:
            given["threads"] = identity.usual_threads(given["device"])
        if "size" in chosen:
            _resolve_model(given, {word.partition("=")[0] for word in words})
        spec: dict = {"study": study.name}
        spec |= changed({key: given[key] for key in chosen if key not in BESIDE})
        check_blocks(spec, "--checkpoint")
    except (
        identity.MachineError,
        ValueError,
        ConfigError,
        ModelError,
    ) as wrong:
        parser.error(str(wrong))
    return spec, Settings(out=given["out"], time_limit=given["time_limit"]), parser.error


def wrong_variant(variant: dict, options: Iterable[str]) -> str | None:
    """What is wrong with a variant, which may have these options beside its `name` and what it
    comes `after`, in one line; None if nothing is."""
    name = variant["name"]
    for key, value in variant.items():
        if key not in ("name", "after", *options):
            return f"{name} has no {key}; options are {', '.join(options)}"
        if key in PACKAGES and value not in names(key):
            return f"{name}: {key} {value!r} is none of {', '.join(names(key))}"
        if key == "checkpoint" and not (isinstance(value, int) and value >= 0):
            return f"{name}: checkpoint {value!r} is no whole number of at least 0"
    return None


def _resolve_model(given: dict, typed: set[str]) -> None:
    """Put the numbers of a size in its place, or a model or steps of one's own in that of a shape.

    typed: flags. Raises ValueError or ModelError, in one line, for what cannot be.
    """
    kind = "step" if is_step(given) else "model" if given.get("model") else "size"
    for key in NOT_OF[kind]:
        if _flag(key) in typed:
            what = "a size" if kind == "size" else f"a {kind} of your own"
            raise ValueError(f"{_flag(key)} does not go with {what}; remove it")
    if kind == "size":
        _resolve_shape(given, typed)
        return
    given["vocab_size"] = None
    if kind == "step":
        given["precision"] = None
    if given.get(kind):
        parse(given[kind], kind)
        keys = f"{kind}_keys"
        given |= {keys: None} | own_models.part_of_spec(given[kind], given[keys] or {}, kind)
    else:
        given["variants"] = [own_models.variant_of(each) for each in given["variants"]]


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _resolve_shape(given: dict, typed: set[str]) -> None:
    """Of a model of ours. Raises ValueError for a shape that none can have."""
    if given["size"] is not None:
        from stepscope.yaml_files import read_yaml  # and yaml, which a program may do without

        sizes = read_yaml(CONFIG)["sizes"]
        if given["size"] not in sizes:
            raise ValueError(
                f"there is no size {given['size']!r} in {CONFIG.name}; choose from"
                f" {', '.join(map(str, sizes))}"
            )
        # What is typed counts for more.
        for key, value in sizes[given["size"]].items():
            if key in given and _flag(key) not in typed:
                given[key] = value
    if missing := [_flag(key) for key in SHAPE if given[key] is None]:
        raise ValueError(
            f"give --size, or a model or step of your own, or also {' '.join(missing)}"
        )
    ModelShape.of(given)
