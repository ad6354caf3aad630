"""The attention study's results, in groups of those that compare, and found by their point."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from stepscope.axes import CAUSAL, DIRECTIONS, FULL, IMPLEMENTATIONS, LOWER_RIGHT
from stepscope.report.data.control import floors
from stepscope.report.kit.compare import Comparison, Floors, judged, timed
from stepscope.report.kit.formatting import count, known
from stepscope.report.kit.order import machine_labels, ordered, precision_rank
from stepscope.tables.reader import Tables

NAIVE, OURS = "naive", "triton"
_ORDER = tuple(IMPLEMENTATIONS)
_POINT = ("implementation", "precision", "d_head", "length", "direction")


@dataclass(frozen=True, order=True)
class Setting:
    """What the results of a table share, and what makes them comparable: only equal shapes are.

    tokens: in all, or batch: sequences. width: heads × d_head, 0 without heads. kv_heads: heads of K and V, 0: as many
    as of Q. keys: positions of K and V, 0: as many as of Q. mask: one of MASKS. window: keys seen at most, 0: all.
    """

    tokens: int
    batch: int
    width: int
    causal: str
    kv_heads: int = 0
    keys: int = 0
    mask: str = FULL
    window: int = 0

    @property
    def is_special(self) -> bool:
        """Whether K and V have heads or a length of their own, or the mask is another than all or plain causal."""
        return bool(self.kv_heads or self.keys or self.window or self.mask == LOWER_RIGHT)

    @property
    def title(self) -> str:
        """`batch 8, no heads, not causal`; with what is special of it."""
        many = f"batch × length = {self.tokens:,} tokens" if self.tokens else f"batch {self.batch:,}"
        heads = f"heads × d = {self.width:,}" if self.width else "no heads"
        parts = [many, heads, {FULL: "not causal", LOWER_RIGHT: "causal to the last key"}.get(self.mask, CAUSAL)]
        parts += [f"{self.kv_heads:,} key and value head{'s' * (self.kv_heads > 1)}"] if self.kv_heads else []
        parts += [f"{self.keys:,} keys"] if self.keys else []
        return ", ".join([*parts, f"window {self.window:,}"] if self.window else parts)


class Shape(NamedTuple):
    """The two axes of the grid of a group."""

    d_head: float
    length: float


class Compared(NamedTuple):
    """A result beside a reference, and how many times as fast it is."""

    row: dict
    reference: dict
    speed: Comparison


@dataclass
class Group:
    """Results of one machine in one setting; each has its row at (implementation, precision, d, length, direction)."""

    hardware: str
    setting: Setting
    rows: list[dict]
    floors: Floors = field(default_factory=Floors)
    _at: dict[tuple, dict] = field(init=False, repr=False)

    def __post_init__(self):
        self._at = {tuple(row[name] for name in _POINT): row for row in self.rows}

    def at(self, implementation: str, precision: str, d_head: float, length: float, direction: str) -> dict:
        """The result at a point; empty where the grid has none."""
        return self._at.get((implementation, precision, d_head, length, direction), {})

    def passes(self, implementation: str, precision: str, shape: Shape) -> list[dict]:
        """The results at a shape, forward and backward."""
        return [self.at(implementation, precision, *shape, direction) for direction in DIRECTIONS]

    def values(self, name: str, precision: str | None = None) -> list:
        """Distinct values of a column, in the order in which they are shown; of one precision if it is given."""
        own = [row[name] for row in self.rows if precision in (None, row["precision"])]
        keys = {"implementation": implementation_rank, "precision": precision_rank}
        return ordered(own, key=keys.get(name))

    def of(self, precision: str) -> list[dict]:
        """The results in a precision."""
        return [row for row in self.rows if row["precision"] == precision]

    def shapes(self, precision: str) -> list[Shape]:
        """The shapes of the results in a precision, in their order."""
        return sorted({Shape(row["d_head"], row["length"]) for row in self.of(precision)})

    def series(self) -> list[tuple[str, str]]:
        """(precision, implementation) of the results, in the order in which they are shown."""
        precisions = self.values("precision")
        return [(precision, name) for precision in precisions for name in self.values("implementation", precision)]

    @functools.cached_property
    def over_naive(self) -> list[Compared]:
        """Every result beside naive attention's at the same point."""
        return self._compared("implementation", NAIVE, (row for row in self.rows if row["implementation"] != NAIVE))

    @functools.cached_property
    def ours_over(self) -> list[Compared]:
        """Our kernel's result beside every other one at the same point, which is the `reference`."""
        others = [row for row in self.rows if row["implementation"] != OURS]
        return self._judged([(self._like(row, "implementation", OURS), row) for row in others])

    @functools.cached_property
    def tf32_over_fp32(self) -> list[Compared]:
        """Every result in tf32 beside that in fp32."""
        return self._compared("precision", "fp32", self.of("tf32"))

    def _compared(self, axis: str, reference: str, rows: Iterable[dict]) -> list[Compared]:
        return self._judged([(row, self._like(row, axis, reference)) for row in rows])

    def _like(self, row: dict, axis: str, value: str) -> dict:
        """The result at the same point with another value of the axis."""
        return self._at.get(tuple(value if name == axis else row[name] for name in _POINT), {})

    def _judged(self, both: list[tuple[dict, dict]]) -> list[Compared]:
        """Each result beside its reference, wherever both have a time; those of a precision are judged together."""
        found = []
        for precision in self.values("precision"):
            own = [pair for pair in both if pair[0] and pair[0]["precision"] == precision]
            speeds = judged([tuple(map(timed, pair)) for pair in own], self.floors)
            found += [Compared(*pair, speed) for pair, speed in zip(own, speeds, strict=True) if speed]
        return found

    @property
    def place(self) -> str:
        """`on gpu; batch 8, no heads, not causal`, for captions."""
        return f"on {self.hardware}; {self.setting.title}"


