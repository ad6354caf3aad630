"""How a quantity is printed, which is here alone: a row a unit, a policy for sentences and one for
tables.

An interval stands in a sentence where it is wider than ± LOUD, in a table where it is wider than ±
QUIET.
"""

from typing import NamedTuple

from stepscope.results.digits import decimals as decimals_of

LOUD, QUIET = 0.05, 0.005
DAGGER = "†"
THIN = "\N{NO-BREAK SPACE}"


class Unit(NamedTuple):
    """`scales`: (from which value on, divisor, suffix), the first that fits; `digits`: significant,
    0 for a count."""

    scales: tuple[tuple[float, float, str], ...]
    digits: int = 3
    signed: bool = False
    most_decimals: int = 9
    is_exact: bool = False  # zeros at the end say nothing


def _decimal(*suffixes: tuple[float, str]) -> tuple[tuple[float, float, str], ...]:
    return tuple((divisor, divisor, suffix) for divisor, suffix in suffixes)


_KI = 1024
_PERCENT = ((0.0, 0.01, "%"),)
UNITS = {
    "s": Unit(((3, 1, "s"), (1e-3, 1e-3, "ms"), (0, 1e-6, "µs"))),
    "B": Unit(_decimal((_KI**3, "GiB"), (_KI**2, "MiB"), (_KI, "KiB"), (1, "B"))),
    "FLOP": Unit(_decimal((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"))),
    "FLOP/s": Unit(_decimal((1e12, "TFLOP/s"), (1e9, "GFLOP/s"))),
    "B/s": Unit(_decimal((1e12, "TB/s"), (1e9, "GB/s"))),
    "FLOP/B": Unit(((0, 1, "FLOP/B"),)),
    "J": Unit(_decimal((1, "J"), (1e-3, "mJ"), (1e-6, "µJ"))),
    "min": Unit(((0, 1, "min"),), 2),
    "W": Unit(((0, 1, "W"),)),
    "MHz": Unit(((0, 1, "MHz"),), 0),
    "°C": Unit(((0, 1, "°C"),), 0),
    "token/s": Unit(((0, 1, "tokens/s"),), 0),
    "parameters": Unit(_decimal((1e9, "billion"), (1e6, "million"), (1, ""))),
    "count": Unit(((0, 1, ""),), 0),
    "1": Unit(((0, 1, ""),)),
    "share": Unit(_PERCENT, 2, most_decimals=2),
    "exact": Unit(((0, 1, ""),), 6, is_exact=True),
    "error": Unit(((0, 0.01, "%"),), 2, most_decimals=6),
    "off": Unit(((0, 0.01, "%"),), 2, signed=True, most_decimals=6),
    "gap": Unit(_PERCENT, 2, signed=True, most_decimals=1),
}


def in_prose(q, with_unit: bool = True) -> str:
    """`424 ms`, `88.9 GiB`, `38 %`, `4.2 [2.6, 6.9]`."""
    divisor, suffix = scale(q)
    value, interval = _shown(q, divisor, LOUD)
    return f"{value}{interval and THIN + interval}{THIN + suffix if suffix and with_unit else ''}"


def in_table(q, divisor: float) -> str:
    """The number without its unit, its interval below it, and a dagger where it is in doubt."""
    value, interval = _shown(q, divisor, QUIET)
    return f"{value}{DAGGER if q.doubt else ''}{interval and '<br>' + interval}"


def scale(q) -> tuple[float, str]:
    """What to divide by, and the suffix that then fits: of a column, those of its largest
    quantity."""
    scales = UNITS[q.unit].scales
    _, divisor, suffix = next((each for each in scales if abs(q.value) >= each[0]), scales[-1])
    return divisor, suffix


def heading(label: str, q) -> str:
    """`step (ms)`, `peak (GiB)`."""
    suffix = scale(q)[1]
    return f"{label} ({suffix})" if suffix else label


def _shown(q, divisor: float, loud: float) -> tuple[str, str]:
    """The value and, if it is wider than ± `loud`, the interval, both to the digits that the
    interval supports."""
    unit = UNITS[q.unit]
    value, half = q.value / divisor, q.half_width * abs(q.value) / divisor
    decimals = min(decimals_of(value, half, unit.digits), unit.most_decimals)
    interval = ""
    if q.half_width > loud:
        interval = (
            f"[{_fixed(q.low / divisor, decimals)},{THIN}{_fixed(q.high / divisor, decimals)}]"
        )
    text = _fixed(value, decimals, unit.signed)
    return (text.rstrip("0").rstrip(".") if unit.is_exact and "." in text else text), interval


def _fixed(value: float, decimals: int, signed: bool = False) -> str:
    """Thousands separated; what is nothing but rounding of the computer's arithmetic is a plain
    0."""
    if not round(value, decimals) and (signed or abs(value) < 1e-12):
        return "0"
    return f"{value:{'+' if signed else ''},.{decimals}f}".replace("-", "\N{MINUS SIGN}")
