"""published.csv: figures that others published, checked and in SI units, each beside ours where a
cell is there."""

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path

import fastjsonschema
from pandas import DataFrame

from stepscope.axes import DIRECTIONS, PHASES
from stepscope.config.model_cells import SHAPE
from stepscope.formulas.flops import model_flops
from stepscope.model.formats import PRECISIONS
from stepscope.model.shape import ModelShape

from . import alone, data_sheets, ours, records

_FACTORS = {  # SI unit: how many of that published ones are
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "B": {"bytes": 1.0, "MB": 1e6, "MiB": 2.0**20, "GB": 1e9, "GiB": 2.0**30},
    "FLOP/s": {"TFLOP/s": 1e12},
    "token/s": {"tokens/s": 1.0},
    "1": {"%": 0.01, "share": 1.0, "ratio": 1.0, "count": 1.0, "": 1.0},
}
SI: dict[str, tuple[str, float]] = {}  # unit of a published value: its SI unit and factor
for _unit, _factors in _FACTORS.items():
    SI |= {name: (_unit, factor) for name, factor in _factors.items()}
WARM = 5  # steps of warm-up from which on a mean is one of a warm step
CHANGE = "change by TF32"  # of which 0 is no change
# Published effect: what of the figure is another in the time above the line, and below it.
EFFECTS: dict[str, tuple[dict, dict]] = {
    "speed-up": ({"precision": "fp32"}, {}),
    "ratio to forward": ({}, {"phase": "forward"}),
    CHANGE: ({}, {"precision": "fp32"}),
}
FIELDS = json.loads(Path(__file__).with_name("published.schema.json").read_text())
_properties = FIELDS["properties"]
_properties["unit"]["enum"] = [*SI]
_properties["precision"]["enum"] = ["", *PRECISIONS]
_properties["phase"]["enum"] = ["", *PHASES]
_properties["direction"]["enum"] = ["", *DIRECTIONS]
NUMBERS = [name for name, field in _properties.items() if "$ref" in field]
EMPTY = dict.fromkeys(_properties, "") | dict.fromkeys(NUMBERS, math.nan)
_valid = fastjsonschema.compile(FIELDS)


class PublishedError(ValueError):
    """A file of published figures is wrong; the message is one line that names file, line and
    column."""


def rows(paths: list[Path], tables: Mapping[str, DataFrame]) -> DataFrame:
    """All files' rows in SI units, one for each machine that has ours beside a figure. tables:
    those that ours.known() reads, with the places of their cells."""
    known = ours.known(tables).to_dict("index")
    machines = tables["series"]["machine"].unique()
    found = []
    for path in paths:
        for figure in read(path):
            figure["statistic"] = figure["statistic"] or "value"
            beside = [_beside(figure | {"machine": machine}, known) for machine in machines]
            found += [_row(figure, match) for match in filter(None, beside)] or [_row(figure, {})]
    return DataFrame(found)


def _row(figure: dict, match: dict) -> dict:
    """Of the table. match: ours.OURS, {} where none is beside the figure."""
    unit, factor = SI[figure["unit"]]
    value = figure["value"] * factor
    # Of changes the ratio is that of what they change to.
    whole = figure["quantity"] == CHANGE
    measured = whole + match.get("measured", math.nan)
    # What is in doubt is listed, and compared with nothing.
    is_compared = measured and not figure["doubt"]
    made = {
        "phase": PHASES.get(figure["phase"]),
        "variant": figure["implementation"],
        "value": value,
        "unit": unit,
        "ratio": (whole + value) / measured if is_compared else math.nan,
        "mfu": _mfu(figure),
    }
    return figure | match | made


