"""Which of many values a figure shows, so that it stays readable."""

import math

MOST_PANELS = 5
MOST_SIZES = 9


def pick(values: list, most: int) -> list:
    """At most so many, evenly spread, with the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def apart(values: list[float], least: float = 0.09) -> list[bool]:
    """Which of the sorted values to name on a log axis, so that names are `least` of its length apart."""
    length = math.log(values[-1] / values[0]) or 1.0
    kept, last = [], -math.inf
    for value in values:
        kept.append(math.log(value) - last >= least * length)
        last = math.log(value) if kept[-1] else last
    return kept
