"""What several studies say of one point: a finding a machine, and the table behind it."""

from stepscope.report.data.agreement import Again, measured_again
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.compare import FASTER, SAME, SLOWER, ratio_text
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import label
from stepscope.tables.reader import Tables

_QUESTION = "do studies agree on a point that several measured"
_STUDIES = {"warmup": "warm-up"}  # names in prose
_MOST = 3  # points that a finding names
_NOTE = (
    "Ladder: free steps with the same options. Warm-up: the phases of its steady state. Outside a study's own section "
    "the report uses the timing study's value. Judged as every comparison is: a difference counts beyond 2 % and "
    "beyond what unchanged cells differ by."
)


def agreement_findings(tables: Tables) -> list[Finding]:
    """Where studies disagree, by how much and what else differed; that they agree; nothing where no pair tells."""
    found: dict[str, list[Again]] = {}
    for each in measured_again(tables):
        found.setdefault(each.hardware, []).append(each)
    return [finding for hardware, own in found.items() if (finding := _finding(own, hardware))]


def _finding(own: list[Again], hardware: str) -> Finding | None:
    apart = sorted((each for each in own if each.found.verdict in (FASTER, SLOWER)), key=_size, reverse=True)
    same = [each for each in own if each.found.verdict == SAME]
    cells = tuple(dict.fromkeys(cell for each in own for cell in _cells(each)))
    numbers = {"same": Number(len(same), cells, formatting.count), "all": Number(len(own), cells, formatting.count)}
    if apart:
        numbers["apart"] = Number(len(apart), cells, formatting.count)
        named = "; ".join(_named(each, at, numbers) for at, each in enumerate(apart[:_MOST]))
        more = f"; and {len(apart) - _MOST:,} more" if len(apart) > _MOST else ""
        answer = (
            "Studies that measured the same point disagree beyond the floor in {apart} of {all} comparisons with the "
            f"timing study: {named}{more}."
        )
        return Finding(_QUESTION, answer, numbers, hardware)
    if not same:
        return None
    numbers["margin"] = Number([each.found.margin - 1 for each in same], cells, _margins)
    answer = (
        "No study is known to disagree with the timing study on a point of both: they are the same within {margin} in "
        "{same} of {all}"
    )
    rest = " comparisons" if len(same) == len(own) else " comparisons, unclear in the others"
    return Finding(_QUESTION, f"{answer}{rest}.", numbers, hardware)


def _margins(values: list[float]) -> str:
    return formatting.value_range([100 * value for value in values], 2, " %")


def _size(each: Again) -> float:
    return max(each.found.ratio, 1 / each.found.ratio)


def _cells(each: Again) -> tuple[str, str]:
    return each.timing["cell"], each.row["cell"]


def _named(each: Again, at: int, numbers: dict[str, Number]) -> str:
    """`small at 128 in fp32, step: 28.5 ms in timing, 59.9 ms in ladder (host loop 2.1 and 4.0 ms)`."""
    timing, other = each.found.times
    numbers |= {
        f"timing_{at}": Number(timing, (each.timing["cell"],), formatting.significant),
        f"other_{at}": Number(other, (each.row["cell"],), formatting.significant),
    }
    why = [f"{name} {_two(a)} and {_two(b)} {unit}" for name, unit, a, b in each.causes]
    why += ["another GPU"] * each.is_other_gpu
    started = [str(row.get("started") or "")[:16].replace("T", " ") for row in (each.timing, each.row)]
    why += [f"started {started[0]} and {started[1]}"] * (all(started) and started[0] != started[1])
    told = f" ({formatting.listing(why)})" if why else ""
    return (
        f"{_point(each)}, {label(each.phase)}: {{timing_{at}}} ms in timing, {{other_{at}}} in "
        f"{_STUDIES.get(each.study, each.study)}{told}"
    )


def _two(value: float) -> str:
    return formatting.significant(value, 2 if value < 100 else 4)


def _point(each: Again) -> str:
    row = each.row
    options = f", {row['options']}" if row["options"] else ""
    return f"{row['size']} at {row['context']:,.0f} in {row['precision']}{options}"


def agreement_table(tables: Tables) -> Table | None:
    """A row a point and phase that another study measured too."""
    found = measured_again(tables)
    varying = table.varying([each.row for each in found], ["hardware"]) if found else []
    columns = [
        *table.about(lambda each: each.row, table.point(*varying, "size", "context", "precision", "options")),
        Column("phase", number=False, value=lambda each: label(each.phase)),
        Column("timing study", "ms", value=lambda each: each.found.times[0]),
        Column("other study", "ms", value=lambda each: each.found.times[1]),
        Column("study", number=False, value=lambda each: _STUDIES.get(each.study, each.study)),
        Column(
            "other / timing", value=lambda each: TableCell(ratio_text(1 / each.found.ratio), sort=1 / each.found.ratio)
        ),
        Column("verdict on the other", number=False, value=lambda each: each.found.verdict),
    ]
    caption = "Points that another study measured too, beside the timing study."
    return table.build("agreement", caption, columns, found, [_NOTE], folded=True)
