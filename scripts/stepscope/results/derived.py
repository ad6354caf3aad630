"""Series that follow from measured ones: rates, what is a token's, and what is a launch's."""

import numpy as np
import pandas as pd

from stepscope.axes import FULL
from stepscope.formulas import flops
from stepscope.results import alone, ceilings, data_sheets, models
from stepscope.results.cells import MeasuredCell, precision_of
from stepscope.results.mapped import mapped

NUMBERS = ("median", "low", "high", "mean", "std")


def rows(
    found: pd.DataFrame, cells: list[MeasuredCell], least: ceilings.Least
) -> list[pd.DataFrame]:
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


def _tokens_of(cells: list[MeasuredCell]) -> dict[str, int]:
    """Tokens of a step of each cell that runs a model."""
    return {
        cell.name: cell.spec["batch"] * cell.spec["context"]
        for cell in cells
        if "context" in cell.spec
    }


def _of_steps(
    found: pd.DataFrame, cells: list[MeasuredCell], bursts: ceilings.Bursts
) -> list[pd.DataFrame]:
    """Tokens and FLOP a second of whole steps, and the latter as shares: of the burst of a large
    product in their precision, and of the data sheet's peak."""
    by_name, tokens_of = {cell.name: cell for cell in cells}, _tokens_of(cells)
    is_whole = found["mode"].map(alone.WHOLE) == found["phase"]
    is_of_model = found["cell"].isin(tokens_of)
    steps = found[(found["quantity"] == "time") & is_whole & is_of_model]

    def burst(cell: str, variant: str) -> ceilings.Burst:
        own = by_name[cell]
        return bursts.get((own.place["machine"], precision_of(own, variant)), ceilings.UNKNOWN)

    def sheet(cell: str, variant: str) -> float | None:
        return data_sheets.peak_for_mfu(by_name[cell].gpu, precision_of(by_name[cell], variant))

    tokens = steps["cell"].map(tokens_of)
    work = mapped(steps, ["cell", "mode"], lambda cell, mode: models.flop(by_name[cell], mode))
    work = work.astype(float)
    ceiling = mapped(steps, ["cell", "variant"], burst)
    card = steps["cell"].map({cell.name: cell.card for cell in cells})
    is_elsewhere = ceiling.map(lambda each: each.card) != card
    rate = ceiling.map(lambda each: each.rate).astype(float)
    peak = mapped(steps, ["cell", "variant"], sheet).astype(float)
    marked = steps.assign(across_cards=is_elsewhere)
    return [
        _rates(steps, tokens, "tokens_per_second", "token/s"),
        _rates(steps, work, "flops", "FLOP/s"),
        _rates(marked, work / rate, "share_of_ceiling", "1"),
        _rates(steps, work / peak, "mfu", "1"),
    ]


def _of_passes(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """FLOP a second of passes of attention."""
    by_name = {cell.name: cell for cell in cells}
    passes = found[(found["quantity"] == "time") & (found["length"] > 0)]
    work = mapped(
        passes,
        ["cell", "length", "direction"],
        lambda cell, length, direction: _attention_flops(by_name[cell], length, direction),
    )
    return _rates(passes, work, "rate", "FLOP/s")


def _attention_flops(cell: MeasuredCell, length: int, direction: str) -> float:
    spec = cell.spec
    return flops.attention_flops(
        spec["batch"] if "batch" in spec else max(1, spec["tokens"] // length),
        spec.get("heads") or 1,
        length,
        spec["d_head"],
        spec.get("mask", FULL),
        direction,
        spec.get("keys") or None,
        spec.get("window") or None,
    )


def _rates(times: pd.DataFrame, work: pd.Series, quantity: str, unit: str) -> pd.DataFrame:
    """work / time, with the interval's ends the other way round; rows without work are left out."""
    made = times.assign(
        quantity=quantity,
        unit=unit,
        median=work / times["median"],
        low=work / times["high"],
        high=work / times["low"],
        mean=work / times["mean"],
        std=np.nan,
        limits="",
    )
    return made[work.notna()]


def _energy_of_tokens(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    tokens_of = _tokens_of(cells)
    joules = found[(found["quantity"] == "energy") & found["cell"].isin(tokens_of)]
    tokens = joules["cell"].map(tokens_of)
    of_token = {name: joules[name] / tokens for name in NUMBERS}
    return joules.assign(quantity="energy_token", **of_token)


def _gaps(found: pd.DataFrame) -> pd.DataFrame:
    """Seconds a launch that the whole step takes beyond what the GPU works for."""
    of_steps = found[(found["mode"] == "step") & found["phase"].isin(["step", ""])]
    index = ["cell", "variant"]
    steps = of_steps[(of_steps["quantity"] == "time") & (of_steps["phase"] == "step")]
    places = pd.MultiIndex.from_frame(steps[index])
    counted = of_steps[of_steps["quantity"] == "launches"].drop_duplicates(index)
    launches = counted.set_index(index)["median"].reindex(places).to_numpy()
    times_alone = alone.best(of_steps).groupby(level=index).first().reindex(places).to_numpy()
    gap = (steps["median"].to_numpy() - times_alone) / launches
    unknown = dict.fromkeys(("low", "high", "mean", "std"), np.nan)
    made = steps.assign(quantity="launch_gap", median=gap, limits="", **unknown)
    return made[np.isfinite(gap)]
