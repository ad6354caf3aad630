"""Words in figures: numbers with as many digits as they are known to, and names short enough for an
axis."""

import math

import pandas as pd

GIB = 2**30
SHORT = {  # ranges of our attention, where there is no room for their names
    "QKV projection": "QKV",
    "attention scores": "scores",
    "attention × V": "× V",
    "attention x V": "× V",  # as torch.profiler has it
    "output projection": "output",
}


def number(value: float, digits: int = 3) -> str:
    """So many significant digits, never an exponent: 0.0123, 4.5, 424, 1,514."""
    if not math.isfinite(value):
        return ""
    text = f"{value:,.{decimals(value, math.nan, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def measured(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """As in the report's tables: three significant digits, fewer where an interval does not support
    them."""
    return f"{value:,.{decimals(value, (high - low) / 2)}f}"


def time_unit(largest: float) -> tuple[str, float]:
    """(name, seconds) of the unit of an axis that reaches so many seconds."""
    return ("s", 1.0) if largest >= 5 else ("ms", 1e-3) if largest >= 1e-3 else ("µs", 1e-6)


def byte_unit(largest: float) -> tuple[str, float]:
    """(name, bytes) of the unit of an axis that reaches so many bytes."""
    return ("GiB", GIB) if largest >= GIB else ("MiB", 2.0**20)


def rate_unit(largest: float) -> tuple[str, float]:
    """(name, FLOP/s) of the unit of an axis that reaches so many FLOP/s."""
    return ("TFLOP/s", 1e12) if largest >= 1e12 else ("GFLOP/s", 1e9)


def plain_tick(value: float, _position=None) -> str:
    """Tick label of a log axis: 0.1, 30, 1,000."""
    return f"{value:,.0f}" if value >= 10 else f"{value:,.3g}"


def power_tick(value: float, _position=None) -> str:
    """Tick label of a log axis over many decades: 1, 1e4, 1e−8."""
    digit, power = f"{value:.0e}".split("e")
    ending = f"e{int(power)}" if int(power) else ""
    return digit + ending.replace("-", "−")


def short(text: str, most: int) -> str:
    """A name cut to what an axis can hold."""
    text = " ".join(str(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def place(row: dict | pd.Series) -> str:
    """`2.7B, context 1,024, batch 4, bf16`: what is known of it; the last as places.as_built()."""
    parts = [short(row["size"], 24)]
    for name in ("context", "batch"):
        if pd.notna(row.get(name)):
            parts.append(f"{name} {row[name]:,.0f}")
    parts.append(row.get("built", ""))
    return ", ".join(filter(None, parts))


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
