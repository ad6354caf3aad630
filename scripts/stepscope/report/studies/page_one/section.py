"""Page one: what an engineer sends to the team. It has no cells of its own: it reads what all studies measured."""

from stepscope.report.data.machines import labels
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import side_by_side
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.chapter import words
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.page_one.findings import Cost, answer, costs
from stepscope.report.studies.page_one.strip import doubts, strip
from stepscope.report.studies.page_one.tables import best_table, ladder_table
from stepscope.tables.reader import Tables

MOST_WORDS = 400  # of the page without its figure and its tables
_HEADINGS = 26  # words of the template itself, and some to spare
MOST_LINK_WORDS = 4  # words of a finding's link, at most


def applies(tables: Tables) -> bool:
    """Whether there is any cell."""
    return bool(labels(tables))


def findings(tables: Tables) -> list[Finding]:
    """None for the summary of all studies: these stand on the page."""
    return []


def context(tables: Tables) -> dict:
    """What report/sections/page_one.md.j2 is filled with."""
    machine = Machine(tables)
    lines, said, not_sure, own = strip(machine), answer(machine), doubts(machine), machine.reference
    about = f"{own.name} in {own.precision}" if own else ""
    told = [*(f"{name} {value}" for name, value in lines), said.text if said else "", about, *not_sure]
    kept = fitting(costs(machine), MOST_WORDS - _HEADINGS - words(" ".join(told)))
    return {
        "strip": lines,
        "answer": said,
        "picture": _picture(machine),
        "about": about,
        "parts": [each for each in kept if each.is_part],
        "others": [each for each in kept if not each.is_part],
        "tables": [made for made in (ladder_table(machine), best_table(machine)) if made],
        "doubts": not_sure,
    }


def fitting(found: list[Cost], most: int) -> list[Cost]:
    """The dearest findings that so many words have room for, in their order."""
    kept = []
    for each in found:
        most -= words(each.finding.text) + MOST_LINK_WORDS
        if most < 0:
            break
        kept.append(each)
    return kept


def _picture(machine: Machine) -> Picture | None:
    context, panels = side_by_side(machine.steps)
    if not panels:
        return None
    first = next(iter(panels.values()))[0].row
    steps = [each.step for own in panels.values() for each in own]
    marks = "; ".join(
        ["± half its 95 % interval between processes"] * any(step.has_interval for step in steps)
        + ["~: noisy"] * any(step.noisy for step in steps)
    )
    caption = (
        "Where a training step's time goes, as shares of the step without a profiler, whose time stands beside the bar"
        f"{f' ({marks})' * bool(marks)}. Attention's matrix products count among the products; its other kernels stand "
        "alone in the forward pass, and among the memory-bound ones in the backward pass. "
        f"{first['hardware']}; context {context:,.0f}, batch {first['batch']:,.0f}."
    )
    return Picture(
        "page_one", caption, "Stacked bars of five parts of a training step, a bar a size, a panel a precision."
    )
