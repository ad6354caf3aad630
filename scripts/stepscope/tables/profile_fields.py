"""The tables of all traces' analyses put together: the columns of stepscope.trace.table_names, each declared.

In a profile of a CPU, operators stand where kernels of a GPU would, and their own time where GPU time would.
"""

from stepscope.tables.schema import Field, Table, chosen, count, flag, number, text
from stepscope.tables.training import KEY
from stepscope.trace.table_names import COLUMNS

MS_A_STEP = {
    "host": "host time",
    "host_exclusive": "host time without what is nested in it",
    "gpu": "GPU time of all that was launched in it",
    "gpu_exclusive": "GPU time without that of what is nested in it",
    "gpu_matmul": "GPU time of matrix products",
}
SPREAD = {
    "mean": "mean",
    "median": "median",
    "min": "shortest",
    "max": "longest",
    "std": "sample standard deviation",
}


def _times(start: str, what: str) -> tuple[Field, ...]:
    """Fields of a spread in microseconds."""
    return tuple(number(f"{start}{key}_us", "us", f"{what}: {words}") for key, words in SPREAD.items())


def _between(name: str, what: str) -> tuple[Field, ...]:
    """Fields of times between two events, of which a step has several."""
    return (
        number(f"{name}s_per_step", "count", f"{what}: how many a step"),
        number(f"{name}_ms_per_step", "ms", f"{what}: sum over a step"),
        *_times(f"{name}_", what),
    )


