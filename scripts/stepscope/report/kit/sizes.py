"""Bytes as text: the unit that suits, the sign, a share beside it."""

from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell

_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_MINUS = "\N{MINUS SIGN}"
EXACT = 1e-5  # a relative difference below is called none


@dataclass(frozen=True)
class Unit:
    """What a whole column is given in; `scale` in bytes."""

    name: str
    scale: int

    def cell(self, value: object, digits: int = 4, below: str = "", badges: tuple[str, ...] = ()) -> Cell:
        """Bytes as a number without the unit, which stands in the heading; a dash where there is none."""
        if not formatting.known(value):
            return Cell("" if badges else "–", below, badges=badges)
        number = value / self.scale
        text = formatting.significant(number, digits) if number >= 0.001 else formatting.fixed(number, 3)
        return Cell(text if value else "0", below, float(value), badges)


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


def percent_change(share: object, digits: int = 2) -> str:
    """A share of one as `+12 %`, `−0.40 %`, `±0 %`; empty if not known."""
    if not formatting.known(share):
        return ""
    if abs(share) < EXACT:
        return "±0 %"
    return f"{'+' * (share > 0)}{formatting.percent(share, digits)}"


def size_cell(value: object, below: str = "", badges: tuple[str, ...] = ()) -> Cell:
    """Bytes with their own unit; sorts by bytes."""
    if not formatting.known(value):
        return Cell("" if badges else "–", below, badges=badges)
    return Cell(size(value), below, float(value), badges)


def change_cell(share: object) -> Cell:
    """A difference in per cent, whose sign stands in the heading too."""
    text = percent_change(share).removesuffix(" %")
    return Cell(text, sort=float(share)) if text else Cell("–")


def shares(parts: dict[str, float], whole: float, least: float = 0.01) -> str:
    """`activations 48 %, optimizer state 29 %`: the parts of at least this share, the largest first."""
    largest = sorted(parts.items(), key=lambda part: -part[1])
    named = [(name, value / whole) for name, value in largest if whole and value / whole >= least]
    told = [f"{name} {formatting.percent(share)}" for name, share in named]
    return formatting.listing(told, most=8)
