"""Series that follow from measured ones: rates, and what is a token's; and what is faster than
anything can be."""

import numpy as np
from pandas import DataFrame, Series

from stepscope.axes import FULL, is_step, option
from stepscope.formulas import flops
from stepscope.results import alone, ceilings, data_sheets, models
from stepscope.results.cells import MeasuredCell, mapped, precision_of
from stepscope.results.tables import where

NUMBERS = ["median", "low", "high", "mean", "std"]
# FLOP/s of a device without a data sheet: several times what these promise of products in 4 bits.
FASTEST = 1e17
# Times a data sheet's peak: FLOP of a model of one's own are counted as if no mask saved any.
_MARGIN = 2


def rows(found: DataFrame, cells: list[MeasuredCell], least: Series) -> list[DataFrame]:
    """All of them. found: measured series with `alone_time`; least: ceilings.least_times()."""
    return [
        *_rates(found, cells, ceilings.bursts(cells, least)),
        _energy_of_tokens(found, cells),
        ceilings.rows(found, cells, least),
    ]


def beyond(found: DataFrame) -> list[str]:
    """A line for each series that is faster than its ceiling, which is a defect of the ceiling."""
    wrong = found[(found["quantity"] == "share_of_ceiling") & (found["median"] > 1)]
    return [
        f"{row['cell']} ({row['variant']}, {row['phase']}) reached {100 * row['median']:.0f} % of"
        f" the burst ceiling of {row['precision']}: the ceiling is wrong; measure the ceilings"
        " again"
        for row in wrong.to_dict("records")
    ]


def impossible(cells: list[MeasuredCell], samples: DataFrame) -> dict[str, str]:
    """Cells with a step that multiplies faster than any device: why."""
    by_name = {cell.name: cell for cell in cells if cell.record}
    whole = samples[samples["phase"] == samples["mode"].map(alone.WHOLE)]
    least = whole.groupby(["cell", "variant", "mode"])["seconds"].min().reset_index()
    found = {}
    for name, variant, mode, seconds in least.itertuples(index=False):
        cell = by_name[name]
        sheet = _data_sheet(cell, variant)
        fastest = _MARGIN * sheet if sheet else FASTEST
        work = models.flop(cell, mode)
        if work and seconds < work / (cell.spec.get("devices", 1) * fastest):
            said = f"{mode} of {seconds:.4g} s is {work / seconds:.4g} FLOP/s"
            found[name] = f"samples.csv is damaged: {said}, which no device reaches"
    return found


def _data_sheet(cell: MeasuredCell, variant: str) -> float | None:
    """FLOP/s that the data sheet promises in the precision of a variant; None where the model is
    built in another type."""
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


def _rates(found: DataFrame, cells: list[MeasuredCell], bursts: ceilings.Bursts) -> list[DataFrame]:
    """FLOP a second of passes of attention; tokens and FLOP a second of whole steps, and the latter
    as shares: of the burst of a large product in their precision, and of the data sheet's peak."""
    is_slowed = found["cell"].str.contains("/profile/")
    times = found[(found["limits"] != "") & ~is_slowed]

    def work(
        cell: MeasuredCell, variant: str, mode: str, length: int, direction: str
    ) -> dict[str, float]:
        """What there is in it of each quantity, and whether the burst is another card's."""
        if length:
            return {"rate": _attention_flops(cell, length, direction)}
        numbers = cell.built_in or precision_of(cell, variant)
        burst, card = bursts.get((cell.place["machine"], numbers), (np.nan, None))
        sheet = _data_sheet(cell, variant) or np.nan
        flop = models.flop(cell, mode) or np.nan
        narrow = data_sheets.rate(cell.hardware.get("gpu"), "matmul", numbers) or np.nan
        return {
            "tokens_per_second": _tokens(cell),
            "flops": flop,
            "share_of_ceiling": flop / burst,
            "mfu": flop / sheet,
            "mfu_causal": _causal_flop(cell, mode) / sheet,
            "mfu_narrow": flop / narrow if narrow != sheet else np.nan,
            "across_cards": card != cell.hardware.get("gpu_uuid"),
        }

    of_each = mapped(times, cells, work, "variant", "mode", "length", "direction")
    known = DataFrame(list(of_each), times.index)
    rates = []
    for quantity in known.columns.drop("across_cards", errors="ignore"):
        rate = _rate(times, known[quantity], quantity)
        if quantity == "share_of_ceiling":
            rate["across_cards"] = known["across_cards"][rate.index]
        rates.append(rate)
    return rates


def _causal_flop(cell: MeasuredCell, mode: str) -> float:
    """As models.flop(), of a size and its whole steps alone, with half of attention's scores."""
    if mode != "step" or cell.shape is None:
        return np.nan
    place = cell.spec["batch"], cell.spec["context"]
    return flops.model_flops(cell.shape, *place, is_causal_half=True)


def _attention_flops(cell: MeasuredCell, length: int, direction: str) -> float:
    """FLOP of a pass over so many positions."""
    spec = cell.spec
    return flops.attention_flops(
        int(batch_of(cell, length)),
        spec.get("heads") or 1,
        length,
        spec["d_head"],
        spec.get("mask", FULL),
        direction,
        spec.get("window") or None,
    )


def _rate(times: DataFrame, work: Series, quantity: str) -> DataFrame:
    """work / time, with the interval's ends the other way round; rows without work are left out."""
    made = times.assign(
        quantity=quantity,
        median=work / times["median"],
        low=work / times["high"],
        high=work / times["low"],
        mean=work / times["mean"],
        std=np.nan,
        limits="",
    )
    return made[work.notna()]


def _energy_of_tokens(found: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """Joules a token, of cells that run a model. Those of a step on several devices are of all,
    each of which has a batch."""

    def tokens(cell: MeasuredCell) -> float:
        return _tokens(cell) * option(cell.spec, "devices")

    joules = where(found, quantity="energy")
    of_token = joules[NUMBERS].div(mapped(joules, cells, tokens), axis=0)
    return joules.assign(quantity="energy_token", **of_token).dropna(subset="median")
