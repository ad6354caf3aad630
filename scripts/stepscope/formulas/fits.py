"""Whether a training step fits a card, by how much, and what would make room. Standard library
only."""

import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from stepscope.formulas.architecture import Architecture, require
from stepscope.formulas.flops import forward_flops
from stepscope.formulas.footprint import OPTIONS, Setup
from stepscope.formulas.footprint_peak import Peak, peak
from stepscope.formulas.options import TERMS, values
from stepscope.model.chosen import PACKAGES, names

KNOWN = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
CARD = TERMS["card"]
# What people train with, where a flag says nothing else.
USUAL: dict[str, Any] = {
    "size": "Llama 3.2 1B",
    "batch": 1,
    "context": 4096,
    "checkpoint": 0,
    "devices": 1,
    "precision": "bf16",
    "attention": "sdpa",
    "optimizer": "fused",
    "loss": "torch",
    "compile": "none",
    "recompute": "no",
    "gradients": "kept",
    "strategy": "alone",
}
FITS, DOUBTFUL, FAILS = "fits", "fits with doubt", "does not fit"
MOST = TERMS["bounds"]["batch"][1]


def add_flags(flags: ArgumentParser) -> None:
    """The size, and how it is run."""
    for name, usual in USUAL.items():
        choices = values(name) if name in OPTIONS else None
        flags.add_argument(
            f"--{name}", type=type(usual), choices=choices, default=usual, help=f"{usual}"
        )


def setup_of(given: Namespace, sizes: dict[str, dict[str, int]]) -> Setup:
    """What those flags say. Raises ValueError as model() does."""
    options = {name: getattr(given, name) for name in USUAL if name != "size"}
    return Setup(model(given.size, sizes), **options)


def model(name: str, sizes: dict[str, dict[str, int]]) -> Architecture:
    """The shape of a well-known model, or of one of `sizes`, by its name in any case; or of numbers
    as "d_model=2048,num_layers=16,...".

    Raises ValueError that lists what there is.
    """
    if "=" in name:
        return _of_numbers(name)
    shapes = dict(sizes)
    for known, of_model in KNOWN["models"].items():
        shapes[known] = of_model["shape"]
        shapes.setdefault(of_model.get("also", known), of_model["shape"])
    wanted = _plain(name)
    found = next((shapes[each] for each in shapes if _plain(each) == wanted), None)
    if found is None:
        raise ValueError(f"no model {name!r}; there are: {', '.join(shapes)}")
    own = {field.name for field in fields(Architecture)}
    return Architecture(**{key: value for key, value in found.items() if key in own})


def _of_numbers(text: str) -> Architecture:
    """A shape from its fields."""
    known = ", ".join(field.name for field in fields(Architecture))
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        return Architecture(**{name.strip(): int(number) for name, _, number in pairs})
    except TypeError:
        raise ValueError(f"size {text!r}: the first four are needed of {known}") from None
    except ValueError as error:
        raise ValueError(f"size {text!r}: {error}") from None


def memory(text: str) -> int:
    """Bytes of a card by its name, or of a number of GiB, with GB or GiB behind it or not, as cards
    are sold. Raises ValueError."""
    cards = {_plain(name): size for name, size in KNOWN["cards"].items()}
    wanted = _plain(text)
    if wanted in cards:
        return cards[wanted] * 2**30
    return _gib(f"memory {text!r}: say 24GB, or a card: {', '.join(KNOWN['cards'])}", text)


def _gib(complaint: str, text: str) -> int:
    """Bytes of a number of GiB. Raises ValueError with that complaint."""
    number = text.lower().strip().removesuffix("gb").removesuffix("gib")
    try:
        found = float(number)
    except ValueError:
        raise ValueError(complaint) from None
    if not 0 <= found < 1e6:
        raise ValueError(complaint)
    return int(found * 2**30)


def capacity(card: str, reserve: str) -> int:
    """Bytes of a card without what others hold of it. Raises ValueError, also where that is all."""
    whole, held = memory(card), _gib(f"reserve {reserve!r}: a number, as 2GB", reserve)
    if held >= whole:
        raise ValueError(f"reserve {reserve!r}: less than the memory, {card}, is wanted")
    return whole - held


def _plain(text: str) -> str:
    return text.lower().replace(" ", "").replace("-", "")


def check(setup: Setup) -> None:
    """Raises ValueError, in one line, for numbers that no step has, and where no closed form is
    known."""
    require(vars(setup))
    positions = setup.sizes["positions"]
    if 0 < positions < setup.context:
        raise ValueError(f"context {setup.context}: the model has {positions} positions")
    if "fp8" in setup.flags and "compiled" not in setup.flags:
        raise ValueError("precision fp8: say --compile block; uncompiled it has no closed form")
    if setup.devices > 1 and setup.strategy == "alone":
        raise ValueError(f"devices {setup.devices}: say a --strategy, as fsdp")


def check_own(given: Namespace, used: tuple[str, ...]) -> None:
    """Raises ValueError for flags that a model or step of one's own, which is asked for no others
    than `used`, does not have, and for their values that it cannot have."""
    require(vars(given))
    for name, usual in USUAL.items():
        chosen = getattr(given, name)
        is_possible = name not in PACKAGES or chosen in names(name)
        if chosen != usual and not (name in used and is_possible):
            raise ValueError(f"--{name} {chosen}: not with a model or step of your own")


@dataclass(frozen=True)
class Room:
    """A change of the setup, and what its peak is then."""

    label: str
    setup: Setup
    bytes: int
    saved: int


