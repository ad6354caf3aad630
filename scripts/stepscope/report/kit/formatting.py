"""Numbers as text: as many digits as the measurement supports."""

import math

_MOST_DIGITS = 4
_FLOP = ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"))

ROUNDING = 1e-12  # a smaller share is an error of double precision


def known(value: object) -> bool:
    """Is there a finite number?"""
    return isinstance(value, int | float) and math.isfinite(value)


def decimals_for(value: float, uncertainty: float, digits: int) -> int:
    """Decimals that show `digits` significant digits of the uncertainty, but never more than four of the value."""
    most = _MOST_DIGITS - 1 - _exponent(value)
    wanted = digits - 1 - _exponent(uncertainty) if known(uncertainty) and uncertainty > 0 else most
    return max(0, min(wanted, most, 6))


def _exponent(value: float) -> int:
    """Power of ten of the leading digit; 0 for zero or a missing value."""
    return math.floor(math.log10(abs(value))) if known(value) and value != 0 else 0


def fixed(value: float, decimals: int) -> str:
    """Thousands separators and a fixed number of decimals; what rounds to nothing says so."""
    text = f"{value:,.{decimals}f}"
    if value > 0 and not text.strip("0.,"):
        return f"<{10.0**-decimals:.{decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def significant(value: object, digits: int = 3) -> str:
    """A number with so many significant digits: 0.0123, 1.23, 12,300 stays 12,345 in whole units."""
    if not known(value):
        return ""
    return fixed(value, max(0, digits - 1 - _exponent(value)))


def rounded(value: object, digits: int = 3) -> str:
    """significant(), but nothing at all is `0`."""
    return "0" if value == 0 else significant(value, digits)


def mean_and_std(mean: float, std: float) -> str:
    """`12.34 ± 0.05`: two digits of the standard deviation."""
    decimals = decimals_for(mean, std, digits=2)
    return fixed(mean, decimals) + (f" ± {fixed(std, decimals)}" if known(std) else "")


def median_and_interval(median: float, low: float, high: float) -> str:
    """`12.34 [12.30, 12.38]`: one digit of half the interval's width."""
    return " ".join(filter(None, median_beside_interval(median, low, high)))


def median_beside_interval(median: float, low: float, high: float) -> tuple[str, str]:
    """The two parts of median_and_interval(); the second is empty without an interval."""
    if not (known(low) and known(high)):
        return significant(median, 4), ""
    decimals = decimals_for(median, (high - low) / 2, digits=1)
    return fixed(median, decimals), f"[{fixed(low, decimals)}, {fixed(high, decimals)}]"


def gib(size: object) -> str:
    """Bytes as GiB (2^30 bytes), without the unit."""
    return significant(size / 2**30, 3) if known(size) else ""


def count(value: object) -> str:
    """A whole number with thousands separators."""
    return f"{value:,.0f}" if known(value) else ""


def mean_count(value: object) -> str:
    """`1,234`, or `1,234.3` for a mean of counts."""
    return fixed(value, 0 if abs(value - round(value)) < 0.005 else 1) if known(value) else ""


def cells(number: int) -> str:
    """`1 cell`, `12 cells`."""
    return "1 cell" if number == 1 else f"{number:,} cells"


def of_cells(told: int, every: int) -> str:
    """Over how many of how many cells a range is: `all 5 cells`, `4 of 5 cells`, `1 cell`."""
    if told < every:
        return f"{told:,} of {cells(every)}"
    return cells(every) if every == 1 else f"all {cells(every)}"


def parameters(value: object) -> str:
    """Parameter count: 128.6 M, 3.41 B."""
    if not known(value):
        return ""
    for unit, scale in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{significant(value / scale, 4 if unit == 'M' and value >= 1e8 else 3)} {unit}"
    return count(value)


def flop(value: object) -> str:
    """Floating-point operations: `11.4 TFLOP`, `3.68 GFLOP`."""
    if not known(value):
        return ""
    scale, name = next(((scale, name) for scale, name in _FLOP if value >= scale), _FLOP[-1])
    return f"{significant(value / scale)} {name}"


def percentage(share: object) -> str:
    """A share of one as `71.7` or `0.04`: per cent with a decimal, small ones with two; the sign stands elsewhere."""
    return fixed(100 * share, 1 if share == 0 or abs(share) >= 0.001 else 2) if known(share) else ""


def percent(share: object, digits: int = 2) -> str:
    """A share of one as `12 %`; what is only rounding of a computer's arithmetic counts as 0."""
    if not known(share):
        return ""
    return f"{significant(0.0 if abs(share) < ROUNDING else share * 100, digits)} %"


def plus_minus(share: object) -> str:
    """Half an interval, a share of its middle, as `± 0.37 %`; one that says next to nothing as `over ± 100 %`."""
    if not known(share):
        return ""
    return f"± {percent(share)}" if share <= 1 else "over ± 100 %"


def times(ratio: object) -> str:
    """A ratio of two times: `× 1.35`, `× 12.3`; empty if not known."""
    if not known(ratio):
        return ""
    return f"× {fixed(ratio, 2) if round(ratio, 2) < 10 else significant(round(ratio, 2))}"


def duration(seconds: float) -> str:
    """Seconds as `2 h 05 min`, `3 min 20 s` or `12.3 s`."""
    if seconds < 60:
        return f"{significant(float(seconds), 3)} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60:02d} min"


def some_of(count: int, total: int) -> str:
    """`all 47 cells`, `26 of 47 cells`, `none of 47 cells`, `the 1 cell`, `no cell`."""
    if total == 1:
        return "the 1 cell" if count else "no cell"
    some = "all" if count == total else f"{count:,} of" if count else "none of"
    return f"{some} {cells(total)}"


def listing(items: list[str], most: int = 6, between: str = ", ") -> str:
    """`a, b and c`; what goes beyond `most` is counted. between: for items that hold commas themselves."""
    items = [str(item) for item in items]
    if len(items) > most:
        return f"{between.join(items[:most])} and {len(items) - most:,} more"
    return items[0] if len(items) == 1 else f"{between.join(items[:-1])} and {items[-1]}" if items else ""


def first_sentence(text: str, most: int = 160) -> str:
    """The first sentence of a reason, without its full stop, shortened if need be."""
    return shortened(text.split(". ")[0].rstrip("."), most)


def value_range(values, digits: int = 3, unit: str = "") -> str:
    """`1.92 to 2.10`, or one number where both are the same."""
    low, high = significant(float(min(values)), digits), significant(float(max(values)), digits)
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def commit(value: object) -> str:
    """The first ten digits of a commit's hash, and whether the checkout had been changed since."""
    digits, _, dirty = str(value).partition("-")
    return f"{digits[:10]} with changes" if dirty else digits[:10]


def shortened(text: object, most: int) -> str:
    """A long name without its middle, whose ends tell more."""
    text = str(text or "")
    end = most // 3
    return text if len(text) <= most else f"{text[: most - end - 1].rstrip()}…{text[-end:].lstrip()}"