def _mfu(figure: dict) -> float:
    """Of a training step whose throughput or FLOP/s are given, as a share of the peak that ours is
    a share of; NaN of all else, and for a shape that no model has. FLOP of a throughput are those
    of model_flops(), whatever its publisher counts."""
    peak = data_sheets.peak_for_mfu(figure["gpu"], figure["precision"])
    if figure["mode"] != "step":
        return math.nan
    if figure["quantity"] == "rate":
        return figure["value"] * SI[figure["unit"]][1] / peak
    if figure["quantity"] != "tokens per second":
        return math.nan
    counts = figure | {"key_value_heads": figure["kv_heads"]}
    named = (*SHAPE, "vocab_size", "key_value_heads")
    known = {name: int(counts[name]) for name in named if not math.isnan(counts[name])}
    try:
        context = int(figure["context"])
        a_token = model_flops(ModelShape.of(known), 1, context) / context
    except (KeyError, TypeError, ValueError):
        return math.nan
    return figure["value"] * a_token / peak


def read(path: Path) -> list[dict]:
    """The rows of a file: numbers, NaN where empty, and text. Raises PublishedError for what it may
    not hold."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, restkey="more fields than names", strict=True)
            return [_checked(values) for values in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PublishedError(f"{path}: no CSV file of published figures: {error}") from None
    except fastjsonschema.JsonSchemaValueException as error:
        said = records.complaint(error)
        raise PublishedError(f"{path}, line {reader.line_num}: {said}") from None


def _checked(values: dict) -> dict:
    """A row's fields as numbers and text. Raises JsonSchemaValueException."""
    numbers = {name: _number(values.pop(name)) for name in NUMBERS if name in values}
    given = {name: number for name, number in numbers.items() if number != ""}
    return EMPTY | _valid(values | given)


def _number(text: str | None) -> object:
    """What a field says, itself where it is no finite number."""
    try:
        found = float(text or "")
    except ValueError:
        return text
    return found if math.isfinite(found) else text


def _beside(figure: dict, known: dict) -> dict:
    """OURS beside a figure; of an effect what the same two places of ours make of it. {}: none."""
    effect = EFFECTS.get(figure["quantity"])
    if not effect:
        return _alike(figure, known)
    time = figure | {"quantity": "time", "statistic": "mean"}
    over, under = (_alike(time | changed, known) for changed in effect)
    if not over or not under:
        return {}
    whole = figure["quantity"] == CHANGE
    return over | {"measured": over["measured"] / under["measured"] - whole}


def _alike(figure: dict, known: dict) -> dict:
    """OURS that has all in common with a figure: of the same mode, else of one that has the phase,
    too."""
    for mode in (figure["mode"], "step", "forward-backward"):
        found = known.get(_like(figure, mode))
        if found:
            return found
    return {}


def _like(figure: dict, mode: str) -> tuple:
    """What must be the same, as ours.LIKE."""
    if figure["study"] == "attention" and not math.isnan(figure["d_head"]):
        place = {
            "size": f"d{figure['d_head']:.0f}",
            "context": figure["length"],
            "phase": figure["direction"],
            "mode": "",
            "implementation": ours.implementation_of(figure["implementation"]),
            "options": _options(figure),
        }
    else:
        # The first steps of a process are in a cold figure.
        is_timed = figure["quantity"] in ("time", "tokens per second")
        is_cold = is_timed and (figure["study"] == "warmup" or figure["warmup"] < WARM)
        part = ours.PARTS.get(figure["name"], figure["name"])
        place = {
            "phase": PHASES.get(figure["phase"]) or alone.WHOLE.get(mode, ""),
            "mode": mode,
            "part": ours.WARM_UP.format(figure["warmup"]) if is_cold else part,
            "implementation": "",
        }
    # NaN, which no other number equals, is what is not said.
    said = {name: value for name, value in (figure | place).items() if value == value}
    return tuple((ours.LIKE | said)[name] for name in ours.LIKE)


def _options(figure: dict) -> str:
    """Of a pass of attention, as paths of cells have them, sorted."""
    numbers = {"heads": figure["heads"], "key_value_heads": figure["kv_heads"]}
    found = [f"{name}={each:.0f}" for name, each in numbers.items() if not math.isnan(each)]
    if figure["causal"] == "yes":
        found.append("mask=causal")
    return " ".join(found)
