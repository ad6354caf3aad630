"""The chapter warm-up: why the first step is slow, what that does to a mean, and when it is over."""

from stepscope.report.chapters.warmup import first_step, later_steps
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.warmup import Warmups
from stepscope.report.data.warmup_process import LATE_FROM, Process, main_setting, processes
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.chapter import MOST_ROWS, Chapter, Part
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.warmup.captions import pictures


def chapter(machine: Machine) -> Chapter | None:
    """None where no warm-up was measured on the machine and nothing was compiled."""
    warmups, hardware = Warmups(machine.tables), machine.hardware
    setting = main_setting(warmups, hardware)
    compiling = later_steps.compiling(machine.ladders)
    if setting is None:
        if compiling is None:
            return None
        return Chapter("warmup", "Warm-up", (), (Part("What does compiling add?", (compiling,)),), ("ladder",))
    points = sorted(setting.measured, key=lambda point: point.parameters)
    by = {point.size: own for point in points if (own := processes(warmups, point))}
    largest, figures = first_step.biggest(setting.points), pictures(warmups)
    parts = (
        Part(
            "Why is the first step slow?",
            _told(
                first_step.contents(setting),
                first_step.first_use(setting),
                first_step.phases(by, hardware),
                first_step.optimizer_state(by, points, hardware),
            ),
            _shown(figures.get("warmup_first_step")),
        ),
        Part(
            "What does a benchmark without warm-up get?",
            first_step.means(by, hardware),
            _shown(first_steps_table(by, warmups.place(setting))),
        ),
        Part(
            "Why may the first and second warm-up steps still differ?",
            _told(later_steps.second_step(by, hardware), later_steps.scatter(by, hardware)),
            _shown(figures.get("warmup_steps")),
        ),
        Part(
            "How many warm-up steps are enough?",
            _told(later_steps.enough(setting)),
        ),
        Part("What does compiling add?", _told(compiling)),
    )
    takeaway = _told(first_step.ratios(by, hardware, setting.title), later_steps.after_one_or_two(setting, largest))
    return Chapter("warmup", "Warm-up", takeaway, parts, ("warmup", "ladder"))


def first_steps_table(by: dict[str, list[Process]], place: str) -> Table | None:
    """A row a size: the first, second and late steps over its processes, and the mean without warm-up."""
    columns = [
        Column("size", value=lambda line: line[0], number=False),
        Column("processes", value=lambda line: len(line[1]), show=formatting.count),
        *(Column(name, "ms", value=lambda line, of=of: _span(line[1], of))
          for name, of in (("first step", lambda each: each.at(0)), ("second step", lambda each: each.at(1)),
                           ("late steps", lambda each: each.late()))),
        Column("mean without warm-up", "× late", value=lambda line: _cold_mean(line[1])),
    ]  # fmt: skip
    caption = (
        "The first, the second and the late steps of fresh processes, from the least to the most of their processes. "
        f"Late steps are those from step {LATE_FROM + 1} on, of a process their median. The mean is of the first steps "
        f"of the process without warm-up, over its own late steps. {place[:1].upper()}{place[1:]}."
    )
    return table.build("chapter-warmup-first-steps", caption, columns, list(by.items())[-MOST_ROWS:])


def _span(found: list[Process], of) -> table.TableCell:
    values = [of(each) for each in found]
    return table.TableCell(formatting.value_range(values), sort=max(values))


def _cold_mean(found: list[Process]) -> table.TableCell:
    cold = first_step.cold(found)
    if cold is None:
        return table.NOTHING
    badges = ("slow_host",) * cold.slow_host
    return table.number(cold.times["step"].mean() / cold.late(), _two_decimals, badges=badges)


def _two_decimals(value: float) -> str:
    return formatting.fixed(value, 2)


def _told(*found: Finding | None) -> tuple[Finding, ...]:
    return tuple(each for each in found if each)


def _shown(*blocks) -> tuple:
    return tuple(each for each in blocks if each)
