"""How a quantity is printed, which is here alone: a row a unit, a policy for sentences and one for
tables.

An interval stands in a sentence where it is wider than ± LOUD, in a table where it is wider than ±
QUIET. A `quantity` is one of stepscope.report.kit.quantity, which imports this module.
"""

from dataclasses import dataclass

from stepscope.figures.words import decimals as decimals_of

LOUD, QUIET = 0.05, 0.005
DAGGER = "†"
THIN = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Unit:
    """`scales`: (from which value on, divisor, suffix), the first that fits; `digits`: significant,
    0 for a count."""

    scales: tuple[tuple[float, float, str], ...]
    digits: int = 3
    signed: bool = False
    most_decimals: int = 9
    is_exact: bool = False  # zeros at the end say nothing


def _as_is(suffix: str, digits: int = 3, is_exact: bool = False) -> Unit:
    """A unit that is never scaled."""
    return Unit(((0, 1, suffix),), digits, is_exact=is_exact)


def _decimal(*suffixes: tuple[float, str]) -> Unit:
    """Each suffix from its own divisor on."""
    return Unit(tuple((divisor, divisor, suffix) for divisor, suffix in suffixes))


def _percent(most_decimals: int, signed: bool = False) -> Unit:
    return Unit(((0, 0.01, "%"),), 2, signed, most_decimals)


_KI = 1024
_SECONDS = (
    (3, 1, "s"),  # below three seconds milliseconds are read more easily
    (1e-3, 1e-3, "ms"),
    (0, 1e-6, "µs"),
)
UNITS = {
    "s": Unit(_SECONDS),
    "B": _decimal((_KI**3, "GiB"), (_KI**2, "MiB"), (_KI, "KiB"), (1, "B")),
    "FLOP": _decimal((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP")),
    "FLOP/s": _decimal((1e12, "TFLOP/s"), (1e9, "GFLOP/s")),
    "B/s": _decimal((1e12, "TB/s"), (1e9, "GB/s")),
    "FLOP/B": _as_is("FLOP/B"),
    "J": _decimal((1, "J"), (1e-3, "mJ"), (1e-6, "µJ")),
    "min": _as_is("min", 2),
    "W": _as_is("W"),
    "kWh": _as_is("kWh"),
    "MHz": _as_is("MHz", 0),
    "°C": _as_is("°C", 0),
    "token/s": _as_is("tokens/s", 0),
    "parameters": _decimal((1e9, "billion"), (1e6, "million"), (1, "")),
    "count": _as_is("", 0),
    "1": _as_is(""),
    "loss": _as_is("", 4),
    "exact": _as_is("", 6, is_exact=True),
    "share": _percent(2),
    "error": _percent(6),
    "off": _percent(6, signed=True),
    "gap": _percent(1, signed=True),
}


def in_prose(quantity) -> str:
    """`424 ms`, `88.9 GiB`, `38 %`, `4.2 [2.6, 6.9]`."""
    divisor, suffix = scale(quantity)
    value, interval = _shown(quantity, divisor, LOUD)
    return THIN.join(filter(None, [value, interval, suffix]))


def in_table(quantity, divisor: float) -> str:
    """The number without its unit, its interval below it, and a dagger where it is in doubt."""
    value, interval = _shown(quantity, divisor, QUIET)
    marked = value + DAGGER if quantity.doubt else value
    return f"{marked}<br>{interval}" if interval else marked


def scale(quantity) -> tuple[float, str]:
    """What to divide by, and the suffix that then fits: of a column, those of its largest
    quantity."""
    scales = UNITS[quantity.unit].scales
    smallest = scales[-1]
    fitting = (each for each in scales if abs(quantity.value) >= each[0])
    _, divisor, suffix = next(fitting, smallest)
    return divisor, suffix


def heading(label: str, quantity) -> str:
    """`step (ms)`, `peak (GiB)`."""
    _, suffix = scale(quantity)
    return f"{label} ({suffix})" if suffix else label


def _shown(quantity, divisor: float, loud: float) -> tuple[str, str]:
    """The value and, if it is wider than ± `loud`, the interval, both to the digits that the
    interval supports."""
    unit = UNITS[quantity.unit]
    value = quantity.value / divisor
    half = quantity.half_width * abs(quantity.value) / divisor
    decimals = min(decimals_of(value, half, unit.digits), unit.most_decimals)
    is_wide = quantity.half_width > loud
    if is_wide and unit.digits and quantity.ends[0] > 0:
        least = quantity.ends[0] / divisor
        decimals = max(decimals, decimals_of(least, least, 1))  # it is no plain 0
    text = _fixed(value, decimals, unit.signed)
    if unit.is_exact and "." in text:
        text = text.rstrip("0").rstrip(".")
    if not is_wide:
        return text, ""
    low, high = (_fixed(end / divisor, decimals) for end in quantity.ends)
    return text, f"[{low},{THIN}{high}]"


def _fixed(value: float, decimals: int, signed: bool = False) -> str:
    """Thousands separated; what is nothing but rounding of the computer's arithmetic is a plain
    0."""
    is_zero = not round(value, decimals)
    if is_zero and (signed or abs(value) < 1e-12):
        return "0"
    sign = "+" if signed else ""
    return f"{value:{sign},.{decimals}f}".replace("-", "\N{MINUS SIGN}")
