"""Series that follow from measured ones: rates, what is a token's, and what is a launch's."""

import numpy as np
import pandas as pd

from stepscope.axes import FULL, is_step, option
from stepscope.formulas import flops
from stepscope.results import alone, ceilings, data_sheets, models
from stepscope.results.cells import MeasuredCell, precision_of
from stepscope.results.mapped import beside, mapped
from stepscope.results.tables import where

NUMBERS = ["median", "low", "high", "mean", "std"]


def rows(found: pd.DataFrame, cells: list[MeasuredCell], least: pd.Series) -> list[pd.DataFrame]:
    """All of them. found: measured series with `alone_time`; least: ceilings.least_times()."""
    return [
        *_of_steps(found, cells, ceilings.bursts(cells, least)),
        _of_passes(found, cells),
        _energy_of_tokens(found, cells),
        _gaps(found),
        ceilings.rows(found, cells, least),
    ]


def beyond(found: pd.DataFrame) -> list[str]:
    """A line for each series that is faster than its ceiling, which is a defect of the ceiling."""
    wrong = found[(found["quantity"] == "share_of_ceiling") & (found["median"] > 1)]
    return [
        f"{row['cell']} ({row['variant']}, {row['phase']}) reached {100 * row['median']:.0f} % of"
        f" the burst ceiling of {row['precision']}: the ceiling is wrong; measure the ceilings"
        " again"
        for row in wrong.to_dict("records")
    ]


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


def _of_steps(
    found: pd.DataFrame, cells: list[MeasuredCell], bursts: ceilings.Bursts
) -> list[pd.DataFrame]:
    """Tokens and FLOP a second of whole steps, and the latter as shares: of the burst of a large
    product in their precision, and of the data sheet's peak."""
    is_whole = found["mode"].map(alone.WHOLE) == found["phase"]
    is_slowed = found["cell"].str.contains("/profile/")
    steps = found[(found["quantity"] == "time") & is_whole & ~is_slowed]
    tokens = mapped(steps, cells, _tokens)
    is_of_model = mapped(steps, cells, lambda cell: "context" in cell.spec).astype(bool)
    steps = steps[is_of_model]
    tokens = tokens[steps.index]

    def peaks(cell: MeasuredCell, variant: str) -> tuple[float, float, bool]:
        """What the precision of a variant can reach at most, measured and by the data sheet, and
        whether the former was on another card."""
        precision = precision_of(cell, variant)
        burst, card = bursts.get((cell.place["machine"], precision), (np.nan, None))
        sheet = data_sheets.peak_for_mfu(cell.hardware.get("gpu"), precision)
        return burst, sheet or np.nan, card != cell.hardware.get("gpu_uuid")

    of_steps = list(mapped(steps, cells, peaks, "variant"))
    known = pd.DataFrame(of_steps, steps.index, ["burst", "sheet", "across_cards"])
    marked = steps.assign(across_cards=known["across_cards"])
    work = mapped(steps, cells, models.flop, "mode").astype(float)
    causal = mapped(steps, cells, _causal_flop, "mode").astype(float)
    return [
        _rates(steps, tokens, "tokens_per_second"),
        _rates(steps, work, "flops"),
        _rates(marked, work / known["burst"], "share_of_ceiling"),
        _rates(steps, work / known["sheet"], "mfu"),
        _rates(steps, causal / known["sheet"], "mfu_causal"),
    ]


def _causal_flop(cell: MeasuredCell, mode: str) -> float | None:
    """As models.flop(), of a size and its whole steps alone, with half of attention's scores."""
    if mode != "step" or cell.shape is None:
        return None
    place = cell.spec["batch"], cell.spec["context"]
    return flops.model_flops(cell.shape, *place, is_causal_half=True)


def _of_passes(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """FLOP a second of passes of attention."""
    passes = found[(found["quantity"] == "time") & (found["length"] > 0)]
    work = mapped(passes, cells, _attention_flops, "length", "direction")
    return _rates(passes, work, "rate")


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
        spec.get("keys") or None,
        spec.get("window") or None,
    )


def _rates(times: pd.DataFrame, work: pd.Series, quantity: str) -> pd.DataFrame:
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


def _energy_of_tokens(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """Joules a token, of cells that run a model. Those of a step on several devices are of all,
    each of which has a batch."""

    def tokens(cell: MeasuredCell) -> float:
        return _tokens(cell) * option(cell.spec, "devices")

    joules = where(found, quantity="energy")
    of_token = joules[NUMBERS].div(mapped(joules, cells, tokens), axis=0)
    return joules.assign(quantity="energy_token", **of_token).dropna(subset="median")


def _gaps(found: pd.DataFrame) -> pd.DataFrame:
    """Seconds a launch that the whole step takes beyond what the GPU works for."""
    steps = where(found, quantity="time", mode="step", phase="step")
    launches = beside(steps, where(found, quantity="launches"), alone.STEP, "median")
    work = beside(steps, alone.best(found), alone.STEP, "median")
    gap = (steps["median"] - work) / launches
    unknown = dict.fromkeys(NUMBERS, np.nan) | {"median": gap}
    made = steps.assign(quantity="launch_gap", limits="", **unknown)
    return made[np.isfinite(gap)]