def peak_of(setup: Setup) -> Peak:
    """The peak of a whole step, with what libraries hold."""
    return peak(setup, "step", CARD["libraries"])


def taken(size: int) -> tuple[int, int]:
    """Bytes of a card that a step with this peak takes, the least and the most: what the allocator
    reserves, and CUDA's context."""
    least, most = (CARD["context"] + int(size * factor) for factor in CARD["reserved"])
    return least, most


def verdict(size: int, capacity: int) -> str:
    """Whether that is within `capacity` bytes."""
    least, most = taken(size)
    return FITS if most <= capacity else DOUBTFUL if least <= capacity else FAILS


def largest(setup: Setup, field: str, capacity: int) -> int:
    """The largest batch or context that fits without doubt; 0 if none does."""

    positions = setup.sizes["positions"]

    def fits(number: int) -> bool:
        if field == "context" and 0 < positions < number:
            return False
        changed: dict[str, Any] = {field: number}
        return verdict(peak_of(replace(setup, **changed)).bytes, capacity) == FITS

    return last_that(fits)


def last_that(holds: Callable[[int], bool]) -> int:
    """The last number from 1 that holds, where all before it do."""
    good, bad = 0, 1
    while bad < MOST and holds(bad):
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def room(setup: Setup) -> list[Room]:
    """The changes that lower the peak, the largest first."""
    before = peak_of(setup).bytes
    candidates = [(each["label"], each["options"]) for each in TERMS["changes"]]
    if setup.batch > 1:
        half = {"batch": -(-setup.batch // 2), "gradients": "accumulated"}
        candidates.append(("half the batch, accumulated over two", half))
    found = []
    for label, options in candidates:
        changed = replace(setup, **options)
        size = peak_of(changed).bytes
        found.append(Room(label, changed, size, before - size))
    lower = [each for each in found if each.saved > 0]
    return sorted(lower, key=lambda each: -each.saved)


def together(setup: Setup, capacity: int) -> list[Room]:
    """Changes one on top of the other, each the best of its turn, until it fits on as many devices
    and in the same precision; all that there are if it never does."""
    found: list[Room] = []
    while verdict(peak_of(setup).bytes, capacity) != FITS:
        left = [
            each
            for each in room(setup)
            if (each.setup.devices, each.setup.precision) == (setup.devices, setup.precision)
        ]
        if not left:
            break
        found.append(left[0])
        setup = left[0].setup
    return found


def answer(setup: Setup, capacity: int) -> dict[str, Any]:
    """All of it, as plain data: bytes, sequences, tokens, operations of a step. Raises ValueError
    as check() does."""
    check(setup)
    moment = peak_of(setup)
    passes = 4 if setup.checkpoint else 3  # a checkpointed step runs forward once more
    terms = [
        {"category": each.category, "name": each.name, "formula": each.formula}
        | {"bytes": each.bytes}
        for each in moment.contributions
    ]
    return of_peak(capacity, moment.bytes, terms) | {
        "where": " in ".join(filter(None, (moment.phase, moment.part))),
        "largest batch": largest(setup, "batch", capacity),
        "longest context": largest(setup, "context", capacity),
        "operations": passes * forward_flops(setup.shape, setup.batch, setup.context),
        "room": [_told(each, capacity) for each in room(setup)],
        "together": [_told(each, capacity) for each in together(setup, capacity)],
    }


def _told(change: Room, capacity: int) -> dict[str, Any]:
    return {
        "change": change.label,
        "saves": change.saved,
        "peak": change.bytes,
        "verdict": verdict(change.bytes, capacity),
        "largest batch": largest(change.setup, "batch", capacity),
    }


def of_peak(capacity: int, size: int, terms: list[dict[str, Any]]) -> dict[str, Any]:
    """What a peak of so many bytes is to a card. terms: what it is made of, each with its
    `category` and `bytes`."""
    return {
        "verdict": verdict(size, capacity),
        "memory": capacity,
        "taken": taken(size),
        "peak": size,
        "terms": terms,
    }


def printed(found: dict[str, Any]) -> list[str]:
    """What answer() found, or of_peak(), in lines for people."""
    least, most = (size / 2**30 for size in found["taken"])
    where = f", in {found['where']}" if "where" in found else ""
    lines = [
        f"{found['verdict']}: it takes {least:.1f} to {most:.1f} GiB of"
        f" {found['memory'] / 2**30:.1f} GiB",
        f"peak {found['peak'] / 2**30:.2f} GiB asked for{where}",
    ]
    by_category: dict[str, int] = {}
    for term in found["terms"]:
        category = term["category"]
        by_category[category] = by_category.get(category, 0) + term["bytes"]
    for category, size in sorted(by_category.items(), key=lambda each: -each[1]):
        lines.append(f"  {size / 2**30:8.2f} GiB  {category}")
    return lines + (_printed_closed_form(found) if "room" in found else [])


def _printed_closed_form(found: dict[str, Any]) -> list[str]:
    lines = ["largest tensors"]
    for term in found["terms"][:8]:
        lines.append(f"  {term['bytes'] / 2**30:8.2f} GiB  {term['name']}: {term['formula']}")
    lines.append(
        f"largest batch that fits: {found['largest batch']:,};"
        f" longest context at this batch: {found['longest context']:,}"
    )
    for title, key in (("what makes room", "room"), ("one on top of the other", "together")):
        lines += [title] if found[key] else []
        for each in found[key]:
            lines.append(
                f"  {each['saves'] / 2**30:8.2f} GiB  {each['change']}: {each['verdict']},"
                f" largest batch {each['largest batch']:,}"
            )
    return lines
