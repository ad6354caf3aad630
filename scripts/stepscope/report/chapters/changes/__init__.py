"""What to change, one at a time: the ladder at its two most telling places, checkpointing, compiling, the best."""

from stepscope.report.chapters.changes.climb import (
    elsewhere,
    greatest,
    missed,
    predicted_optimizer,
    throttled,
    unlike,
    unproven,
    whole,
)
from stepscope.report.chapters.changes.costs import agreement, best, checkpointing, compiling, instead, whole_model
from stepscope.report.chapters.changes.tables import pictures, rungs_table
from stepscope.report.chapters.parts import present
from stepscope.report.data.ladder import Ladder, time
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.kit.chapter import Chapter, Part


def chapter(machine: Machine) -> Chapter | None:
    """None where no rung has a time."""
    found = places(machine)
    if not found:
        return None
    steps, checkpoints = pictures(machine)
    parts = (
        Part(
            "What does each change bring?",
            present(
                *(greatest(one) for one in found),
                unlike(found),
                *(predicted_optimizer(machine, one) for one in found[:1]),
                missed(machine, found),
            ),
            present(*(rungs_table(machine, one) for one in found), steps),
        ),
        Part(
            "Does checkpointing pay, and what else fits?",
            present(checkpointing(machine), instead(machine)),
            present(checkpoints),
        ),
        Part("What do the compile modes cost?", present(*(compiling(one) for one in found[:1]), whole_model(machine))),
        Part("Which rung is fastest?", present(*(best(one) for one in found[:1]))),
        Part(
            "Can these gains be trusted?",
            present(throttled(found), agreement(found), elsewhere(machine, found)),
        ),
    )
    takeaway = present(*(whole(one) for one in found), unproven(found))
    return Chapter("changes", "What to change, one at a time", takeaway, parts, ("ladder",))


def places(machine: Machine) -> list[Ladder]:
    """The largest ladder with a time, and one more: the largest of which a step was profiled, else the next largest."""
    timed = [one for one in machine.ladders if any(time(row) for row in one.rungs)]
    timed.sort(key=lambda one: work(one.parameters, one.context), reverse=True)
    profiled = {each.place for each in machine.steps}
    others = sorted(timed[1:], key=lambda one: (one.size, one.context, one.batch) not in profiled)
    return timed[:1] + others[:1]
