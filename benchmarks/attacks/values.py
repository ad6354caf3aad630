"""Values and bytes that may stand where good ones did, and where they may stand."""

import argparse
import gzip
import os
import random
from pathlib import Path

# Text that stands for a value in JSON, some of which JSON does not have.
HOSTILE = (
    *("null", "true", "[]", "{}", '""', '"NaN"', "-1", "0", "1e-12", "1e308", "-1e308", "1e999"),
    *("NaN", "Infinity", "1" + "0" * 400, '"' + "x" * 10_000 + '"', '"\\u0000"', "[" * 5000),
    *('["a", {"b": null}]', '{"status": "ok"}', '"../../outside"', '"<script>alert(1)</script>"'),
)
# The same in CSV.
FIELDS = ("", "-1", "0", "1e-12", "1e308", "inf", "nan", "abc", '"', "\0", "1;2", "9" * 400)
BOMB_BYTES, BOMB_BLOCK = 3 * 2**30, 2**26


def somewhere(value: object, draw: random.Random) -> tuple:
    """The path of a part of nested mappings and lists, at any depth; empty for a value that has no
    parts. What holds more is entered more often."""
    path: tuple = ()
    while isinstance(value, dict | list) and value and (not path or draw.random() < 0.8):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        weights = [_parts(value[key]) for key in keys]
        (key,) = draw.choices(keys, weights)
        path, value = (*path, key), value[key]
    return path


def _parts(value: object) -> int:
    return 1 + min(len(value), 50) if isinstance(value, dict | list) else 1


def holder_of(value: dict | list, path: tuple) -> dict | list:
    """What holds the part at a path."""
    for key in path[:-1]:
        value = value[key]
    return value


def spoilt_bytes(content: bytes, draw: random.Random) -> tuple[str, bytes]:
    """(how, the bytes of a file, otherwise)."""
    place = draw.randrange(len(content))
    made = {
        "cut": content[:place],
        "a byte": content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :],
        "a bit": content[:place]
        + bytes([content[place] ^ 1 << draw.randrange(8)])
        + content[place + 1 :],
        "twice": content * 2,
        "UTF-16": content.decode(errors="replace").encode("utf-16"),
        "empty": b"",
        "a list": b"[" + content + b"]",
        "deep": b'{"a":' * 100_000,
        "noughts": b"\0" * len(content),
    }
    way = draw.choice(list(made))
    return f"bytes: {way}", made[way]


def no_file(path: Path, draw: random.Random) -> str:
    """Put something else in the place of a file, and say what."""
    way = draw.choice(("pipe", "endless", "folder", "gone", "loop", "unreadable name"))
    path.unlink()
    if way == "pipe":
        os.mkfifo(path)
    elif way == "endless":
        path.symlink_to("/dev/zero")
    elif way == "folder":
        path.mkdir()
    elif way == "loop":
        path.symlink_to(path.name)
    elif way == "unreadable name":
        path.symlink_to("x" * 200)
    return f"{path.name}: {way}"


def one_line_usage() -> None:
    """Have argparse leave out how a program is used, which it says of whatever is wrong."""
    argparse.ArgumentParser.format_usage = lambda self: ""  # type: ignore[method-assign]


def bomb(begins: bytes, filler: bytes) -> bytes:
    """A packed file of a few MB that unpacks to BOMB_BYTES."""
    block = gzip.compress(filler * BOMB_BLOCK)
    return gzip.compress(begins) + block * (BOMB_BYTES // BOMB_BLOCK)