class Attention:
    """The attention study's table and the measured ceilings."""

    def __init__(self, tables: Tables):
        self.table = tables["attention"]
        self.ceilings = tables["ceilings"]
        self.rows = self.table.to_dict("records")
        control = floors(tables["timing"])
        found: dict[tuple[str, Setting], list[dict]] = {}
        for row in self.rows:
            found.setdefault((str(row["hardware"]), setting_of(row)), []).append(row)
        places = machine_labels(hardware for hardware, _ in found)
        order = sorted(found, key=lambda key: (places.index(key[0]), key[1].is_special, key[1]))
        self.groups = [Group(*key, found[key], control) for key in order]

    @property
    def hardware(self) -> list[str]:
        """Labels of the machines."""
        return machine_labels([group.hardware for group in self.groups])

    def of(self, hardware: str) -> list[Group]:
        """The groups of a machine."""
        return [group for group in self.groups if group.hardware == hardware]

    def results(self, hardware: str) -> list[dict]:
        """All results of a machine."""
        return [row for group in self.of(hardware) for row in group.rows]

    def cells(self) -> pd.DataFrame:
        """A row a cell, for the table of commands."""
        return self.table.drop_duplicates("cell") if len(self.table) else self.table


def setting_of(row: dict) -> Setting:
    """The setting of a result. Where tokens are given, the batch follows from the length."""
    tokens, heads, groups = (_whole(row.get(name)) for name in ("tokens", "heads", "key_value_heads"))
    return Setting(
        tokens,
        0 if tokens else _whole(row["batch"]),
        heads * _whole(row["d_head"]),
        str(row["causal"]),
        0 if groups == heads else groups,
        _whole(row.get("keys")),
        str(row.get("mask") or (CAUSAL if row["causal"] == "yes" else FULL)),
        _whole(row.get("window")),
    )


def fullest(groups: list[Group]) -> Group:
    """The one with the most results, of those with a fixed batch if any, of shapes that are not special if any."""
    return max(groups, key=lambda each: (not each.setting.is_special, not each.setting.tokens, len(each.rows)))


def _whole(value: object) -> int:
    return int(value) if known(value) else 0


def implementation_rank(name: str) -> tuple[int, str]:
    """Sort key: the known implementations in their order, then any other by name."""
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), str(name))


def median(row: dict) -> float | None:
    """Median time of a pass (ms); None without one."""
    series = timed(row)
    return series.median if series else None


def before_backward(row: dict) -> float | None:
    """Bytes allocated when the first backward begins; None where they are not known (CPU, or forward ran out)."""
    value = row.get("before_backward_bytes")
    return value if known(value) else None


def first_cost(row: dict) -> float | None:
    """Milliseconds that the warm-up's first pass took longer than the median one; None where one is not known."""
    first, own = row.get("first_pass_ms"), median(row)
    return first - own if known(first) and own else None


def beside(found: list[Compared], row: dict, reference: dict) -> Comparison | None:
    """That of these comparisons which is of two results; None where one of both has no time."""
    return next((each.speed for each in found if each.row is row and each.reference is reference), None)


def point_name(row: dict, but: tuple[str, ...] = ()) -> str:
    """`naive, bf16, d = 64, length 4,096, forward`; without the parts in `but`."""
    parts = {
        "implementation": str(row["implementation"]),
        "precision": str(row["precision"]),
        "d_head": f"d = {count(row['d_head'])}",
        "length": f"length {count(row['length'])}",
        "direction": str(row["direction"]),
    }
    return ", ".join(part for name, part in parts.items() if name not in but)
