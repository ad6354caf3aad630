"""published.csv: figures that others published, checked and in SI units, each beside ours where a
cell is there."""

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path

import fastjsonschema
import numpy as np
from pandas import DataFrame, Series

from stepscope.axes import DIRECTIONS, PHASES
from stepscope.config.model_cells import SHAPE
from stepscope.formulas.flops import model_flops
from stepscope.model.formats import PRECISIONS
from stepscope.model.shape import ModelShape
from stepscope.results import alone, data_sheets, ours, records
from stepscope.results.tables import where

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
# Published effect: what of the figure is another in the time above the line, and below it.
EFFECTS = {
    "speed-up": ({"precision": "fp32"}, {}),
    "ratio to forward": ({}, {"phase": "forward"}),
    "change by TF32": ({}, {"precision": "fp32"}),
}
CHANGES = ("change by TF32",)  # of which 0 is no change
NAMES = {
    "unit": [*SI],
    "precision": ["", *PRECISIONS],
    "phase": ["", *PHASES],
    "direction": ["", *DIRECTIONS],
}
FIELDS = json.loads(Path(__file__).with_name("published.schema.json").read_text())
for _name, _known in NAMES.items():
    FIELDS["properties"][_name]["enum"] = _known
NUMBERS = [name for name, field in FIELDS["properties"].items() if "$ref" in field]
EMPTY = dict.fromkeys(FIELDS["properties"], "") | dict.fromkeys(NUMBERS, math.nan)
_valid = fastjsonschema.compile(FIELDS)


class PublishedError(ValueError):
    """A file of published figures is wrong; the message is one line that names file, line and
    column."""


def rows(paths: list[Path], tables: Mapping[str, DataFrame]) -> DataFrame:
    """All files' rows in the columns of the table and in SI units, one for each machine that has
    ours beside a figure. tables: those that ours.known() reads, with the places of their cells."""
    read_from = [figure for path in paths for figure in read(path)]
    figures = DataFrame(read_from, columns=[*EMPTY]).astype(dict.fromkeys(NUMBERS, float))
    figures["mfu"] = [_mfu(figure) for figure in read_from]
    figures["statistic"] = figures["statistic"].replace("", "value")
    machines = tables["series"]["machine"].drop_duplicates()
    of_machines = figures.reset_index().merge(machines, "cross")
    matches = _beside(of_machines, ours.known(tables)).set_index(of_machines["index"])
    found = figures.join(matches.dropna(subset="measured"))
    units = found["unit"].map(SI)
    value = found["value"] * units.str[1]
    is_impossible = found["impossible"].str.lower() == "true"
    doubt = found["doubt"].mask((found["doubt"] == "") & is_impossible, "cannot be true")
    # Of changes the ratio is that of what they change to.
    whole = found["quantity"].isin(CHANGES).astype(float)
    measured = (whole + found["measured"]).replace(0, math.nan)
    made = found.assign(
        phase=found["phase"].map(PHASES),
        variant=found["implementation"],
        value=value,
        unit=units.str[0],
        doubt=doubt,
        # What is in doubt is listed, and compared with nothing.
        ratio=((whole + value) / measured).where(doubt == ""),
    )
    return made.fillna({"cell": "", "beside": ""})


def _mfu(figure: dict) -> float:
    """Of a training step whose throughput or FLOP/s are given, as a share of the peak that ours is
    a share of; NaN of all else, and for a shape that no model has. FLOP of a throughput are those
    of model_flops(), whatever its publisher counts."""
    peak = data_sheets.peak_for_mfu(figure["gpu"], figure["precision"])
    if figure["mode"] != "step" or not peak:
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


def _beside(figures: DataFrame, known: DataFrame) -> DataFrame:
    """OURS beside each figure; of an effect what the same two places of ours make of it."""
    found = _first(figures, known)
    for quantity, (above, below) in EFFECTS.items():
        time = where(figures, quantity=quantity).assign(quantity="time", statistic="mean")
        over, under = (_first(time.assign(**changed), known) for changed in (above, below))
        ratio = over["measured"] / under["measured"]
        whole = 1 if quantity in CHANGES else 0
        found.loc[time.index] = over.assign(measured=ratio - whole)
    return found


def _first(figures: DataFrame, known: DataFrame) -> DataFrame:
    """Of the same mode, else of one that has the phase, too."""
    found = _of_mode(figures, known)
    for mode in ("step", "forward-backward"):
        found = found.combine_first(_of_mode(figures.assign(mode=mode), known))
    return found


def _of_mode(figures: DataFrame, known: DataFrame) -> DataFrame:
    """OURS that has all in common with a figure."""
    # The first steps of a process are in a cold figure.
    is_timed = figures["quantity"].isin(["time", "tokens per second"])
    is_cold = is_timed & ((figures["study"] == "warmup") | (figures["warmup"] < WARM))
    whole = figures["mode"].map(alone.WHOLE)
    likes = figures.assign(
        part=figures["name"].mask(is_cold, figures["warmup"].map(ours.WARM_UP.format)),
        phase=figures["phase"].map(PHASES).fillna(whole),
        implementation="",
        options="",
    )
    is_pass = (figures["study"] == "attention") & figures["d_head"].notna()
    of_passes = likes[is_pass]
    likes[is_pass] = of_passes.assign(
        size=of_passes["d_head"].map("d{:.0f}".format),
        context=of_passes["length"],
        phase=of_passes["direction"],
        mode="",
        part="",
        implementation=figures["implementation"].map(ours.implementation_of),
        options=_options(of_passes),
    )
    likes = likes.fillna({name: ours.LIKE[name] for name in ("phase", "context", "batch")})
    return likes.join(known, on=[*ours.LIKE])[ours.OURS]


def _options(passes: DataFrame) -> Series:
    """Of passes of attention, as paths of cells have them, sorted."""
    heads = _texts(" heads={:.0f}", passes["heads"])
    of_keys = _texts(" key_value_heads={:.0f}", passes["kv_heads"])
    mask = np.where(passes["causal"] == "yes", " mask=causal", "")
    return (heads + of_keys + mask).str.strip()


def _texts(form: str, numbers: Series) -> Series:
    """Of each number, "" where it is missing."""
    # Without a row, map() leaves the numbers' type, to which no text can be added.
    return numbers.map(form.format).astype("str").where(numbers.notna(), "")
