"""With how many digits a number is told: no more than its interval supports."""

import math


def decimals(value: float, half: float, digits: int = 3) -> int:
    """Decimal places: so many significant digits (0: of a count), fewer where half the interval is
    coarser."""
    places = max(0, digits - 1 - _exponent(value)) if digits else 0
    if half <= 0 or math.isnan(half):
        return places
    # Of an interval that begins with 1, 2 or 3 one digit more is known.
    begins_low = f"{half:e}"[0] in "123"
    return max(0, min(places, int(begins_low) - _exponent(half)))


def _exponent(value: float) -> int:
    """Of the power of ten, after rounding to three digits: 0.9999 counts as 1."""
    if abs(value) <= 1e-12 or not math.isfinite(value):
        return 0
    return int(f"{abs(value):.2e}".split("e")[1])
