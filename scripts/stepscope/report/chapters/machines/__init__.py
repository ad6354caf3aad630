"""Machines side by side: how many times as fast, what that follows, what fits; None for one machine."""

from stepscope.report.chapters.machines.compared import extremes, fits, follows, inverted, not_comparable, speed
from stepscope.report.chapters.machines.tables import picture, speeds_table
from stepscope.report.chapters.parts import present
from stepscope.report.data.points import Grid
from stepscope.report.data.side_by_side import Inversion, inversions
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import MOST_TAKEAWAY_WORDS, Chapter, Part, words
from stepscope.report.kit.finding import Finding, without_verdict
from stepscope.report.studies.hardware.findings import fastest

MOST_OTHERS = 3  # that sentences compare with the baseline


def chapter(machine: Machine) -> Chapter | None:
    """None where no cell has a time on two machines."""
    if len(machine.labels) < 2:
        return None
    grid = Grid(machine.tables)
    others = [other for other in grid.others if speed(grid, other)][:MOST_OTHERS]
    if not others:
        return None
    speeds = [found for point, label in grid.pairs if (found := grid.speed(point, label, grid.main))]
    takeaway, rest = _split([speed(grid, other) for other in others])
    table, drawn = speeds_table(grid), picture(grid)
    parts = (
        Part(
            "Which machine is fastest, and where is that not known?",
            present(
                fastest(grid),
                *rest,
                *(extremes(grid, other) for other in others),
                not_comparable(grid),
                *without_verdict(speeds),
            ),
            present(table, drawn),
        ),
        Part(
            "Does the speed follow the machines' rates?",
            present(*(each for other in others for each in follows(grid, other))),
        ),
        Part(
            "Is a machine in 16 bits ever slower than another in fp32?",
            present(*(inverted(grid, each) for each in _by_pair(inversions(grid)))),
        ),
        Part("What fits on one machine only?", present(*(each for other in others for each in fits(grid, other)))),
    )
    return Chapter("machines", "Machines side by side", takeaway, parts, ("hardware",))


def _split(found: list[Finding]) -> tuple[tuple[Finding, ...], list[Finding]]:
    """(as many as a takeaway has words for, the others)."""
    total, at = 0, 0
    while at < len(found) and (total := total + words(found[at].text)) <= MOST_TAKEAWAY_WORDS:
        at += 1
    return tuple(found[:at]), found[at:]


def _by_pair(found: list[Inversion]) -> list[list[Inversion]]:
    """Those of each pair of machines and precision, the slowest first."""
    groups: dict[tuple[str, str, str], list[Inversion]] = {}
    for each in found:
        groups.setdefault((each.machine, each.precision, each.other), []).append(each)
    return list(groups.values())
