"""Whether a training step fits a card, by how much, and what would make room. Standard library
only."""

import re
import tomllib
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stepscope.model.chosen import PACKAGES, names

from .architecture import Architecture, require
from .footprint import OPTIONS, Setup, holds, product
from .footprint_peak import Peak, last_that, peak
from .options import TERMS, value, values

KNOWN = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
CARD = TERMS["card"]
ASKED = KNOWN["asked"]  # name -> what is usual, and what it is in words
FITS, DOUBTFUL, FAILS = "fits", "fits with doubt", "does not fit"
SOLD = 0.98  # of the memory that a card is sold with, CUDA gives so much to programs


def add_flags(flags: ArgumentParser) -> None:
    """The size, how it is run, and whose rates it is timed by."""
    choices = {name: values(name) for name in OPTIONS} | {"machine": list(KNOWN["machines"])}
    for name, (usual, told) in ASKED.items():
        flags.add_argument(
            f"--{name}",
            type=type(usual),
            choices=choices.get(name),
            default=usual,
            help=f"{told}; %(default)s",
        )


def setup_of(given: Namespace, sizes: dict[str, dict[str, int]]) -> Setup:
    """What those flags say. Raises ValueError as model() does."""
    names = ASKED.keys() & Setup.__dataclass_fields__
    options = {name: getattr(given, name) for name in names}
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
    found = {_plain(each): shape for each, shape in reversed(shapes.items())}.get(_plain(name))
    if found is None:
        raise ValueError(f"no model {name!r}; there are: {', '.join(shapes)}")
    return Architecture(**found)


def _of_numbers(text: str) -> Architecture:
    """A shape from its fields."""
    known = ", ".join(Architecture.__dataclass_fields__)
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        return Architecture(**{name.strip(): int(number) for name, _, number in pairs})
    except TypeError:
        raise ValueError(f"size {text!r}: the first four are needed of {known}") from None
    except ValueError as error:
        raise ValueError(f"size {text!r}: {error}") from None


def memory(text: str) -> int:
    """Bytes that programs get of a card, by its name or by the GB that it is sold with; with GiB
    behind it a number stands for itself. Raises ValueError."""
    cards = {_plain(name): size for name, size in KNOWN["cards"].items()}
    complaint = f"memory {text!r}: say 24GB, or a card: {', '.join(KNOWN['cards'])}"
    if size := cards.get(_plain(text)):
        return int(size * 2**30)
    share = 1 if text.lower().endswith("gib") else SOLD
    return int(_number(text, complaint) * share * 2**30)


def _number(text: str, complaint: str) -> float:
    """That of GB or GiB. Raises ValueError with that complaint."""
    found = re.fullmatch(r"(\d{1,6}(\.\d*)?) ?(gi?b)?", text.lower().strip())
    if found is None:
        raise ValueError(complaint)
    return float(found[1])


def capacity(card: str, reserve: str) -> int:
    """Bytes of a card without what others hold of it. Raises ValueError, also where that is all."""
    held = _number(reserve, f"reserve {reserve!r}: a number, as 2GB") * 2**30
    left = memory(card) - int(held)
    if left <= 0:
        raise ValueError(f"memory {card}, reserve {reserve}: nothing is left")
    return left


def _plain(text: str) -> str:
    return re.sub("[ -]", "", text.lower())


def wrong(setup: Setup) -> str | None:
    """Why no step is so, or no closed form is known, in one line. Raises ValueError for numbers out
    of their bounds."""
    require(vars(setup))
    for condition, told in TERMS["impossible"].items():
        if holds(condition, setup.flags):
            return told.format_map(setup.sizes)
    return None


def check_own(given: Namespace, used: tuple[str, ...], words: Iterable[str]) -> None:
    """Raises ValueError for flags that a model or step of one's own, which is asked for no others
    than `used`, does not have, and for their values that it cannot have. words: what was typed."""
    typed = {word.partition("=")[0].removeprefix("--") for word in words}
    require(vars(given))
    for name in filter(typed.__contains__, ASKED):
        chosen = getattr(given, name)
        is_possible = name not in PACKAGES or chosen in names(name)
        if name not in used or not is_possible:
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


def taken(size: int, flags: Collection[str] = ()) -> tuple[int, int]:
    """Bytes of a card that a step with this peak takes, the least and the most: what the allocator
    reserves, and CUDA's context. flags: the setup's."""
    known = reserved(flags)
    least, most = (CARD["context"] + int(size * known[key]) for key in ("least", "most"))
    return least, most


def reserved(flags: Collection[str]) -> dict[str, Any]:
    """What the allocator reserves over what tensors ask for: the `least` and the `most`."""
    return next(each for each in TERMS["reserved"] if holds(each["when"], flags))


def verdict(size: int, capacity: int, flags: Collection[str] = ()) -> str:
    """Whether that is within `capacity` bytes."""
    least, most = taken(size, flags)
    if most <= capacity:
        return FITS
    return DOUBTFUL if least <= capacity else FAILS


def verdict_of(setup: Setup, capacity: int) -> str:
    return verdict(peak_of(setup).bytes, capacity, setup.flags)


def largest(setup: Setup, field: str, capacity: int) -> dict[str, int]:
    """The largest batch or context that fits, and that fits with doubt; 0 if none does."""

    def last_of(*verdicts: str) -> int:
        def fits(number: int) -> bool:
            changed: dict[str, Any] = {field: number}
            other = replace(setup, **changed)
            return not wrong(other) and verdict_of(other, capacity) in verdicts

        return last_that(fits)

    return {FITS: last_of(FITS), DOUBTFUL: last_of(FITS, DOUBTFUL)}


