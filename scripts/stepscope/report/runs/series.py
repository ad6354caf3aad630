"""Which series of times a row of a study's table holds, and where they stand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stepscope.report.kit.compare import Timed, timed
from stepscope.report.kit.order import label
from stepscope.tables import ladder, timing

# Study → the series of a row: the prefix of their columns, "" where a row is one series.
PREFIXES = {
    "timing": tuple(f"{name}_" for name in timing.PHASES),
    "ladder": tuple(f"{name}_" for name in ladder.PHASES),
    "attention": ("",),
    "ceilings": ("",),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a series stands: its table, its cell and which of the cell's series it is."""

    study: str
    cell: str
    what: str

    def __str__(self) -> str:
        return f"{self.cell} {self.what}".strip()

    @property
    def hardware(self) -> str:
        """The label of its machine."""
        return label_of(self.cell)

    @property
    def point(self) -> tuple[str, str]:
        """What it has in common with the same series of another machine."""
        return point_of(self.cell), self.what


FREE_FORWARD = "free_forward"  # prefix of the forward pass by itself, of which a column of phases is the other


def in_words(what: str) -> str:
    """A series as pages name it: `forward+backward`, `forward, free steps`; what is no column's prefix as it is."""
    return label(what) + ", free steps" * (what == FREE_FORWARD)


def label_of(cell: str) -> str:
    """The machine's label of a cell's name."""
    return cell.partition("/")[0]


def point_of(cell: str) -> str:
    """A cell's name without its machine's label."""
    return cell.partition("/")[2]


def places(study: str, row: Mapping) -> Iterator[tuple[Place, str]]:
    """The series of a row of a study's table, each with the prefix of its columns."""
    for prefix in PREFIXES[study]:
        what = f"{row['length']:.0f} {row['direction']}" if study == "attention" else prefix.rstrip("_")
        yield Place(study, row["cell"], what), prefix


def series_of(rows: Mapping[str, list[dict]]) -> dict[Place, Timed]:
    """All series that have a time, of the rows of each study."""
    return {
        place: found
        for study, own in rows.items()
        for row in own
        for place, prefix in places(study, row)
        if (found := timed(row, prefix))
    }


def statuses_of(rows: Mapping[str, list[dict]]) -> dict[Place, str]:
    """The status of each series that has one."""
    return {
        place: status
        for study, own in rows.items()
        for row in own
        for place, prefix in places(study, row)
        if isinstance(status := row.get(f"{prefix}status"), str)
    }
