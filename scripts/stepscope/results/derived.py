"""Series that follow from measured ones: rates, and what is a token's; and what is faster than
anything can be."""

import numpy as np
from pandas import DataFrame

from stepscope.axes import FULL, is_step, option
from stepscope.formulas import flops

from . import alone, ceilings, data_sheets, models
from .cells import MeasuredCell, mapped, precision_of
from .tables import where

NUMBERS = ["median", "low", "high", "mean", "std"]
# FLOP/s of a device without a data sheet: several times what these promise of products in 4 bits.
FASTEST = 1e17
# Times a data sheet's peak: FLOP of a model of one's own are counted as if no mask saved any.
_MARGIN = 2


def impossible(cells: list[MeasuredCell], samples: DataFrame) -> dict[str, str]:
    """Cells with a step that multiplies faster than any device: why."""
    by_name = {cell.name: cell for cell in cells}
    whole = samples[samples["phase"] == samples["mode"].map(alone.WHOLE)]
    least = whole.groupby(["cell", "variant", "mode"])["seconds"].min().reset_index()
    found = {}
    for name, variant, mode, seconds in least.itertuples(index=False):
        cell = by_name[name]
        fastest = np.nanmin([FASTEST, _MARGIN * _data_sheet(cell, variant)])
        work = models.flop(cell, mode)
        if work > seconds * fastest * option(cell.spec, "devices"):
            said = f"{mode} of {seconds:.4g} s is {work / seconds:.4g} FLOP/s"
            found[name] = f"samples.csv is damaged: {said}, which no device reaches"
    return found


def _data_sheet(cell: MeasuredCell, variant: str) -> float:
    """FLOP/s that the data sheet promises in what a variant multiplies in; NaN where it does not
    say."""
    numbers = cell.built_in or precision_of(cell, variant)
    return data_sheets.peak_for_mfu(cell.hardware.get("gpu"), numbers)


def _tokens(cell: MeasuredCell) -> float:
    """Of a step; NaN where no model runs, and of what is one's own and takes none."""
    own = cell.own_model
    if is_step(cell.spec) or own.get("item"):
        return own["items"] if own.get("item") == "tokens" else np.nan
    return cell.spec["batch"] * cell.spec["context"] if "context" in cell.spec else np.nan


def batch_of(cell: MeasuredCell, length: int) -> float:
    """Sequences of a batch, NaN where there is none; a spec of attention may give tokens in its
    place."""
    spec = cell.spec
    if "tokens" in spec and length:
        return max(1, spec["tokens"] // length)
    return spec.get("batch", np.nan)


def rates(found: DataFrame, cells: list[MeasuredCell], bursts: ceilings.Bursts) -> list[DataFrame]:
    """FLOP a second of passes of attention; tokens and FLOP a second of whole steps, and the latter
    as shares: of the burst of a large product in their precision, and of the data sheet's peak.
    found: measured series with `alone_time`."""
    is_slowed = found["cell"].str.contains("/profile/")
    times = found[(found["limits"] != "") & ~is_slowed]

    def work(
        cell: MeasuredCell, variant: str, mode: str, length: int, direction: str
    ) -> dict[str, float]:
        """What there is in it of each quantity, and whether the burst is another card's."""
        spec = cell.spec
        if length:
            batch, heads = int(batch_of(cell, length)), spec.get("heads") or 1
            mask, window = spec.get("mask", FULL), spec.get("window") or None
            place = (batch, heads, length, spec["d_head"], mask, direction, window)
            return {"rate": flops.attention_flops(*place)}
        numbers = cell.built_in or precision_of(cell, variant)
        burst, card = bursts.get((cell.place["machine"], numbers), (np.nan, None))
        sheet = _data_sheet(cell, variant)
        narrow = data_sheets.rate(cell.hardware.get("gpu"), "matmul", numbers)
        flop = models.flop(cell, mode)
        causal = np.nan
        if mode == "step" and cell.shape:
            causal = flops.model_flops(cell.shape, spec["batch"], spec["context"], True)
        return {
            "tokens_per_second": _tokens(cell),
            "flops": flop,
            "share_of_ceiling": flop / burst,
            "mfu": flop / sheet,
            "mfu_causal": causal / sheet,
            "mfu_narrow": flop / narrow if narrow != sheet else np.nan,
            "across_cards": card != cell.hardware.get("gpu_uuid"),
        }

    of_each = mapped(times, cells, work, "variant", "mode", "length", "direction")
    known = DataFrame(list(of_each), times.index)
    quantities = known.columns.drop("across_cards", errors="ignore")
    return [_rate(times, known, quantity) for quantity in quantities]


def _rate(times: DataFrame, known: DataFrame, quantity: str) -> DataFrame:
    """Work / time, with the interval's ends the other way round; rows without work are left out."""
    work = known[quantity]
    made = times.assign(
        quantity=quantity,
        median=work / times["median"],
        low=work / times["high"],
        high=work / times["low"],
        mean=work / times["mean"],
        std=np.nan,
        limits="",
        across_cards=known["across_cards"] if quantity == "share_of_ceiling" else None,
    )
    return made[work.notna()]


def energy_of_tokens(found: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """Joules a token, of cells that run a model. Those of a step on several devices are of all,
    each of which has a batch."""
    joules = where(found, quantity="energy")
    tokens = mapped(joules, cells, lambda cell: _tokens(cell) * option(cell.spec, "devices"))
    of_token = joules[NUMBERS].div(tokens, axis=0)
    return joules.assign(quantity="energy_token", **of_token).dropna(subset="median")
