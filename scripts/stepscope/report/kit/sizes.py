"""Bytes as text: the unit that suits, the sign, a share beside it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import TableCell
from stepscope.report.kit.table import number

_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_MINUS = "\N{MINUS SIGN}"
EXACT = 1e-5  # a relative difference below is called none


@dataclass(frozen=True)
class Unit:
    """What a whole column is given in; `scale` in bytes."""

    name: str
    scale: int

    def text(self, value: float, digits: int = 4) -> str:
        """Bytes as a number without the unit, which stands in the heading."""
        count = value / self.scale
        text = formatting.significant(count, digits) if count >= 0.001 else formatting.fixed(count, 3)
        return text if value else "0"

    def cell(self, value: object, digits: int = 4, below: str = "", badges: tuple[str, ...] = ()) -> TableCell:
        """Bytes with something beside them; a dash where there are none."""
        return number(value, lambda size: self.text(size, digits), below, badges)


GIB, MIB = (Unit(*unit) for unit in _UNITS[:2])


def unit_of(values: Iterable[object]) -> Unit:
    """GiB, or MiB where no value reaches one GiB."""
    return GIB if any(formatting.known(value) and value >= GIB.scale for value in values) else MIB


def size(value: object, digits: int = 3) -> str:
    """Bytes in the unit that suits: `1.58 GiB`, `64.0 MiB`, `16.0 KiB`, `4 B`; empty if not known."""
    if not formatting.known(value):
        return ""
    for name, scale in _UNITS:
        if abs(value) >= scale:
            return f"{formatting.significant(value / scale, digits)} {name}"
    return f"{value:,.0f} B".replace("-", _MINUS)


def change(value: float, digits: int = 3) -> str:
    """Bytes with their sign: `+1.58 GiB`, `−64.0 MiB`, `±0 B`."""
    return f"{'+' if value > 0 else '±' * (value == 0)}{size(value, digits)}"


def changes(of_each: Mapping[str, float]) -> list[str]:
    """`activations −3.1 GiB`: each name with its change in bytes."""
    return [f"{name} {change(value)}" for name, value in of_each.items()]


def percent_change(share: object, digits: int = 2) -> str:
    """A share of one as `+12 %`, `−0.40 %`, `±0 %`; empty if not known."""
    if not formatting.known(share):
        return ""
    if abs(share) < EXACT:
        return "±0 %"
    return f"{'+' * (share > 0)}{formatting.percent(share, digits)}"


def bare_percent_change(share: float) -> str:
    """percent_change() without the `%`, for a column whose heading has it."""
    return percent_change(share).removesuffix(" %")


def size_cell(value: object, below: str = "", badges: tuple[str, ...] = ()) -> TableCell:
    """Bytes with their own unit; sorts by bytes."""
    return number(value, size, below, badges)


def change_cell(share: object) -> TableCell:
    """A difference in per cent, whose sign stands in the heading too."""
    return number(share, bare_percent_change)


def largest_shares(parts: Mapping[str, float], whole: float, least: float = 0.01) -> dict[str, float]:
    """Each part's share of the whole, the largest first, without those below `least`."""
    largest = sorted(parts.items(), key=lambda part: -part[1])
    return {name: value / whole for name, value in largest if whole and value / whole >= least}


def shares(of_each: Mapping[str, float]) -> str:
    """`activations 48 % and optimizer state 29 %`: each name with its share of one."""
    return formatting.listing([f"{name} {formatting.percent(share)}" for name, share in of_each.items()], most=8)


def bare_percent(share: float) -> str:
    """A share of one in per cent without the sign, for a column whose heading has it: `37.5`."""
    return formatting.fixed(100 * share, 1)
