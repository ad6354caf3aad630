"""published.csv: figures that others published, checked and in SI units, each beside ours where a
cell is there."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from stepscope.axes import DIRECTIONS, MODES, PHASES
from stepscope.model.formats import PRECISIONS
from stepscope.results import ours
from stepscope.results.ours import Like, Ours
from stepscope.results.schema import TABLES

SI = {  # unit of a published value: (SI unit, how many of that it is)
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "bytes": ("B", 1.0),
    "MB": ("B", 1e6),
    "MiB": ("B", 2.0**20),
    "GB": ("B", 1e9),
    "GiB": ("B", 2.0**30),
    "TFLOP/s": ("FLOP/s", 1e12),
    "tokens/s": ("token/s", 1.0),
    "%": ("1", 0.01),
    "share": ("1", 1.0),
    "ratio": ("1", 1.0),
    "count": ("1", 1.0),
    "": ("1", 1.0),
}
WARM = 5  # steps of warm-up from which on a mean is one of a warm step
# Published effect: what of the figure is another in the time above the line, and below it.
EFFECTS = {
    "speed-up": ({"precision": "fp32"}, {}),
    "ratio to forward": ({}, {"phase": "forward"}),
    "change by TF32": ({}, {"precision": "fp32"}),
}
NOTHING = Ours(math.nan, "")
CHANGES = ("change by TF32",)  # of which 0 is no change
REQUIRED = ("source", "gpu", "study", "quantity", "value", "unit")
NUMBERS = {
    "d_model",
    "d_ff",
    "num_layers",
    "num_heads",
    "vocab_size",
    "context",
    "batch",
    "warmup",
    "samples",
    "value",
    "d_head",
    "heads",
    "kv_heads",
    "length",
}
CHOICES = {
    "study": ("timing", "warmup", "profile", "memory", "attention", "precision"),
    "statistic": ("", "mean", "median", "std", "min", "max", "total", "value"),
    "status": ("", "ok", "oom", "unsupported", "failed"),
    "unit": tuple(SI),
    "precision": ("", *PRECISIONS),
    "phase": ("", *PHASES),
    "direction": ("", *DIRECTIONS),
    "causal": ("", "yes", "no"),
    "impossible": ("", "True", "False", "true", "false"),
}
TEXTS = {
    "source",
    "title",
    "item",
    "date",
    "gpu",
    "framework",
    "size",
    "mode",
    "implementation",
    "name",
    "quantity",
    "note",
    "doubt",
}


class PublishedError(ValueError):
    """A file of published figures is wrong; the message is one line that names file, line and
    column."""


def rows(paths: list[Path], tables: Mapping[str, pd.DataFrame]) -> list[dict]:
    """All files' rows in the columns of the table, one for each machine that has ours beside a
    figure. tables: those that ours.known() reads, with the places of their cells."""
    machines = tables["series"]["machine"].unique()
    known = [ours.known(tables, machine) for machine in machines]
    found = []
    for path in paths:
        for figure in read(path):
            matches = [_match(figure, own) for own in known]
            beside = [match for match in matches if match]
            found += [_row(figure, match) for match in beside or [NOTHING]]
    return found


def read(path: Path) -> list[dict]:
    """The rows of a file: numbers, None where empty, and text. Raises PublishedError for what it
    may not hold."""
    every = NUMBERS | set(CHOICES) | TEXTS
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            names = reader.fieldnames or []
            if missing := [name for name in REQUIRED if name not in names]:
                raise PublishedError(f"{path}, line 1: column {missing[0]!r} is missing")
            if unknown := [name for name in names if name not in every]:
                raise PublishedError(
                    f"{path}, line 1: column {unknown[0]!r} is none of {', '.join(sorted(every))}"
                )
            empty = {name: None if name in NUMBERS else "" for name in every}
            return [
                empty | _checked(f"{path}, line {reader.line_num}", values) for values in reader
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PublishedError(f"{path}: no CSV file of published figures: {error}") from None


def _checked(where: str, values: dict) -> dict:
    """A row's fields as numbers and text. Raises PublishedError; where: file and line."""
    if None in values or None in values.values():
        raise PublishedError(f"{where}: has not as many fields as the first line")
    row = {name: text.strip() for name, text in values.items()}
    for name, text in row.items():
        if name in CHOICES and text not in CHOICES[name]:
            raise PublishedError(
                f"{where}: {name}: {text!r} is none of {', '.join(filter(None, CHOICES[name]))}"
            )
    numbers = {
        name: _number(f"{where}: {name}", text) for name, text in row.items() if name in NUMBERS
    }
    if ((row.get("status") or "ok") == "ok") != (numbers["value"] is not None):
        raise PublishedError(f"{where}: value: a number for the status ok, and none for any other")
    return row | numbers


