"""The page of two sides that were measured in turns: from processes.csv and sides.json to verdicts and tables."""

import csv
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepscope.report.kit import compare
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.document import document, style_of
from stepscope.report.kit.escaping import Prose, markdown
from stepscope.report.kit.files import Files
from stepscope.report.kit.formatting import significant
from stepscope.report.kit.markdown import MarkdownBlocks
from stepscope.report.kit.table import build
from stepscope.report.kit.webpage import WebBlocks
from stepscope.turns import TurnsError
from stepscope.turns.measuring import SERIES

A, B, CONTROL = "a", "b", "c"
_SOFTWARE = ("device", "driver", "python", "torch", "cuda", "triton")


@dataclass(frozen=True)
class Line:
    """A series of a cell: B beside A. comparison: None where one of them has no time. clocks: B's SM clock over A's."""

    cell: str
    series: tuple[str, ...]
    rounds: int
    comparison: compare.Comparison | None
    verdict: str
    clocks: float | None

    @property
    def what(self) -> str:
        """The series in words: `step`, `backward, phased`, `forward at 256`."""
        _, kind, phase, length = self.series
        words = f"{phase} at {length}" if length else phase
        return f"{words}, phased" if kind == "phased" else words

    @property
    def judged(self) -> str:
        """The verdict, with its subject where it needs one: `B is slower`, `same`."""
        return f"B is {self.verdict}" if self.verdict in (compare.FASTER, compare.SLOWER) else self.verdict

    @property
    def change(self) -> float | None:
        """By how much B takes longer than A, as a share of A's time."""
        return self.comparison and 1 / self.comparison.ratio - 1


@dataclass(frozen=True)
class Turns:
    """All that was measured, judged. control: A against itself, empty if that was not measured."""

    about: dict
    lines: Sequence[Line]
    control: Sequence[Line]
    margin: float

    @property
    def fired(self) -> list[Line]:
        """What of the control was called faster or slower, which it is not."""
        return [line for line in self.control if line.verdict in (compare.FASTER, compare.SLOWER)]

    @property
    def is_control(self) -> bool:
        """Whether both sides ran the same code by the same Python."""
        a, b = (self.about["sides"][name] for name in (A, B))
        return all(a.get(key) == b.get(key) for key in ("code", "interpreter", *_SOFTWARE))


def read(folder: Path, margin: float) -> Turns:
    """What measure_ab.py wrote to a folder, judged: differences beyond half the margin, a ratio such as 1.01.

    Where A differs from itself every verdict is `unclear`. Raises TurnsError for a folder that holds none.
    """
    try:
        about = json.loads((folder / "sides.json").read_bytes())
        with (folder / "processes.csv").open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        values = {
            (row["side"], row["cell"], tuple(row[name] for name in SERIES), int(row["round"])): row for row in rows
        }
        if not values:
            raise ValueError("there is no process in processes.csv")
        control = _judged(values, CONTROL, margin) if CONTROL in about["sides"] else []
        found = Turns(about, _judged(values, B, margin), control, margin)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TurnsError(f"{folder} holds nothing that measure_ab.py wrote ({error})") from None
    if found.fired:
        unclear = [
            Line(each.cell, each.series, each.rounds, each.comparison, _unsure(each), each.clocks)
            for each in found.lines
        ]
        return Turns(about, unclear, control, margin)
    return found


def _unsure(line: Line) -> str:
    return line.verdict if line.verdict == compare.NOT_COMPARABLE else compare.UNCLEAR


def _judged(values: dict[tuple, dict], own: str, margin: float) -> list[Line]:
    """Each series of a side beside that of A, by the rounds that both have; all of them one family."""
    series = dict.fromkeys((cell, names) for side, cell, names, _ in values if side in (A, own))
    rounds = sorted({number for *_, number in values})
    both = {
        each: [(values[own, *each, number], values[A, *each, number]) for number in rounds
               if (own, *each, number) in values and (A, *each, number) in values]
        for each in series
    }  # fmt: skip
    times = [[(float(b["seconds"]) * 1e3, float(a["seconds"]) * 1e3) for b, a in pairs] for pairs in both.values()]
    judged = compare.judged_in_turns(times, margin)
    return [
        Line(cell, names, len(pairs), found, found.verdict if found else compare.NOT_COMPARABLE, _clocks(pairs))
        for ((cell, names), pairs), found in zip(both.items(), judged, strict=True)
    ]


def _clocks(pairs: Iterable[tuple[dict, dict]]) -> float | None:
    """B's SM clock over A's, the mean of the rounds; None where a clock is not known."""
    ratios = [
        float(b["sm_clock_mhz"]) / float(a["sm_clock_mhz"]) for b, a in pairs if b["sm_clock_mhz"] and a["sm_clock_mhz"]
    ]
    return sum(ratios) / len(ratios) if ratios else None


def rows(found: Turns) -> list[dict]:
    """The rows of ab.csv."""
    return [
        {
            "cell": line.cell,
            **dict(zip(SERIES, line.series, strict=True)),
            "a_ms": line.comparison and line.comparison.times[0],
            "b_ms": line.comparison and line.comparison.times[1],
            "change": line.change,
            "change_low": line.comparison and 1 / line.comparison.high - 1,
            "change_high": line.comparison and 1 / line.comparison.low - 1,
            "rounds": line.rounds,
            "clock_ratio": line.clocks,
            "verdict": line.verdict,
            "side": side,
        }
        for side, lines in ((B, found.lines), (CONTROL, found.control))
        for line in lines
    ]