def room(setup: Setup) -> list[Room]:
    """The changes that lower the peak, the largest first."""
    before = peak_of(setup).bytes
    in_halves = {
        "label": "half the batch, accumulated over two",
        "options": {"batch": -(-setup.batch // 2), "gradients": "accumulated"},
    }
    found = []
    for each in (*TERMS["changes"], in_halves):
        changed = replace(setup, **each["options"])
        size = peak_of(changed).bytes
        if size < before:
            found.append(Room(each["label"], changed, size, before - size))
    return sorted(found, key=lambda each: each.bytes)


def together(setup: Setup, capacity: int) -> list[Room]:
    """Changes one on top of the other, each the best of its turn, until it fits on as many devices
    and in the same precision; all that there are if it never does."""
    found: list[Room] = []
    while verdict_of(setup, capacity) != FITS:
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


def operations(setup: Setup) -> list[tuple[int, str]]:
    """Those of a step, each with the precision at whose rate it runs."""
    in_blocks, outside = value("precision", setup.precision).rates
    return [
        (product(each["dims"], setup.sizes), in_blocks if each.get("in_blocks") else outside)
        for each in TERMS["operations"]
        if holds(each.get("when", ""), setup.flags)
    ]


def tokens_a_second(setup: Setup, machine: str) -> list[float] | None:
    """The least and the most of a device, at the shares of a machine's rates that its steps
    reached; None where it was not measured in that precision."""
    known = KNOWN["machines"][machine]
    seconds = 0.0
    for count, precision in operations(setup):
        if precision not in known["rates"]:
            return None
        seconds += count / known["rates"][precision]
    return [setup.batch * setup.context * share / seconds for share in known["shares"]]


def answer(setup: Setup, capacity: int, machine: str) -> dict[str, Any]:
    """All of it, as plain data: bytes, sequences, tokens, operations of a step. Raises ValueError
    for a setup that no step has."""
    if told := wrong(setup):
        raise ValueError(told)
    moment = peak_of(setup)
    terms = [
        {name: getattr(each, name) for name in ("category", "name", "formula", "bytes")}
        for each in moment.contributions
    ]
    return of_peak(capacity, moment.bytes, terms, setup.flags) | {
        "where": ", ".join(filter(None, (moment.phase, moment.part))),
        "largest batch": largest(setup, "batch", capacity),
        "longest context": largest(setup, "context", capacity),
        "parameters": setup.sizes["parameters"],
        "operations": sum(count for count, _ in operations(setup)),
        "machine": machine,
        "tokens a second": tokens_a_second(setup, machine),
        "room": [_told(each, capacity) for each in room(setup)],
        "together": [_told(each, capacity) for each in together(setup, capacity)],
    }


def _told(change: Room, capacity: int) -> dict[str, Any]:
    return {
        "change": change.label,
        "saves": change.saved,
        "peak": change.bytes,
        "verdict": verdict_of(change.setup, capacity),
        "largest batch": largest(change.setup, "batch", capacity),
    }


def of_peak(
    capacity: int, size: int, terms: list[dict[str, Any]], flags: Collection[str] = ()
) -> dict[str, Any]:
    """What a peak of so many bytes is to a card. terms: what it is made of, each with its
    `category` and `bytes`. flags: the setup's."""
    return {
        "verdict": verdict(size, capacity, flags),
        "memory": capacity,
        "taken": taken(size, flags),
        "peak": size,
        "terms": terms,
    }


def of_own(
    capacity: int, size: int, terms: list[dict[str, Any]], modules: list[dict[str, Any]]
) -> dict[str, Any]:
    """The same of a model or step of one's own, with what libraries hold."""
    libraries = CARD["libraries"]
    held = {"category": "workspace", "bytes": libraries}
    return of_peak(capacity, size + libraries, [*terms, held]) | {"modules": modules}


def printed(found: dict[str, Any]) -> list[str]:
    """What answer() found, or of_own(), in lines for people."""
    least, most = map(_size, found["taken"])
    where = f" ({found['where']})" if "where" in found else ""
    lines = [
        f"{found['verdict']}: it takes {least} to {most} of {_size(found['memory'])}",
        f"peak {_size(found['peak'])} asked for{where}",
    ]
    by_category: Counter[str] = Counter()
    for term in found["terms"]:
        by_category[term["category"]] += term["bytes"]
    for category, size in by_category.most_common():
        lines.append(f"{_size(size):>14}  {category}")
    if "room" in found:
        return lines + _printed_closed_form(found)
    lines.append("modules, by what is alive at most while they run")
    for each in found["modules"][:8]:
        lines.append(
            f"{_size(each['peak']):>14}  {each['module']}: its forward pass keeps"
            f" {_size(each['keeps'])}"
        )
    return lines


def _printed_closed_form(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['parameters']:,} parameters; largest tensors"]
    for term in found["terms"][:8]:
        lines.append(f"{_size(term['bytes']):>14}  {term['name']}: {term['formula']}")
    lines.append(f"largest batch: {_both(found['largest batch'])}")
    lines.append(f"longest context at this batch: {_both(found['longest context'])}")
    if speed := found["tokens a second"]:
        slow, fast = speed
        lines.append(
            f"on {found['machine']}: {slow:,.0f} to {fast:,.0f} tokens/s a device, sending aside"
        )
    for title, key in (("what makes room", "room"), ("one on top of the other", "together")):
        lines += [title] if found[key] else []
        for each in found[key]:
            lines.append(
                f"{_size(each['saves']):>14}  {each['change']}: {each['verdict']},"
                f" largest batch {_both(each['largest batch'])}"
            )
    return lines


def _size(size: int) -> str:
    """In GiB, what is small in MiB."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**28 else f"{size / 2**20:.1f} MiB"


def _both(numbers: dict[str, int]) -> str:
    return f"{numbers[FITS]:,} ({numbers[DOUBTFUL]:,} with doubt)"
