"""Which kernel takes the most time in the forward pass and in the whole step, and how often it is launched."""

from stepscope.axes import PRECISIONS
from stepscope.report.chapters.kernels.words import place
from stepscope.report.data.bound import PRODUCTS
from stepscope.report.data.profile import GPU, Words
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known, mean_count, percent

_QUESTION = "which kernel takes the most time"
_MOST_NAME = 40
_PHASES = ("forward", "backward", "optimizer")


def top_findings(machine: Machine, own: dict) -> tuple[Finding, ...]:
    """Of the forward pass, and of the whole step."""
    return tuple(each for each in (_forward(machine, own), _step(machine, own)) if each)


def _forward(machine: Machine, row: dict) -> Finding | None:
    kernel = machine.profile.top_kernel(row["cell"], "forward")
    if not kernel:
        return None
    said, numbers = _often(kernel, machine.profile.words(row))
    answer = f"In the forward pass of {place(row)} in {row['precision']} {{name}} takes most: {said}."
    return Finding(_QUESTION, answer, numbers, row["hardware"], cause=_what(kernel, row))


def _what(kernel: dict, row: dict) -> str:
    """What a kernel does that is no matrix product."""
    precision = PRECISIONS.get(row["precision"])
    if kernel["category"] in PRODUCTS:
        return ""
    if kernel["category"] == "copy/cast" and precision and precision.is_autocast:
        return "It casts for the products."
    return "It is no product."


def _step(machine: Machine, row: dict) -> Finding | None:
    """The step's top kernel, whether it is the forward pass's, and where it takes its time."""
    kernel, first = (machine.profile.top_kernel(row["cell"], phase) for phase in ("step", "forward"))
    if not kernel or not first:
        return None
    said, numbers = _often(kernel, machine.profile.words(row))
    if kernel["full_name"] == first["full_name"]:
        numbers.pop("name")
        return Finding(_QUESTION, f"Over the whole step the same one does: {said}.", numbers, row["hardware"])
    phase, more = _phase(machine, row, kernel)
    return Finding(_QUESTION, f"Over the whole step {{name}} does: {said}{phase}.", numbers | more, row["hardware"])


def _phase(machine: Machine, row: dict, kernel: dict) -> tuple[str, dict[str, Number]]:
    """(`, {inside} of it in backward`, its number): the phase in which a kernel spends most of its time."""
    parts = {}
    for phase in _PHASES:
        there = machine.profile.row("kernels", row["cell"], phase=phase, full_name=kernel["full_name"])
        parts[phase] = there.get("total_ms", 0.0)
    phase = max(parts, key=parts.get)
    if not parts[phase] or not kernel["total_ms"]:
        return "", {}
    name = "the optimizer" if phase == "optimizer" else phase
    share = Number(parts[phase] / kernel["total_ms"], (row["cell"],), percent)
    return f", {{inside}} of it in {name}", {"inside": share}


def _often(kernel: dict, said: Words) -> tuple[str, dict[str, Number]]:
    """(`{share} of the GPU time in {times} launches ({per_block} a block)`, its numbers and the kernel's name)."""
    cells = (kernel["cell"],)
    numbers = {
        "name": Number(kernel["name"], cells, lambda name: f"“{formatting.shortened(name, _MOST_NAME)}”"),
        "times": Number(kernel["instances_per_step"], cells, mean_count),
        "share": Number(kernel["share_of_phase_gpu_time"], cells, percent),
    }
    blocks = ""
    if known(kernel.get("per_layer")) and kernel["per_layer"]:
        numbers["per_block"] = Number(kernel["per_layer"], cells, mean_count)
        blocks = " ({per_block} a block)"
    runs = "launches" if said is GPU else "calls"
    return f"{{share}} of the {said.time} in {{times}} {runs}{blocks}", numbers