COMMON = (
    text("phase", "phase of the step; `all`: the whole capture"),
    text("name", "short name of the kernel"),
    text("category", "what the kernel computes: `matmul`, `softmax forward`, `reduction` …"),
    number("total_ms", "ms", "time of all steps together"),
    number("ms_per_step", "ms", "time a step"),
    *(number(f"{key}_ms_per_step", "ms", f"a step's {words}") for key, words in MS_A_STEP.items()),
    count("instances", "how often it ran"),
    count("instances_per_step", "how often it ran in a step"),
    count("calls_per_step", "calls a step"),
    count("kernels_per_step", "kernels a step that were launched in it"),
    count("kernels_exclusive_per_step", "kernels a step without those of what is nested in it"),
    *_times("", "one instance"),
    *_times("host_", "host time of one occurrence"),
    *_times("gpu_", "GPU time of one occurrence"),
    text("top_kernel", "short name of the kernel with the most GPU time in it"),
    number("top_kernel_share_of_range_gpu_time", "share", "that kernel's share of the GPU time"),
    number("share_of_phase_gpu_time", "share", "share of the phase's GPU time"),
    text("device", "number of the GPU"),
    text("device_name", "name of the GPU"),
)
PHASE_TOTALS = (
    number("host_ms", "ms", "host time of the phase's ranges"),
    number("host_exclusive_ms", "ms", "the same without phases inside it"),
    number("gpu_ms", "ms", "GPU time of all operations launched in it"),
    number("gpu_exclusive_ms", "ms", "the same without phases inside it"),
    count("kernels", "kernels launched in it"),
    count("kernels_exclusive", "the same without phases inside it"),
    count("kernels_by_thread_rule", "kernels launched by the range's own thread, as other tools count"),
    number("gpu_by_thread_rule_ms", "ms", "GPU time of operations launched by the range's own thread"),
    count("memory_operations", "copies and memsets launched in it"),
)
# Table → what a row is, and the fields that only this table has, or that mean something else in it.
TABLES: dict[str, tuple[str, tuple[Field, ...]]] = {
    "phases": (
        "a phase of a step",
        (
            text("phase", "phase of the step"),
            count("count", "ranges of the phase in the trace"),
            count("steps", "steps in the trace"),
            count("cut_off", "ranges that the end of the trace cut off"),
            *(Field(f"{each.name}_total", each.kind, f"{each.meaning}; all steps", each.unit) for each in PHASE_TOTALS),
            *(Field(f"{each.name}_per_step", each.kind, f"{each.meaning}; a step", each.unit) for each in PHASE_TOTALS),
        ),
    ),
    "kernels": (
        "a kernel of a phase",
        (
            count("layers", "blocks of the model"),
            count("per_layer", "instances a step in each block"),
            count("remainder", "instances a step outside the blocks: `instances_per_step` less layers × per_layer"),
            text("layer_modules", "modules that launch those of a block, with how many"),
            text("remainder_modules", "modules that launch the remainder, with how many"),
            text("tile", "tile of a matrix product, by the kernel's name"),
            text("data_type", "data type, by the kernel's name"),
            text("unit", "what computes a matrix product, by the kernel's name: `tensor core`, `SIMT` …"),
            text("full_name", "name of the kernel in the trace"),
        ),
    ),
    "categories": ("a category of kernels of a phase", ()),
    "memory_operations": (
        "a copy, memset or fill of memory of a phase, by name",
        (
            text("kind", "`copy` or `memset` of a copy engine, or `fill`: a kernel that writes a constant"),
            text("name", "direction of a copy, or short name"),
        ),
    ),
    "ranges": (
        "a named range that is no phase",
        (
            text("range", "name of the range"),
            text("parent", "name of the range that it lies in most often"),
            flag("operator", "the range is an operator of PyTorch"),
            count("count", "occurrences in the trace"),
            count("count_per_step", "occurrences a step"),
            count(
                "kernels_by_any_thread_per_step",
                "kernels a step that any thread of the process launched while it was open",
                is_optional=True,
            ),
            number(
                "gpu_by_any_thread_ms_per_step",
                "ms",
                "GPU time a step of all that any thread of the process launched while it was open",
                is_optional=True,
            ),
        ),
    ),
    "attention": (
        "a part of attention in the forward pass",
        (
            text("part", "name of the part"),
            text("kind", "`whole` attention, a `part`, the `rest`, a `sum` of parts, or `forward` without attention"),
            number("share_of_attention_gpu_time", "share", "share of attention's GPU time"),
            number("share_of_forward_gpu_time", "share", "share of the forward pass's GPU time"),
            number("share_of_attention_host_time", "share", "share of attention's host time"),
            number("share_of_forward_host_time", "share", "share of the forward pass's host time"),
        ),
    ),
    "busy": (
        "a phase on a GPU",
        (
            number("wall_ms_per_step", "ms", "time a step in which the phase is open on the host"),
            number("busy_ms_per_step", "ms", "of it, time in which at least one operation ran on the GPU"),
            number("idle_ms_per_step", "ms", "the rest of it"),
            number("busy_share_of_wall", "share", "busy time over wall time"),
            number("compute_ms_per_step", "ms", "time a step in which a kernel of the phase ran"),
            number("memory_ms_per_step", "ms", "time a step in which a copy or memset of the phase ran"),
            number("compute_share_of_operations_time", "share", "the kernels' part of both"),
            *_between("gap", "gaps between two operations with nothing else on the GPU"),
            *_between("queue_delay", "time from the end of a launching call to the start of what it launched"),
        ),
    ),
    "api_gaps": ("a phase", _between("gap", "gaps between two CUDA calls of one thread")),
    "api_calls": (
        "a CUDA call by name",
        (text("name", "name of the call"), number("share_of_api_time", "share", "share of all CUDA calls' time")),
    ),
    "modules": (
        "a module in the backward pass",
        (
            text("module", "module whose forward operators the backward kernels belong to"),
            number("share_of_backward_gpu_time", "share", "share of the backward pass's GPU time"),
            count("elementwise_per_step", "of these kernels a step those that are elementwise, by their names"),
            number("elementwise_ms_per_step", "ms", "their time a step"),
        ),
    ),
    "lines": (
        "a line of Python",
        (
            text("file", "file of the line"),
            number("line", "", "number of the line"),
            count("operations_per_step", "operations a step that the line launched"),
            number("share_of_gpu_time", "share", "share of all GPU time"),
        ),
    ),
    "os_calls": (
        "a call into the operating system by name",
        (text("name", "name of the call"), number("share_of_os_call_time", "share", "share of all such calls' time")),
    ),
    "checks": (
        "a quantity of the trace",
        (text("quantity", "what is told of the trace"), text("value", "its value, a number or text")),
    ),
    "timeline": (
        "a rectangle of the drawn timeline",
        (
            text("view", "`step`: the step of median length; `attention`: one attention in it"),
            text("lane", "ranges by depth, CUDA calls by thread, or stream of a GPU"),
            number("start_us", "us", "start, from that of the view"),
            number("end_us", "us", "end, from the start of the view"),
            text("label", "what is written in it"),
            text("category", "category of the kernels, or what kind of lane it is"),
            number("span_us", "us", "length of the view"),
        ),
    ),
}
ANALYSES = {
    name: Table(f"profile_{name}", row, (KEY, *chosen(COLUMNS[name], COMMON, own)))
    for name, (row, own) in TABLES.items()
}
