"""What is said of two variants that a cell measured together: faster, slower, same or unclear.

The only place that judges. A difference counts beyond a margin, so the hypothesis that is tested is
a ratio within it (McCarthy and Smyth 2009, limma's `treat`); false discoveries are controlled over
the family (Benjamini and Hochberg).
"""

import numpy as np
import pandas as pd
from scipy import stats

MARGIN, MARGIN_OF_GPU = 0.02, 0.01  # of a ratio: any; both variants in turns and limited by the GPU
FALSE_DISCOVERIES = 0.05  # the share of `faster` and `slower` that may be none


def judged(
    found: pd.DataFrame, margins: np.ndarray, family: pd.Series | np.ndarray
) -> pd.DataFrame:
    """ratio, low, high, p (of a ratio within the margin, controlled over the family) and verdict of
    each pair.

    found: centre, error and degrees of freedom of ln(time of a / time of b) by
    statistics.between_processes().
    """
    margin = np.log1p(margins)
    degrees = found["degrees"].where(found["degrees"] > 0)
    beyond, within = (
        stats.t.sf((found["centre"].abs() + sign * margin) / found["error"], degrees)
        for sign in (-1, 1)
    )
    half = stats.t.ppf(0.975, degrees) * found["error"]
    p = pd.Series(np.minimum(beyond + within, 1), index=found.index)
    known = p.notna().to_numpy()
    family = np.asarray(family)
    for one in pd.unique(family):
        members = known & (family == one)
        p[members] = stats.false_discovery_control(p[members]) if members.any() else p[members]
    low, high = found["centre"] - half, found["centre"] + half
    real = p <= FALSE_DISCOVERIES
    words = [real & (low > margin), real & (high < -margin), (low > -margin) & (high < margin)]
    verdict = np.select(words, ["faster", "slower", "same"], "unclear")
    return pd.DataFrame(
        {
            "ratio": np.exp(found["centre"]),
            "low": np.exp(low),
            "high": np.exp(high),
            "p": p,
            "verdict": verdict,
        },
        index=found.index,
    )
