"""The tables of an analysis. Standard library only: the workflow's rules and the tidy tables name them too.

Times are in the unit at the end of a column's name; a share's name ends with what it is a share of.
"""

_PHASE_TOTALS = (
    *("host_ms", "host_exclusive_ms", "gpu_ms", "gpu_exclusive_ms", "kernels", "kernels_exclusive"),
    *("kernels_by_thread_rule", "gpu_by_thread_rule_ms", "memory_operations"),
)
_RANGE_TIMES = (
    *("host_ms_per_step", "host_exclusive_ms_per_step", "gpu_ms_per_step", "gpu_exclusive_ms_per_step"),
    *("gpu_matmul_ms_per_step", "kernels_per_step", "kernels_exclusive_per_step"),
    *(f"{side}_{key}_us" for side in ("host", "gpu") for key in ("mean", "median", "min", "max", "std")),
    *("top_kernel", "top_kernel_share_of_range_gpu_time"),
)


def _spread(name: str) -> tuple[str, ...]:
    return f"{name}s_per_step", f"{name}_ms_per_step", f"{name}_median_us", f"{name}_mean_us", f"{name}_max_us"


COLUMNS: dict[str, tuple[str, ...]] = {
    "phases": (
        *("phase", "count", "steps", "cut_off"),
        *(f"{name}_total" for name in _PHASE_TOTALS),
        *(f"{name}_per_step" for name in _PHASE_TOTALS),
    ),
    "kernels": (
        *("phase", "name", "category", "total_ms", "share_of_phase_gpu_time", "instances", "instances_per_step"),
        *("layers", "per_layer", "remainder", "layer_modules", "remainder_modules"),
        *("mean_us", "median_us", "min_us", "max_us", "std_us", "tile", "data_type", "unit", "full_name"),
    ),
    "categories": (
        *("phase", "category", "total_ms", "ms_per_step", "share_of_phase_gpu_time"),
        *("instances", "instances_per_step"),
    ),
    "memory_operations": (
        *("phase", "kind", "name", "total_ms", "ms_per_step", "share_of_phase_gpu_time"),
        *("instances", "instances_per_step"),
    ),
    "ranges": (
        *("range", "parent", "operator", "count", "count_per_step", *_RANGE_TIMES),
        *("kernels_by_any_thread_per_step", "gpu_by_any_thread_ms_per_step"),
    ),
    "attention": (
        *("part", "kind"),
        *("share_of_attention_gpu_time", "share_of_forward_gpu_time"),
        *("share_of_attention_host_time", "share_of_forward_host_time"),
        *_RANGE_TIMES,
    ),
    "busy": (
        *("phase", "device", "device_name", "wall_ms_per_step", "busy_ms_per_step", "idle_ms_per_step"),
        *("busy_share_of_wall", "compute_ms_per_step", "memory_ms_per_step", "compute_share_of_operations_time"),
        *_spread("gap"),
        *_spread("queue_delay"),
    ),
    "api_gaps": ("phase", "calls_per_step", *_spread("gap")),
    "api_calls": (
        *("name", "calls_per_step", "total_ms", "ms_per_step", "share_of_api_time"),
        *("mean_us", "median_us", "max_us"),
    ),
    "modules": (
        *("module", "kernels_per_step", "gpu_ms_per_step", "share_of_backward_gpu_time"),
        *("elementwise_per_step", "elementwise_ms_per_step"),
    ),
    "lines": ("file", "line", "operations_per_step", "gpu_ms_per_step", "share_of_gpu_time"),
    "os_calls": (
        *("name", "calls_per_step", "total_ms", "ms_per_step", "share_of_os_call_time"),
        *("mean_us", "median_us", "max_us"),
    ),
    "checks": ("quantity", "value"),
    "timeline": ("view", "lane", "start_us", "end_us", "label", "category", "span_us"),
}
"""Table → its columns, in the order in which they are written."""

TABLES = tuple(COLUMNS)

_PLACE = ("process", "device", "device_in_process", "device_name")
FURTHER: dict[str, tuple[str, ...]] = {
    "warnings": ("about", "text"),
    "ranges_there": ("range", "count", "share_of_gpu_time"),
    "processes": ("phase", *_PLACE, "kernels", "gpu_ms", "gpu_ms_per_step"),
    "communication": (
        *(*_PLACE, "kernels", "kernels_per_step", "total_ms", "busy_ms", "busy_ms_per_step"),
        *("hidden_ms", "exposed_ms", "hidden_share"),
    ),
    "copies": (
        *(*_PLACE, "what", "count", "count_per_step", "total_ms", "ms_per_step", "share_of_device_time"),
        *("bytes", "gb_per_s"),
    ),
    "synchronisations": ("process", "name", "calls", "calls_per_step", "total_ms", "ms_per_step", "max_us"),
}
"""Tables that analyze_nsys.py makes besides, for programs that are none of ours: several processes, any ranges."""
