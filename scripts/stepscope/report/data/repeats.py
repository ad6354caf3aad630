"""How much the median of unchanged cells differs from one process to the next."""

import pandas as pd

from stepscope.axes import PHASES

POINT = ["hardware", "size", "context", "batch", "precision", "mode", "options"]


def spreads(timing: pd.DataFrame) -> pd.DataFrame:
    """A row a repeated point and phase: `medians` (ms, by run), `spread` = (max - min) / median of the runs' medians,
    `interval` = the widest interval within one run over its median. Both are shares of one. `cells`: of these runs."""
    columns = [*POINT, "parameters", "phase", "medians", "spread", "interval", "cells"]
    repeated = timing[timing.groupby(POINT, dropna=False)["cell"].transform("size") > 1] if len(timing) else timing
    rows = []
    for _, runs in repeated.groupby(POINT, sort=False, dropna=False) if len(repeated) else ():
        for phase in (phase for phase in PHASES if f"{phase}_median_ms" in runs):
            medians = runs[f"{phase}_median_ms"].dropna()
            if len(medians) < 2:
                continue
            width = (runs[f"{phase}_ci_high_ms"] - runs[f"{phase}_ci_low_ms"]) / runs[f"{phase}_median_ms"]
            point = runs.iloc[0][[*POINT, "parameters"]].to_dict()
            spread = (medians.max() - medians.min()) / medians.median()
            own = {"phase": phase, "medians": list(medians), "spread": spread, "interval": width.max()}
            rows.append({**point, **own, "cells": tuple(runs.loc[medians.index, "cell"])})
    return pd.DataFrame(rows, columns=columns)


def typical_spreads(found: pd.DataFrame, phase: str) -> dict[tuple[str, str], float]:
    """The largest spread between runs of each (hardware, precision), in one phase."""
    own = found[found["phase"] == phase]
    return {key: float(part["spread"].max()) for key, part in own.groupby(["hardware", "precision"])}
