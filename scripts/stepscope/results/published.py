"""published.csv: figures that others published, checked and in SI units, each beside ours where a
cell is there."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from stepscope.axes import DIRECTIONS, IMPLEMENTATIONS, MODES, PHASES
from stepscope.model.formats import PRECISIONS
from stepscope.results.schema import TABLES

SI = {  # unit of a published value: (SI unit, how many of that it is)
    **{"s": ("s", 1.0), "ms": ("s", 1e-3), "us": ("s", 1e-6), "ns": ("s", 1e-9)},
    **{
        "bytes": ("B", 1.0),
        "MB": ("B", 1e6),
        "MiB": ("B", 2.0**20),
        "GB": ("B", 1e9),
        "GiB": ("B", 2.0**30),
    },
    **{"TFLOP/s": ("FLOP/s", 1e12), "tokens/s": ("token/s", 1.0)},
    **{
        "%": ("1", 0.01),
        "share": ("1", 1.0),
        "ratio": ("1", 1.0),
        "count": ("1", 1.0),
        "": ("1", 1.0),
    },
}
QUANTITIES = {  # published quantity: ours
    **{"time": "time", "rate": "rate", "tokens per second": "tokens_per_second"},
    **{"peak allocated": "peak_allocated", "peak reserved": "peak_reserved"},
    "memory before backward": "before_backward",
}
REQUIRED = ("source", "gpu", "study", "quantity", "value", "unit")
NUMBERS = {
    *(
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
    ),
    *("d_head", "heads", "kv_heads", "length"),
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
    *(
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
    ),
    *("note", "doubt"),
}
OTHERS = "others"  # whatever implementation of attention
_BITS = {"fp16": "16 bits", "bf16": "16 bits"}  # tensor cores multiply both at one rate


class PublishedError(ValueError):
    """A file of published figures is wrong; the message is one line that names file, line and
    column."""


def rows(paths: list[Path], series: pd.DataFrame) -> list[dict]:
    """All files' rows in the columns of the table, one for each machine that has ours (series.of())
    beside a figure."""
    figures = [figure for path in paths for figure in read(path)]
    sizes = {place[1] for figure in figures for place in _places(figure)}
    by_machine = series[series["size"].isin(sizes)].groupby("machine", sort=False)
    known = [_known(own) for _, own in by_machine]
    return [row for figure in figures for row in _rows(figure, known)]


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
    try:
        found = float(text) if text else None
    except ValueError:
        raise PublishedError(f"{where}: {text!r} is no number") from None
    if found is not None and not math.isfinite(found):
        raise PublishedError(f"{where}: {text!r} is not finite")
    return found


def _rows(figure: dict, known: list[dict[tuple, tuple]]) -> list[dict]:
    found = [next((own[key] for key in _places(figure) if key in own), None) for own in known]
    return [_row(figure, *ours) for ours in found if ours] or [_row(figure, "", {})]


def _row(figure: dict, cell: str, numbers: dict[str, float]) -> dict:
    unit, factor = SI[figure["unit"]]
    value = None if figure["value"] is None else figure["value"] * factor
    statistic = figure["statistic"] or "value"
    measured = numbers.get(statistic, numbers.get("median"))
    is_impossible = figure["impossible"].lower() == "true"
    made = {
        "phase": PHASES.get(figure["phase"], ""),
        "variant": figure["implementation"],
        "statistic": statistic,
        "value": value,
        "unit": unit,
        "doubt": figure["doubt"] or ("cannot be true" if is_impossible else ""),
        "cell": cell,
        "measured": measured,
        "ratio": value / measured if value is not None and measured else None,
    }
    return {
        name: made[name] if name in made else figure[name] for name in TABLES["published"].names
    }


def _places(figure: dict) -> Iterator[tuple]:
    """Keys of _known() under which ours may be: of the same mode, else of a whole step, with
    nothing changed."""
    quantity = QUANTITIES.get(figure["quantity"])
    if figure["study"] == "attention" and figure["d_head"]:
        heads = [
            f"{name}={figure[key]:.0f}"
            for name, key in (("heads", "heads"), ("key_value_heads", "kv_heads"))
            if figure[key]
        ]
        options = frozenset([*heads, *["mask=causal"] * (figure["causal"] == "yes")])
        is_ours = figure["implementation"] in IMPLEMENTATIONS
        precision = (
            figure["precision"] if is_ours else _BITS.get(figure["precision"], figure["precision"])
        )
        variant = figure["implementation"] if is_ours else OTHERS
        size = f"d{figure['d_head']:.0f}"
        yield (
            quantity,
            size,
            figure["length"],
            figure["batch"],
            precision,
            variant,
            options,
            "",
            figure["direction"],
        )
    else:
        for mode in (figure["mode"], "step", "forward-backward"):
            phase = PHASES.get(figure["phase"]) or (MODES[mode].whole if mode in MODES else "")
            place = (figure["size"], figure["context"], figure["batch"], figure["precision"])
            yield (quantity, *place, "step", frozenset(), mode, phase)


def _known(series: pd.DataFrame) -> dict[tuple, tuple]:
    """Key of _places(): (cell, statistic: value), of timing and attention; of OTHERS our
    fastest."""
    wanted = series["quantity"].isin(QUANTITIES.values()) & series["study"].isin(
        ["timing", "attention"]
    )
    found: dict[tuple, tuple] = {}
    for row in series[wanted & (series["status"] == "ok")].to_dict("records"):
        options = frozenset(
            part for part in row["options"].split() if not part.startswith("tokens=")
        )
        numbers = {name: row[name] for name in ("median", "mean", "std") if row[name] == row[name]}
        is_pass = row["study"] == "attention"
        place = (row["size"], row["length"] if is_pass else row["context"], row["batch"])
        end = (options, row["mode"], row["phase"])
        found[(row["quantity"], *place, row["precision"], row["variant"], *end)] = (
            row["cell"],
            numbers,
        )
        best = (
            row["quantity"],
            *place,
            _BITS.get(row["precision"], row["precision"]),
            OTHERS,
            *end,
        )
        sign = -1 if row["quantity"] == "rate" else 1
        if is_pass and (
            best not in found or sign * numbers["median"] < sign * found[best][1]["median"]
        ):
            found[best] = (row["cell"], numbers)
    return found
