"""The model and its baseline: what runs, how large it is, on which machine, and how it is measured."""

from stepscope.report.chapters.parts import present
from stepscope.report.chapters.setup.measured import cells_and_processes, floor, rates
from stepscope.report.chapters.setup.model import baseline, blocks, closed_form, flop, kernels, misnamed, parameters
from stepscope.report.chapters.setup.tables import sizes_table
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.timing_grid import timing_grid
from stepscope.report.kit import formatting
from stepscope.report.kit.chapter import Chapter, Part


def chapter(machine: Machine) -> Chapter | None:
    """None without a cell of the timing study that tells its shape."""
    grid = timing_grid(machine)
    first = baseline(grid)
    if first is None:
        return None
    size = misnamed(grid)
    asked = f"Why does {size['size']} have {formatting.parameters(size['parameters'])} parameters?" if size else ""
    table = sizes_table(grid)
    parts = (
        Part("What is the baseline, and why is nothing fused?", present(blocks(grid), kernels(machine))),
        Part(
            asked or "Where are the parameters, and how many FLOP is a step?",
            present(parameters(grid), flop(grid), closed_form(grid)),
            (table,) if table else (),
        ),
        Part("What are a cell, a process and the floor?", present(cells_and_processes(grid), floor(machine))),
        Part("What can the machine do?", present(rates(machine, grid))),
    )
    return Chapter("setup", "The model and its baseline", (first,), parts, ("timing", "ceilings"))
