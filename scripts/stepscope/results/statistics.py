"""Intervals between processes, by Student's t on logarithms.

The unit is the process: its value is the median of its samples, which are never pooled (Kalibera
and Jones 2013, "Rigorous benchmarking in reasonable time"). Logarithms, since times differ by
factors. Two or three processes cannot tell their own spread, so it is borrowed from all series of a
study on a machine that the same thing limits (results/series.py): the variance of each is drawn
towards the common one, the less the more the
variances differ (Smyth 2004, "Linear models and empirical Bayes methods", as limma's `squeezeVar`).
Where all series spread alike that is the pooled variance, where some are launched by a busy host
and others wait for the GPU each keeps more of its own.
"""

import numpy as np
from pandas import DataFrame, Series
from scipy import optimize, special, stats

CONFIDENCE = 0.95
# Of the median variance: a variance of 0 is a clock that cannot tell, as limma has it.
_LEAST = 1e-5
_EQUAL = 1e6  # degrees of freedom from which on all variances count as equal


def between_processes(values: Series, series: list, groups: list) -> DataFrame:
    """Centre and error of each series, by the logarithms of its processes' values.

    values: one number a process. series, groups: names of index levels of `values`: those that tell
    series apart, and of them those within which the spread is borrowed. Columns: centre (mean),
    processes, error (standard error of the mean, NaN with one process), degrees (of freedom of the
    error).
    """
    by = values.groupby(level=series, sort=False, dropna=False)
    found = by.agg(centre="mean", processes="count", own="var")
    found["degrees"] = found["processes"] - 1.0
    degrees = found["degrees"].to_numpy().copy()
    own, variance = found["own"].to_numpy(), np.full(len(found), np.nan)
    for place in found.groupby(level=groups, sort=False, dropna=False).indices.values():
        several = place[degrees[place] > 0]
        if len(several):
            variance[several], degrees[several] = moderated(own[several], degrees[several])
    error = np.sqrt(variance / found["processes"])
    return found.assign(error=error, degrees=degrees).drop(columns="own")


def moderated(variances: np.ndarray, degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(variances drawn towards their common value, their degrees of freedom) of series with
    `degrees` > 0 of their own.

    The common variance and its degrees of freedom are estimated by the moments of the logarithms
    (Smyth 2004, 6.2).
    """
    pooled = np.average(variances, weights=degrees)
    alike = np.full(len(variances), pooled), np.full(len(variances), degrees.sum(), dtype=float)
    if len(variances) < 2 or pooled == 0:
        return alike
    half = degrees / 2
    floor = _LEAST * np.median(variances[variances > 0])
    logs = np.log(np.maximum(variances, floor)) - special.digamma(half) + np.log(half)
    beyond = logs.var(ddof=1) - special.polygamma(1, half).mean()
    if beyond <= special.polygamma(1, _EQUAL / 2):
        return alike

    def off(log: float) -> float:
        return special.polygamma(1, np.exp(log)) - beyond

    prior = 2 * np.exp(optimize.brentq(off, -20, np.log(_EQUAL)))
    common = np.exp(logs.mean() + special.digamma(prior / 2) - np.log(prior / 2))
    freedom = np.minimum(prior + degrees, degrees.sum())
    return (prior * common + degrees * variances) / (prior + degrees), freedom


def interval(found: DataFrame) -> DataFrame:
    """median, low and high of between_processes(), no logarithms any more; low and high are NaN
    with one process."""
    degrees = found["degrees"].where(found["degrees"] > 0)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, degrees) * found["error"]
    centre = found["centre"]
    logs = DataFrame({"median": centre, "low": centre - half, "high": centre + half})
    return DataFrame(np.exp(logs))