def _counted(lines: Sequence[Line]) -> str:
    """`7 series: 2 slower, 5 same`."""
    counts = Counter(line.verdict for line in lines)
    words = (compare.FASTER, compare.SLOWER, compare.SAME, compare.UNCLEAR, compare.NOT_COMPARABLE)
    return f"{len(lines)} series: {', '.join(f'{counts[word]} {word}' for word in words if counts[word])}"


def sentences(found: Turns) -> list[str]:
    """What is to be known before the table is read."""
    told = [f"B beside A, {_counted(found.lines)}."]
    percent = 100 * (found.margin - 1)
    if found.fired:
        told.append(
            f"Do not trust it: A once more is called different from A in {len(found.fired)} series, so every verdict "
            "is unclear. Something disturbed the machine; measure again, with more rounds."
        )
    elif found.control:
        told.append(f"In the control, A once more beside A, nothing is called different: {_counted(found.control)}.")
    if found.is_control:
        told.append("Both sides ran the same code in the same environment: this is an A/A control.")
    told.append(
        f"Faster or slower: surely by more than {percent / 2:.2g} %, with at most 5 % of these expected to be none. "
        f"Same: the interval lies within ± {percent:.2g} %. Unclear: neither; more rounds narrow it. The interval (95 "
        "%) is that of the mean over rounds of the ratio between the two processes of a round, by a paired t test."
    )
    return told


_COLUMNS = (
    Column("cell", number=False, wrap=True, value=lambda line: line.cell.partition("/")[2] or line.cell),
    Column("series", number=False, value=lambda line: line.what),
    Column("A", "ms", value=lambda line: line.comparison and line.comparison.times[0]),
    Column("B", "ms", value=lambda line: line.comparison and line.comparison.times[1]),
    Column("change", "%", value=lambda line: line.change, show=lambda value: f"{100 * value:+.2f}"),
    Column("interval", "%", number=False, value=lambda line: line.comparison and _interval(line.comparison)),
    Column("SM clock, B / A", value=lambda line: line.clocks, show=lambda value: f"{value:.3f}", optional=True),
    Column("rounds", value=lambda line: line.rounds, show=lambda value: f"{value:.0f}"),
    Column("verdict", number=False, value=lambda line: line.judged),
)


def _interval(found: compare.Comparison) -> str:
    return f"[{100 * (1 / found.high - 1):+.2f}, {100 * (1 / found.low - 1):+.2f}]"


def tables(found: Turns) -> list[Table]:
    """What was found, the control, and the two sides."""
    names = {A: "A", B: "B", CONTROL: "A once more"}
    about = [{"side": names[name], **side} for name, side in found.about["sides"].items()]
    columns = [
        Column("side", number=False, value="side"),
        Column("given", number=False, value="given"),
        Column("commit", number=False, value=lambda side: (side["commit"] or "files as they were")[:12]
               if side["commit"] else "files as they were"),
        *(Column(name, number=False, value=name, optional=True) for name in _SOFTWARE),
        Column("interpreter", number=False, wrap=True, value="interpreter"),
    ]  # fmt: skip
    found_tables = (
        build("ab", "B beside A; a change above 0 takes longer.", _COLUMNS, found.lines, legend=False),
        build("ab_control", "A once more (here B) beside A.", _COLUMNS, found.control, legend=False),
        build("ab_sides", "The two sides.", columns, about, legend=False),
    )
    return [table for table in found_tables if table]


def title(found: Turns) -> str:
    """`A: main, B: worktree`."""
    a, b = (found.about["sides"][name]["given"] for name in (A, B))
    return f"In turns: A is {_short(a)}, B is {_short(b)}"


def _short(given: str) -> str:
    """A commit's hash in the length that git shows, any other name as it is."""
    return given[:10] if re.fullmatch(r"[0-9a-f]{40}", given) else given


def as_markdown(found: Turns) -> str:
    """The page in Markdown."""
    here = Path()
    blocks = MarkdownBlocks(Files(here, here, here, here))
    return "\n\n".join(_parts(found, blocks)) + "\n"


def as_html(found: Turns, templates: Path) -> str:
    """The page as one HTML file."""
    with tempfile.TemporaryDirectory(prefix="stepscope-page-") as folder:
        there = Path(folder)
        web = WebBlocks(Files(there, there, there, there), style_of(templates))
        body, headings = web.page("\n\n".join(_parts(found, web)))
    return document(templates, title(found), body, [heading for heading in headings if heading[0] == 2])


def _parts(found: Turns, blocks: MarkdownBlocks | WebBlocks) -> list[str | Prose]:
    rounds = found.about["rounds"]
    how = (
        f"{rounds} rounds; in each one fresh process of a side after the other, turned from round to round, "
        "on a device held for all of it. processes.csv has every process."
    )
    return [
        f"# {markdown(title(found))}",
        *map(markdown, sentences(found)),
        *map(blocks.table, tables(found)),
        markdown(how),
    ]


def as_text(found: Turns) -> str:
    """The table for a terminal, the series below their cells."""
    head = ("", "A ms", "B ms", "change %", "interval %", "verdict")
    body: list[tuple[str, ...]] = [head]
    for cell in dict.fromkeys(line.cell for line in found.lines):
        body.append((cell,))
        body += [_in_text(line) for line in found.lines if line.cell == cell]
    widths = [max(len(row[i]) for row in body if len(row) > 1) for i in range(len(head))]
    lines = [row[0] if len(row) == 1 else "  ".join(map(str.ljust, row, widths)).rstrip() for row in body]
    return "\n".join([*lines, "", *sentences(found)])


def _in_text(line: Line) -> tuple[str, ...]:
    if line.comparison is None:
        return (f"  {line.what}", "", "", "", "", line.verdict)
    times, change = map(significant, line.comparison.times), f"{100 * line.change:+.2f}"
    return (f"  {line.what}", *times, change, _interval(line.comparison), line.judged)
