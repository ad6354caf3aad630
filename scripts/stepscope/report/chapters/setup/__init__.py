"""The model and its baseline: what runs, how large it is, on which machine, and how it is measured."""

from stepscope.report.chapters.parts import present
from stepscope.report.chapters.setup.measured import cells_and_processes, floor, rates
from stepscope.report.chapters.setup.model import (
    baseline,
    blocks,
    closed_form,
    flop,
    kernels,
    misnamed,
    parameters,
    sizes,
)
from stepscope.report.chapters.setup.tables import own_models_table, sizes_table
from stepscope.report.data.own_models import OwnModel, longest, own_models
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.timing_grid import timing_grid
from stepscope.report.kit import formatting
from stepscope.report.kit.chapter import Chapter, Part
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.models.findings import built, dropout, flops, unknown


def chapter(machine: Machine) -> Chapter | None:
    """None without a cell of the timing study that tells its shape, and without a model of one's own."""
    grid = timing_grid(machine)
    models = [each for each in own_models(machine.tables) if each.row["hardware"] == machine.hardware]
    others = longest(models)
    first = baseline(grid, len(others)) or built(models)
    if first is None:
        return None
    size = misnamed(grid)
    asked = f"Why does {size['size']} have {formatting.parameters(size['parameters'])} parameters?" if size else ""
    parts = (
        Part(
            "What is the baseline, and why is nothing fused?" if sizes(grid) else "How many kernels is a step?",
            present(blocks(grid, others), kernels(machine)),
        ),
        Part(
            asked or "Where are the parameters, and how many FLOP is a step?",
            present(parameters(grid), flop(grid), closed_form(grid)),
            present(sizes_table(grid)),
        ),
        _own(models, first),
        Part("What are a cell, a process and the floor?", present(cells_and_processes(grid), floor(machine))),
        Part("What can the machine do?", present(rates(machine, grid))),
    )
    data = ("timing", "ceilings", "models") if models else ("timing", "ceilings")
    return Chapter("setup", "The model and its baseline", (first,), parts, data)


def _own(models: list[OwnModel], first: Finding) -> Part:
    """Models of one's own: what was built and what is known of it, without what the takeaway says."""
    told = present(built(models), dropout(models), flops(models), unknown(models))
    return Part(
        "What was built of one's own?",
        tuple(each for each in told if each.question != first.question),
        present(own_models_table(models)),
    )
