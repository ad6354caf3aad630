"""Where the time goes: how near a step is to the machine's rates, and what sets its phases."""

from stepscope.report.chapters.parts import present
from stepscope.report.chapters.time.growth import with_context, with_parameters
from stepscope.report.chapters.time.passes import backwards, extremes, noise, phases_and_step, variation
from stepscope.report.chapters.time.peak import gap, mfu, optimizer_bytes, optimizer_share, rates
from stepscope.report.chapters.time.tables import pictures, predicted_table, steps_table
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.timing_grid import timing_grid
from stepscope.report.kit.chapter import Chapter, Part


def chapter(machine: Machine) -> Chapter | None:
    """None where nothing was timed."""
    grid = timing_grid(machine)
    if not any(grid.timed(name, phase) for name in grid.precisions for phase in ("step", "forward", "inference")):
        return None
    by_size, by_context = pictures(machine, grid)
    near, passes = rates(machine, grid), extremes(grid)
    parts = (
        Part(
            "How long do the passes take?",
            present(passes if near else None, gap(machine, grid), mfu(grid)),
            present(steps_table(grid), predicted_table(machine.tables, grid)),
        ),
        Part(
            "Why does backward take twice forward, and where not?",
            present(*backwards(machine, grid)),
        ),
        Part(
            "How does time grow with parameters and context?",
            present(with_parameters(grid), with_context(machine, grid)),
            present(by_size, by_context),
        ),
        Part("What does the optimizer take?", present(optimizer_share(grid), optimizer_bytes(machine.tables, grid))),
        Part("Do phases add up, and times vary?", present(phases_and_step(machine, grid), variation(machine, grid))),
    )
    takeaway = present(near or passes, noise(grid))
    return Chapter("time", "Where the time goes", takeaway, parts, ("timing", "ceilings", "roofline"))