def _number(where: str, text: str) -> float | None:
    """Of a field; None where it is empty. Raises PublishedError."""
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        raise PublishedError(f"{where}: {text!r} is no number") from None
    if not math.isfinite(found):
        raise PublishedError(f"{where}: {text!r} is not finite")
    return found


def _row(figure: dict, match: Ours) -> dict:
    """A figure in the table's columns and in SI units, beside ours."""
    unit, factor = SI[figure["unit"]]
    value = math.nan if figure["value"] is None else figure["value"] * factor
    is_impossible = figure["impossible"].lower() == "true"
    doubt = figure["doubt"] or ("cannot be true" if is_impossible else "")
    # Of changes the ratio is that of what they change to.
    whole = 1 if figure["quantity"] in CHANGES else 0
    measured = whole + match.value
    # What is in doubt is listed, and compared with nothing.
    is_compared = measured and not doubt
    made = {
        "phase": PHASES.get(figure["phase"], ""),
        "variant": figure["implementation"],
        "statistic": figure["statistic"] or "value",
        "value": value,
        "unit": unit,
        "doubt": doubt,
        "measured": match.value,
        "cell": match.cell,
        "beside": match.beside,
        "ratio": (whole + value) / measured if is_compared else math.nan,
    }
    row = figure | made
    return {name: row[name] for name in TABLES["published"].names}


def _match(figure: dict, known: dict[Like, Ours]) -> Ours | None:
    """Ours beside a figure; of an effect what the same two places of ours make of it."""
    quantity = figure["quantity"]
    if quantity not in EFFECTS:
        return _first(figure, known)
    time = figure | {"quantity": "time", "statistic": "mean"}
    over, under = (_first(time | changed, known) for changed in EFFECTS[quantity])
    if over is None or under is None:
        return None
    ratio = over.value / under.value
    return over._replace(value=ratio - 1 if quantity in CHANGES else ratio)


def _first(figure: dict, known: dict[Like, Ours]) -> Ours | None:
    """Of the same mode, else of one that has the phase, too."""
    modes = (figure["mode"], "step", "forward-backward")
    found = (known.get(_like(figure, mode)) for mode in modes)
    return next(filter(None, found), None)


def _like(figure: dict, mode: str) -> Like:
    """All that ours must have in common with a figure."""
    quantity, statistic = figure["quantity"], figure["statistic"] or "value"
    if quantity == "sum":  # of numbers: it is the same on every machine
        return Like(quantity, statistic, part=figure["name"])
    whole = MODES[mode].whole if mode in MODES else ""
    part = figure["name"]
    if _is_cold(figure):
        part = "?" if figure["warmup"] is None else ours.WARM_UP.format(figure["warmup"])
    like = Like(
        quantity,
        statistic,
        size=figure["size"],
        context=figure["context"] or 0,
        batch=figure["batch"] or 0,
        precision=figure["precision"],
        phase=PHASES.get(figure["phase"]) or whole,
        mode=mode,
        part=part,
    )
    if figure["study"] != "attention" or not figure["d_head"]:
        return like
    options = ["mask=causal"] if figure["causal"] == "yes" else []
    for option, name in (("heads", "heads"), ("key_value_heads", "kv_heads")):
        if figure[name]:
            options.append(f"{option}={figure[name]:.0f}")
    return like._replace(
        size=f"d{figure['d_head']:.0f}",
        context=figure["length"] or 0,
        phase=figure["direction"],
        mode="",
        part="",
        implementation=ours.implementation_of(figure["implementation"]),
        options=" ".join(sorted(options)),
    )


def _is_cold(figure: dict) -> bool:
    """Whether the first steps of a process are in it."""
    is_early = figure["warmup"] is not None and figure["warmup"] < WARM
    is_timed = figure["quantity"] in ("time", "tokens per second")
    return is_timed and (figure["study"] == "warmup" or is_early)
