"""Flags of the program that says whether a step fits a card, and models that it is to run in shapes
alone."""

import contextlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import fits

from attacks import models
from attacks.trying import Attempt
from attacks.values import no_file, one_line_usage

SECONDS = 60  # for what runs a model
FLAGS = (
    *("memory", "reserve", "size", "batch", "context", "checkpoint", "devices", "precision"),
    *("attention", "optimizer", "loss", "compile", "recompute", "gradients", "strategy"),
    *("memory", "size", "batch", "context", "devices", "keys", "step", "model", "hf"),
)
VALUES = (
    *("", " ", "0", "-1", "1", "1.5", "1e3", "nan", "inf", "-inf", "NaNGB", "9" * 400, "1e308"),
    *("0GB", "-0GB", "1e-9GB", "999999GB", "GB", "GiB", "½", "0x10", "1_0", "٣", "\0", "ü"),
    *("x" * 300, "\x1b[31m", "a\nb", "../up", "/dev/zero", "$(touch outside)", "<b>", "{}", "-"),
    *("none", "fp8", "fsdp", "alone", "h100", "H100 80 GB", "16777216", "16777217", "1" + "0" * 30),
    *("d_model=1", "d_model=1,d_model=2", "=", "a=b=c", "num_layers=-1", "d_model=1e9"),
    *("no.py:build", "no:such", ":", "net.py:", "net.py", "hf:", "no/such", "[]", '{"a": NaN}'),
)
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "key_value_heads", "none")
NUMBERS = ("0", "-1", "1", "3", "64", "4096", "100000000", "1" + "0" * 30, "", "1.5")
# Harm that ends by itself: whoever runs a file of theirs may end it, and its processes.
HARM = (
    *("error", "odd error", "interrupt", "exit", "exit in words", "generator exit"),
    *("memory error", "no room for a tensor", "recursion", "prints lines", "closed errors"),
    *("another folder", "another type", "no gradients", "environment", "warnings"),
)


def fitting(place: Path) -> Callable:
    """A function that makes an attempt with flags, and now and then with a model."""
    from stepscope.measure import fake_peak  # noqa: F401  torch is loaded once for all

    def attempt(work: Path, draw: random.Random) -> Attempt:
        speaks, seconds = "", 30
        if draw.random() < 0.3:
            how, words = of_model(work / "net.py", draw)
            speaks, seconds = "fits.py: ", SECONDS
        else:
            words = [of_flag(draw) for _ in range(draw.choice((1, 1, 2, 3)))]
            how = " ".join(words)[:80]

        def run() -> None:
            one_line_usage()
            sys.argv = ["fits.py", *words, "--json"]
            with open("said.json", "w") as said, contextlib.redirect_stdout(said):
                fits.main()

        return Attempt(
            how=how,
            run=run,
            wrong=lambda: wrong(work),
            seconds=seconds,
            codes=(0, 1),
            speaks=speaks,
        )

    return attempt


def of_flag(draw: random.Random) -> str:
    """A flag with a value that it may not have."""
    flag, value = draw.choice(FLAGS), draw.choice(VALUES)
    if flag == "size" and draw.random() < 0.7:
        parts = [f"{name}={draw.choice(NUMBERS)}" for name in draw.sample(SHAPE, 5)]
        value = ",".join(parts)
    return f"--{flag}={value}"


def of_model(file: Path, draw: random.Random) -> tuple[str, list[str]]:
    """(how, flags) of a model or a step that does what none should."""
    words = ["--model", "net.py:build", "--precision=fp32", "--attention=naive"]
    if draw.random() < 0.4:
        words = ["--step", "net.py:build_step"]
    words += ["--context=6", "--batch=2"]
    way = draw.choice(("harm", "harm", "harm", "returned", "built", "file", "no file"))
    changes: dict[str, str] = {}
    what, place = draw.choice(HARM), draw.choice(models.PLACES)
    how = f"{what} {place}"
    if way == "harm":
        changes[place] = "harm()"
        if place in ("in_loss", "in_batch"):
            changes["built"] = "(Net(), tokens_of, loss_of)"
    elif way == "returned":
        how = changes["returned"] = draw.choice(models.RETURNED)
    elif way == "built":
        how = changes["built"] = draw.choice(models.BUILT)
    file.write_text(models.source(models.HARM[what], changes))
    if way == "file":
        text = draw.choice(models.FILES)
        how = f"file: {text!r}"
        file.write_text(text)
    elif way == "no file":
        how = no_file(file, draw)
    return f"{words[0]}: {how}", words


def wrong(work: Path) -> str:
    """What is impossible of an answer; empty where nothing is."""
    text = (work / "said.json").read_text(errors="replace")
    try:
        found = json.loads(text[text.index("{\n") :])  # a model may have printed before it
    except ValueError as error:
        return f"there is no answer: {error}"
    least, most = found["taken"]
    parts = sum(term["bytes"] for term in found["terms"])
    if not 0 <= found["peak"] <= least <= most:
        return f"a peak of {found['peak']} B takes {least} to {most} B"
    if not 0 <= parts <= 2 * found["peak"]:
        return f"parts of {parts} B make a peak of {found['peak']} B"
    expected = "fits" if most <= found["memory"] else "fits with doubt"
    if least > found["memory"]:
        expected = "does not fit"
    return "" if found["verdict"] == expected else f"{found['verdict']} is said of {least} B"
