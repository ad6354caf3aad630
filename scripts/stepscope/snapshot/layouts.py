"""A regular expression that reads a whole event at once, for all events with the same keys in the same order."""

import re
from collections.abc import Callable
from typing import NamedTuple

LARGEST_INTEGER = 9  # bytes: an unsigned number of 64 bits and its sign
# Limits: layouts that are learned, keys of an event, different texts in a field. Events beyond them are read singly.
MOST_LAYOUTS, MOST_KEYS, MOST_TEXTS = 16, 20, 32

# Opcodes as regular expressions: a reference to something read before, and whole numbers.
REFERENCE = rb"(?:h.|j.{4})"
_SIZED = b"|".join(rb"\x8a%b.{%d}" % (re.escape(bytes([size])), size) for size in range(LARGEST_INTEGER))
_INTEGER = rb"(?:K.|M..|J.{4}|" + _SIZED + rb")"
_FRAMES = rb"(" + REFERENCE + rb"|\]\x94(?:\(" + REFERENCE + rb"*+e|" + REFERENCE + rb"a)?+)"


class Layout(NamedTuple):
    """How events with certain keys are read. match(data, at): a whole event at a place in the file, or None."""

    match: Callable
    values: tuple[int, ...]  # groups of action, address, size, and of time and frames where there are such
    memoized: tuple[int, ...]  # groups that are set where a value was numbered, to be referred to later
    timed: bool
    framed: bool


def integer(token: bytes) -> int:
    """The number in an opcode of one, its argument included."""
    first = token[0]
    if first == 0x8A:  # LONG1: its length stands before it
        return int.from_bytes(token[2:], "little", signed=True)
    return int.from_bytes(token[1:], "little", signed=first == 0x4A)  # only BININT has a sign


def layout(event: dict, texts: dict[str, set[str]], places: dict[str, list[int]]) -> Layout | None:
    """How events with the keys of this one are read at once; None for a layout that the regular expression cannot hold.

    texts: for each field of text, the texts seen in it that are not references. places: the memo's numbers of a text
    (a key that is also the name of a function may have two).
    """
    keys = list(event)
    if not {"action", "addr", "size"} <= set(keys) or any(key not in places for key in keys):
        return None
    if "frames" in keys and keys[-1] != "frames":
        return None  # the memo numbers a list after what comes before it
    pattern, groups, memoized, count = rb"\}\x94\(", {}, [], 0
    for key, value in event.items():
        pattern += rb"(?:%b)" % b"|".join(re.escape(_reference(place)) for place in places[key])
        if key == "action":
            pattern, count = pattern + rb"(" + REFERENCE + rb")", count + 1
            groups[key] = count
        elif key == "frames":
            pattern, count = pattern + _FRAMES, count + 1
            groups[key] = count
        elif type(value) is int:
            pattern, count = pattern + rb"(" + _INTEGER + rb")", count + 1
            groups[key] = count
        elif type(value) is str:
            written = (_written(text) for text in sorted(texts[key]) if len(text.encode()) < 256)
            pattern += rb"(?:%b|(?:%b)(\x94))" % (REFERENCE, b"|".join(written))
            count += 1
            memoized.append(count)
        elif type(value) is tuple and len(value) == 2 and all(type(each) is int for each in value):
            pattern += rb"(?:%b|%b{2}\x86(\x94))" % (REFERENCE, _INTEGER)
            count += 1
            memoized.append(count)
        else:
            return None
    chosen = [groups.get(key) for key in ("action", "addr", "size", "time_us", "frames")]
    if None in chosen[:3]:
        return None
    match = re.compile(pattern + b"u", re.DOTALL).match
    present = tuple(group for group in chosen if group is not None)
    return Layout(match, present, tuple(memoized), chosen[3] is not None, chosen[4] is not None)


def _reference(place: int) -> bytes:
    """The opcode that refers to what was numbered so."""
    return b"h" + bytes([place]) if place < 256 else b"j" + place.to_bytes(4, "little")


def _written(text: str) -> bytes:
    """A regular expression for the opcode of a short text."""
    raw = text.encode()
    return re.escape(b"\x8c" + bytes([len(raw)]) + raw)
