"""The attention study's results: in groups that compare, found by their point; and what may be said of two of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from stepscope.axes import IMPLEMENTATIONS
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import BADGES, Cell
from stepscope.report.kit.order import machine_labels, ordered, precision_rank
from stepscope.tables.reader import Tables

NAIVE, OURS = "naive", "triton"
DIRECTIONS = ("forward", "backward")
_ORDER = tuple(IMPLEMENTATIONS)
_MEANINGS = {"oom": "out of memory", "unsupported": "not possible on this machine"}  # here, where others say more
_LOST = ("oom", "unsupported", "failed", "missing")


@dataclass(frozen=True, order=True)
class Setting:
    """What the results of a table share: sequences in a batch, or tokens in all; heads × d_head, 0 without heads."""

    tokens: int
    batch: int
    width: int
    causal: str

    @property
    def title(self) -> str:
        """`batch 8, no heads, not causal`."""
        many = f"batch × length = {self.tokens:,} tokens" if self.tokens else f"batch {self.batch:,}"
        heads = f"heads × d = {self.width:,}" if self.width else "no heads"
        return f"{many}, {heads}, {'causal' if self.causal == 'yes' else 'not causal'}"


@dataclass
class Group:
    """Results of one machine in one setting; each has its row at (implementation, precision, d, length, direction)."""

    hardware: str
    setting: Setting
    rows: list[dict]
    _at: dict[tuple, dict] = field(default_factory=dict)

    def __post_init__(self):
        names = ("implementation", "precision", "d_head", "length", "direction")
        self._at = {tuple(row[name] for name in names): row for row in self.rows}

    def at(self, implementation: str, precision: str, d_head: float, length: float, direction: str) -> dict:
        """The result at a point; empty where the grid has none."""
        return self._at.get((implementation, precision, d_head, length, direction), {})

    def values(self, name: str, precision: str | None = None) -> list:
        """Distinct values of a column, in the order in which they are shown; of one precision if it is given."""
        own = [row[name] for row in self.rows if precision in (None, row["precision"])]
        keys = {"implementation": implementation_rank, "precision": precision_rank}
        return ordered(own, key=keys.get(name))

    def points(self, precision: str) -> list[tuple[float, float]]:
        """(d, length) of the results in a precision, in their order."""
        return sorted({(row["d_head"], row["length"]) for row in self.rows if row["precision"] == precision})

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
        found: dict[tuple[str, Setting], list[dict]] = {}
        for row in self.rows:
            found.setdefault((str(row["hardware"]), setting_of(row)), []).append(row)
        places = machine_labels(hardware for hardware, _ in found)
        self.groups = [Group(*key, found[key]) for key in sorted(found, key=lambda key: (places.index(key[0]), key[1]))]

    @property
    def hardware(self) -> list[str]:
        """Labels of the machines."""
        return machine_labels([group.hardware for group in self.groups])

    def of(self, hardware: str) -> list[Group]:
        """The groups of a machine."""
        return [group for group in self.groups if group.hardware == hardware]

    def cells(self) -> pd.DataFrame:
        """A row a cell, for the table of commands."""
        return self.table.drop_duplicates("cell") if len(self.table) else self.table


def setting_of(row: dict) -> Setting:
    """The setting of a result. Where tokens are given, the batch follows from the length."""
    tokens = _whole(row.get("tokens"))
    return Setting(
        tokens, 0 if tokens else _whole(row["batch"]), _whole(row["heads"]) * _whole(row["d_head"]), str(row["causal"])
    )


def _whole(value: object) -> int:
    return int(value) if formatting.known(value) else 0


def implementation_rank(name: str) -> tuple[int, str]:
    """Sort key: the known implementations in their order, then any other by name."""
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), str(name))


def median(row: dict) -> float | None:
    """Median time of a pass (ms); None without one."""
    value = row.get("median_ms")
    return value if formatting.known(value) and value > 0 else None


def speed(row: dict, other: dict) -> float | None:
    """How many times the speed of `other` a result has: the other's median over its own."""
    own, reference = median(row), median(other)
    return reference / own if own and reference else None


def verdict(row: dict, other: dict) -> str:
    """`faster` or `slower` than the other where the 95 % intervals of the medians are disjoint, else `unclear`."""
    ends = [each.get(f"ci_{end}_ms") for each in (row, other) for end in ("low", "high")]
    if not all(map(formatting.known, ends)):
        return "unclear"
    return "faster" if ends[1] < ends[2] else "slower" if ends[0] > ends[3] else "unclear"


def compared(row: dict, other: dict, text: str) -> str:
    """The text of a comparison, in brackets where the two intervals overlap."""
    return text if verdict(row, other) != "unclear" else f"({text})"


def lost(row: dict) -> tuple[str, ...]:
    """The badge of a result that has no time."""
    return (row["status"],) if row.get("status") in _LOST else ()


def marks(row: dict) -> tuple[str, ...]:
    """The badges of a time: noisy, throttled, shared."""
    found = ["noisy"] if row.get("noisy") and median(row) else []
    return (*found, *_disturbed(row))


def _disturbed(row: dict) -> list[str]:
    others = row.get("other_processes")
    return ["throttled"] * bool(row.get("throttle")) + ["shared"] * (formatting.known(others) and others > 0)


def count(value: object) -> Cell:
    """A whole number."""
    return Cell(formatting.count(value), sort=float(value)) if formatting.known(value) else Cell("–")


def point_name(row: dict, but: tuple[str, ...] = ()) -> str:
    """`naive, bf16, d = 64, length 4,096, forward`; without the parts in `but`."""
    parts = {
        "implementation": str(row["implementation"]),
        "precision": str(row["precision"]),
        "d_head": f"d = {formatting.count(row['d_head'])}",
        "length": f"length {formatting.count(row['length'])}",
        "direction": str(row["direction"]),
    }
    return ", ".join(part for name, part in parts.items() if name not in but)


def notes(rows: list[dict], cells: Iterable[Iterable[Cell]], disturbed: bool = False) -> list[str]:
    """Below a table: why results are missing, and what the badges in its rows mean; `disturbed`: which cells were."""
    used = {key for line in cells for cell in line for key in cell.badges}
    words = [(text, _MEANINGS.get(key, meaning)) for key, (text, meaning) in BADGES.items() if key in used]
    meanings = [f"{text}: {meaning}" for text, meaning in words]
    told = [*_reasons(rows), *(_disturbed_cells(rows) if disturbed else [])]
    return [*told, *(["; ".join(meanings) + "."] if meanings else [])]


def _reasons(rows: list[dict]) -> list[str]:
    """Why cells have no result, each reason once."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row["status"] in ("unsupported", "failed", "missing"):
            reason = str(row["reason"] or "no reason was recorded")
            name = point_name(row, ("precision", "length", "direction"))
            found.setdefault((str(row["status"]), reason), {})[name] = None
    return [
        f"{BADGES[status][0]} ({formatting.listing(list(names), 8, '; ')}): {reason.rstrip('.')}."
        for (status, reason), names in sorted(found.items())
    ][:6]


def _disturbed_cells(rows: list[dict]) -> list[str]:
    """The cells that were throttled or shared the GPU, where no badge says it."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for key in _disturbed(row):
            found.setdefault(key, {})[point_name(row, ("length", "direction"))] = None
    return [
        f"{BADGES[key][0].capitalize()} ({BADGES[key][1]}): {formatting.listing(list(names), 6, '; ')}."
        for key, names in found.items()
    ]
