"""What the profiler cost, and what its options recorded."""

from stepscope.report.chapters.kernels.words import of_range, steps
from stepscope.report.data.bound import occupation, unprofiled_step
from stepscope.report.data.kernels import whole_steps
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known

_QUESTION = "what did the profiler cost and record"
_ALIKE = 0.9  # of the time without the profiler; a step that takes less ran under other conditions
_TOOLS = {"nsys": "Nsight Systems", "torch": "torch.profiler"}
# What --trace of nsys may list -> what that records.
_TRACED = {
    "cuda": "CUDA calls, kernels",
    "nvtx": "the model's ranges",
    "osrt": "the operating system's calls",
    "cublas": "cuBLAS's calls",
    "cudnn": "cuDNN's calls",
}


def profiled_over_plain(machine: Machine, row: dict) -> float | None:
    """The whole step's range under the profiler over the step without; None where either is not known."""
    wall = machine.profile.row("phases", row["cell"], phase="step").get("host_ms_per_step")
    plain, _ = unprofiled_step(machine.profile, row)
    return wall / plain if known(wall) and known(plain) and plain else None


def profiler_findings(machine: Machine, own: dict) -> tuple[Finding, ...]:
    """The cost over all steps in this precision, and what its options recorded."""
    return tuple(each for each in (_cost(machine, own), _recorded(machine, own)) if each)


def _cost(machine: Machine, own: dict) -> Finding | None:
    rows = [row for row in whole_steps(machine.profile, machine.hardware) if row["precision"] == own["precision"]]
    found = [(row, ratio) for row in rows if (ratio := profiled_over_plain(machine, row))]
    if not found:
        return None
    told, tool = [row for row, _ in found], str(own.get("profiler") or "the profiler")
    numbers = {"ratio": of_range([ratio for _, ratio in found], told)}
    answer = f"Under {_TOOLS.get(tool, tool)} a {own['precision']} step takes {{ratio}} times as long ({steps(told)})"
    answer += ", least where the GPU limits" if _is_least_where_gpu_limits(machine, found) else ""
    cause = "So the two runs were not alike, and no cost is known." if _is_any_faster(found) else ""
    return Finding(_QUESTION, f"{answer}.", numbers, machine.hardware, cause=cause)


def _is_any_faster(found: list[tuple[dict, float]]) -> bool:
    """Whether a step took clearly less time under the profiler, which adds work."""
    return min(ratio for _, ratio in found) < _ALIKE


def _is_least_where_gpu_limits(machine: Machine, found: list[tuple[dict, float]]) -> bool:
    """Whether each step that the GPU limits is slowed less than each other one."""
    bound, others = [], []
    for row, ratio in found:
        busy = occupation(machine.profile, row)
        (bound if busy and busy.verdict == "GPU-bound" else others).append(ratio)
    return bool(bound and others) and max(bound) < min(others)


def _recorded(machine: Machine, own: dict) -> Finding | None:
    """What the options of nsys recorded, and what they left out."""
    words = str(own.get("profiler_options") or "").split()
    traced = next((word.removeprefix("--trace=").split(",") for word in words if word.startswith("--trace=")), [])
    told = [_TRACED[name] for name in traced if name in _TRACED]
    if own.get("profiler") != "nsys" or not told:
        return None
    has_stacks = any(word.startswith("--python-backtrace") and not word.endswith("=none") for word in words)
    left = ["system calls"] * ("osrt" not in traced) + ["Python stacks"] * (not has_stacks)
    options = Number(",".join(traced), (own["cell"],), lambda words: f"trace={words}")
    answer = f"With {{options}} it recorded {formatting.listing(told)}" + f", no {' or '.join(left)}" * bool(left)
    return Finding(_QUESTION, f"{answer}.", {"options": options}, machine.hardware)
