"""What several chapters make their parts of."""

from collections.abc import Callable, Collection, Mapping, Sequence

from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Number
from stepscope.report.kit.table import disturbed, unsure


def present(*found):
    """Those that are there, of findings or of what is shown."""
    return tuple(each for each in found if each)


def count_range(values: Sequence[float]) -> str:
    """`12 to 48`, whole numbers."""
    return _range([formatting.count(which(values)) for which in (min, max)])


def parameter_range(values: Sequence[float]) -> str:
    """`128.6 M to 3.41 B`."""
    return _range([formatting.parameters(which(values)) for which in (min, max)])


def percent_range(shares: Sequence[float]) -> str:
    """`26 to 78 %`, of shares of one."""
    return formatting.value_range([100 * share for share in shares], 2, " %")


def range_of_cells(
    values: Sequence[float],
    cells: Sequence[Sequence[Mapping]],
    phases: Collection[str],
    show: Callable[[float], str] = formatting.significant,
    unit: str = "",
) -> Number:
    """`0.961 (unsteady) to ~1.26`: a range whose ends say whether their cells were disturbed; `~` is in any other way.

    cells: the rows that each value comes from. phases: those that it is of.
    """

    def text(_: object) -> str:
        low, high = (values.index(which(values)) for which in (min, max))
        if show(values[low]) == show(values[high]):
            return end((low, high), unit)
        return f"{end((low,))} to {end((high,), unit)}"

    def end(places: tuple[int, ...], unit: str = "") -> str:
        rows = [row for at in places for row in cells[at]]
        found = {badge for row in rows for badge in disturbed(row)}
        found |= {badge for row in rows for phase in phases for badge in unsure(row, f"{phase}_")}
        shown = f"{show(values[places[0]])}{unit}"
        return f"{shown} (unsteady)" if "unsteady" in found else f"{'~' * bool(found)}{shown}"

    return Number(values, tuple(row["cell"] for rows in cells for row in rows), text)


def _range(both: list[str]) -> str:
    return " to ".join(dict.fromkeys(both))
