"""What is said of two variants that a cell measured together: faster, slower, same or unclear.

The only place that judges. A difference counts beyond a margin, so the hypothesis that is tested is
a ratio within it (McCarthy and Smyth 2009, limma's `treat`); that the two are the same is
tested against a ratio beyond it (Schuirmann 1987, two one-sided tests); false discoveries of both
are controlled over the family (Benjamini and Hochberg).
"""

import numpy as np
from pandas import DataFrame, Series
from scipy import stats

from . import statistics

# Of a ratio: of any pair; of one where both ran in turns and the GPU limited them.
MARGIN, MARGIN_OF_GPU = 0.02, 0.01
FALSE_DISCOVERIES = 0.05  # the share of `faster` and `slower`, and of `same`, that may be none


def judged(found: DataFrame, margins: np.ndarray | float, family: Series | np.ndarray) -> DataFrame:
    """ratio, low, high, p (of a ratio within the margin, controlled over the family) and verdict of
    each pair.

    found: centre, error and degrees of freedom of ln(time of a / time of b) by
    statistics.between_processes().
    """
    centre, error = found["centre"].abs(), found["error"]
    degrees = found["degrees"].where(found["degrees"] > 0)
    margin, ends = np.log1p(margins), statistics.interval(found)
    # Of a ratio that is within the margin, and at its worst lies on one of its two ends.
    nearer = stats.t.sf((centre - margin) / error, degrees)
    farther = stats.t.sf((centre + margin) / error, degrees)
    within = Series(np.minimum(nearer + farther, 1), found.index)
    beyond = Series(stats.t.sf((margin - centre) / error, degrees), found.index)
    p = controlled(within, family)
    is_real = p <= FALSE_DISCOVERIES
    is_above, is_below = ends["low"] > 1 + margins, ends["high"] < 1 / (1 + margins)
    is_inside = (ends["low"] > 1 / (1 + margins)) & (ends["high"] < 1 + margins)
    words = {
        "faster": is_real & is_above,
        "slower": is_real & is_below,
        "same": is_inside & (controlled(beyond, family) <= FALSE_DISCOVERIES),
    }
    verdict = np.select(list(words.values()), list(words), "unclear")
    return ends.rename(columns={"median": "ratio"}).assign(p=p, verdict=verdict)


def controlled(p: Series, family: Series | np.ndarray) -> Series:
    """The least share of false discoveries at which each p would be one, within its family."""
    is_known = p.notna().to_numpy()
    by_family = p[is_known].groupby(np.asarray(family)[is_known])
    return by_family.transform(stats.false_discovery_control).reindex(p.index)
