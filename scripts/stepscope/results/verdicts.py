"""What is said of two variants that a cell measured together: faster, slower, same or unclear.

The only place that judges. A difference counts beyond a margin, so the hypothesis that is tested is
a ratio within it (McCarthy and Smyth 2009, limma's `treat`); that the two are the same is
tested against a ratio beyond it (Schuirmann 1987, two one-sided tests); false discoveries of both
are controlled over the family (Benjamini and Hochberg).
"""

import numpy as np
import pandas as pd
from scipy import stats

# Of a ratio: of any pair; of one where both ran in turns and the GPU limited them.
MARGIN, MARGIN_OF_GPU = 0.02, 0.01
FALSE_DISCOVERIES = 0.05  # the share of `faster` and `slower`, and of `same`, that may be none


def judged(
    found: pd.DataFrame, margins: np.ndarray, family: pd.Series | np.ndarray
) -> pd.DataFrame:
    """ratio, low, high, p (of a ratio within the margin, controlled over the family) and verdict of
    each pair.

    found: centre, error and degrees of freedom of ln(time of a / time of b) by
    statistics.between_processes().
    """
    margin, centre, error = np.log1p(margins), found["centre"], found["error"]
    degrees = found["degrees"].where(found["degrees"] > 0)
    half = stats.t.ppf(0.975, degrees) * error
    low, high = centre - half, centre + half
    p = controlled(_p_within(centre, error, degrees, margin), family)
    is_real = p <= FALSE_DISCOVERIES
    is_faster, is_slower = is_real & (low > margin), is_real & (high < -margin)
    p_beyond = pd.Series(stats.t.sf((margin - centre.abs()) / error, degrees), found.index)
    is_within = (low > -margin) & (high < margin)
    is_same = is_within & (controlled(p_beyond, family) <= FALSE_DISCOVERIES)
    words = {"faster": is_faster, "slower": is_slower, "same": is_same}
    return pd.DataFrame(
        {
            "ratio": np.exp(centre),
            "low": np.exp(low),
            "high": np.exp(high),
            "p": p,
            "verdict": np.select(list(words.values()), list(words), "unclear"),
        },
        index=found.index,
    )


def _p_within(
    centre: pd.Series, error: pd.Series, degrees: pd.Series, margin: np.ndarray
) -> pd.Series:
    """p of a ratio that is within the margin, and at its worst lies on one of its two ends."""
    nearer = stats.t.sf((centre.abs() - margin) / error, degrees)
    farther = stats.t.sf((centre.abs() + margin) / error, degrees)
    return pd.Series(np.minimum(nearer + farther, 1), index=centre.index)


def controlled(p: pd.Series, family: pd.Series | np.ndarray) -> pd.Series:
    """The least share of false discoveries at which each p would be one, within its family."""
    known, families, found = p.notna().to_numpy(), np.asarray(family), p.copy()
    for one in pd.unique(families):
        members = known & (families == one)
        if members.any():
            found[members] = stats.false_discovery_control(p[members])
    return found
