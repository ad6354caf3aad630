"""The tables of a trace as one Markdown page, for a terminal and for GitHub."""

import math
from dataclasses import dataclass

import pandas as pd

from stepscope.recordings.text import markdown as markdown_text

MOST_KERNELS = 8
MOST_NAMES = 12
MOST_COMPARED = 25
_CATEGORY = [("category", "category", None)]
_COMPARED = [("name", "name", None), ("change", "change", None), ("before_ms_per_step", "before, GPU ms/step", 3),
    ("after_ms_per_step", "after, GPU ms/step", 3), ("difference_ms_per_step", "difference, ms/step", 3),
    ("after_over_before", "after / before", 2), ("before_instances_per_step", "before, kernels/step", 1),
    ("after_instances_per_step", "after, kernels/step", 1)]  # fmt: skip
# Tables that need not be named where they are missing.
_SILENT = ("warnings", "processes", "ranges_there", "compared_phases", "compared_kernels")
# table → (heading, columns: (name, heading, decimals or None for text), rows at most, filter)
_SECTIONS = (
    ("warnings", "Warnings", [("about", "about", None), ("text", "what", None)], None),
    ("ranges_there", "Ranges that are there", [("range", "range", None), ("count", "count", 0),
      ("share_of_gpu_time", "share of GPU time, launched by any thread", "%")], None),
    ("compared_phases", "Phases before and after", _COMPARED, None),
    ("compared_kernels", "Kernels before and after", _COMPARED[:1] + _CATEGORY + _COMPARED[1:], MOST_COMPARED),
    ("phases", "Phases", [("phase", "phase", None), ("count", "count", 0), ("host_ms_per_step", "host ms/step", 3),
      ("host_exclusive_ms_per_step", "host exclusive ms/step", 3), ("gpu_ms_per_step", "GPU ms/step", 3),
      ("kernels_per_step", "kernels/step", 1),
      ("kernels_by_thread_rule_per_step", "of them by the range's own thread", 1),
      ("kernels_total", "kernels", 0), ("gpu_ms_total", "GPU ms", 3)], None),
    ("kernels", "Kernels by phase", [("phase", "phase", None), ("name", "kernel", None), ("category", "category", None),
      ("share_of_phase_gpu_time", "share of the phase's GPU time", "%"), ("total_ms", "total ms", 3),
      ("instances", "instances", 0), ("composition", "instances/step", None),
      ("mean_us", "mean us", 2), ("median_us", "median us", 2), ("min_us", "min us", 2),
      ("max_us", "max us", 2), ("std_us", "std us", 2)], MOST_KERNELS),
    ("categories", "Categories by phase", [("phase", "phase", None), ("category", "category", None),
      ("ms_per_step", "ms/step", 3), ("share_of_phase_gpu_time", "share of the phase's GPU time", "%"),
      ("instances_per_step", "instances/step", 1)], None),
    ("ranges", "Ranges that are no phases", [("range", "range", None), ("parent", "within", None),
      ("count", "count", 0),
      ("host_ms_per_step", "host ms/step", 3), ("gpu_ms_per_step", "GPU ms/step", 3),
      ("gpu_by_any_thread_ms_per_step", "GPU ms/step by any thread", 3), ("kernels_per_step", "kernels/step", 1),
      ("kernels_by_any_thread_per_step", "kernels/step by any thread", 1), ("top_kernel", "top kernel", None)],
     MOST_NAMES),
    ("attention", "Inside attention", [("part", "part", None), ("host_ms_per_step", "host ms/step", 3),
      ("host_exclusive_ms_per_step", "host exclusive ms/step", 3), ("gpu_ms_per_step", "GPU ms/step", 3),
      ("gpu_exclusive_ms_per_step", "GPU exclusive ms/step", 3), ("kernels_per_step", "kernels/step", 1),
      ("top_kernel", "top kernel", None),
      ("top_kernel_share_of_range_gpu_time", "its share of the part's GPU time", "%"),
      ("gpu_median_us", "GPU median us", 1), ("gpu_min_us", "GPU min us", 1), ("gpu_max_us", "GPU max us", 1),
      ("share_of_attention_gpu_time", "share of attention's GPU time", "%"),
      ("share_of_forward_gpu_time", "share of forward's GPU time", "%")], None),
    ("busy", "Devices: busy and idle", [("phase", "phase", None), ("device", "device", 0),
      ("wall_ms_per_step", "wall ms/step", 3), ("busy_ms_per_step", "busy ms/step", 3),
      ("idle_ms_per_step", "idle ms/step", 3), ("busy_share_of_wall", "busy share of wall", "%"),
      ("gaps_per_step", "gaps/step", 1), ("gap_median_us", "gap median us", 2), ("gap_max_us", "gap max us", 1),
      ("queue_delay_median_us", "queue delay median us", 2)], None),
    ("processes", "Phases of each process and device", [("phase", "phase", None), ("process", "process", 0),
      ("device", "device", 0), ("device_in_process", "in the process: cuda", 0), ("kernels", "kernels", 0),
      ("gpu_ms", "GPU ms", 3), ("gpu_ms_per_step", "GPU ms/step", 3)], 8),
    ("communication", "Communication: how much of it is hidden behind other kernels", [("process", "process", 0),
      ("device", "device", 0), ("device_in_process", "in the process: cuda", 0), ("kernels", "kernels", 0),
      ("busy_ms", "busy ms", 3), ("busy_ms_per_step", "busy ms/step", 3), ("hidden_ms", "of it hidden ms", 3),
      ("exposed_ms", "exposed ms", 3), ("hidden_share", "hidden share", "%")], None),
    ("copies", "Copies and fills of memory", [("process", "process", 0), ("device", "device", 0),
      ("what", "what", None),
      ("count", "count", 0), ("total_ms", "total ms", 3),
      ("share_of_device_time", "share of the process's GPU time there", "%"), ("bytes", "bytes", 0),
      ("gb_per_s", "GB/s", 2)], 40),
    ("synchronisations", "Calls that wait for the GPU", [("process", "process", 0), ("name", "call", None),
      ("calls", "calls", 0), ("calls_per_step", "calls/step", 1), ("total_ms", "total ms", 3),
      ("ms_per_step", "ms/step", 3), ("max_us", "max us", 1)], MOST_NAMES),
    ("api_gaps", "Gaps between CUDA calls", [("phase", "phase", None), ("calls_per_step", "calls/step", 1),
      ("gap_ms_per_step", "gaps ms/step", 3), ("gap_median_us", "median us", 2), ("gap_max_us", "max us", 1)], None),
    ("api_calls", "CUDA calls", [("name", "call", None), ("calls_per_step", "calls/step", 1),
      ("ms_per_step", "ms/step", 3), ("share_of_api_time", "share of CUDA calls' time", "%"),
      ("median_us", "median us", 2), ("max_us", "max us", 1)], MOST_NAMES),
    ("modules", "Backward kernels by module", [("module", "module", None), ("kernels_per_step", "kernels/step", 1),
      ("gpu_ms_per_step", "GPU ms/step", 3), ("share_of_backward_gpu_time", "share of backward's GPU time", "%")],
     MOST_NAMES),
    ("lines", "Python lines", [("file", "file", None), ("line", "line", 0),
      ("operations_per_step", "operations/step", 1), ("gpu_ms_per_step", "GPU ms/step", 3),
      ("share_of_gpu_time", "share of GPU time", "%")], MOST_NAMES),
    ("os_calls", "Calls into the operating system", [("name", "call", None), ("calls_per_step", "calls/step", 1),
      ("total_ms", "total ms", 3), ("max_us", "max us", 1)], MOST_NAMES),
    ("checks", "What the trace holds", [("quantity", "quantity", None), ("value", "value", None)], None),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Section:
    """A table as it is shown. columns: (name, heading, decimals, "%" or None for text); note: a sentence above it."""

    name: str
    heading: str
    columns: list[tuple[str, str, int | str | None]]
    rows: list[dict]
    note: str = ""


def sections(tables: dict[str, pd.DataFrame], times: int = 1) -> list[Section]:
    """The tables with rows in the order in which they are shown; `times`: as many rows as in the summary."""
    checks = tables["checks"].set_index("quantity")["value"] if "checks" in tables else {}
    on_host = str(checks.get("device_is_host")) == "True"
    found = []
    for name, heading, columns, most in _SECTIONS:
        table = _chosen(name, tables.get(name, pd.DataFrame()))
        if table.empty:
            continue
        if on_host:
            heading, columns = _of_operators(heading), [(key, _of_operators(label), how) for key, label, how in columns]
        other = checks.get("phases_by_other_names", "") if name == "phases" else ""
        note = f"Ranges that were taken for phases by their names: {other}." if other else ""
        if most is not None:
            table = (table.groupby("phase", sort=False) if "phase" in table else table).head(most * times)
        chosen = [column for column in columns if column[0] in table]
        found.append(Section(name, heading, chosen, table.to_dict("records"), note))
    return found


def _chosen(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table that are shown, in their order."""
    if table.empty:
        return table
    if name == "ranges":
        by = "gpu_by_any_thread_ms_per_step"
        return table[~table["operator"].astype(bool)].sort_values(by, ascending=False, kind="stable")
    if name == "kernels":
        return table.assign(composition=[_composition(row) for row in table.to_dict("records")])
    if name == "processes" and len(table[["process", "device"]].drop_duplicates()) == 1:
        return table[:0]  # the table of phases says the same
    return table


def markdown(tables: dict[str, pd.DataFrame], title: str) -> str:
    """The summary; a table without rows is omitted, and named at the end as missing."""
    shown = sections(tables)
    parts = [f"# {markdown_text(title)}"]
    for section in shown:
        lines = [" | ".join(label for _, label, _ in section.columns)]
        lines.append(" | ".join(":---" if decimals is None else "---:" for _, _, decimals in section.columns))
        lines += [
            " | ".join(markdown_text(value_text(row[key], decimals)) for key, _, decimals in section.columns)
            for row in section.rows
        ]
        parts.append(f"## {markdown_text(section.heading)}")
        parts += [markdown_text(section.note)] if section.note else []
        parts.append("\n".join(f"| {line} |" for line in lines))
    there = {section.name for section in shown}
    missing = [heading for name, heading, *_ in _SECTIONS if name in tables and name not in there | set(_SILENT)]
    if missing:
        parts.append("Not in this trace: " + ", ".join(missing) + ".")
    return "\n\n".join(parts) + "\n"


def _of_operators(heading: str) -> str:
    """A heading for a trace of a CPU, in which operators stand where kernels of a GPU would."""
    heading = heading.replace("GPU time", "time in operators").replace("GPU ", "operators ")
    return heading.replace("Kernels", "Operators").replace("kernel", "operator")


def _composition(row: dict) -> str:
    """How a kernel's instances a step come about, such as "217 = 36 × 6 + 1 (1 LM head)"."""
    if not row["layers"] or math.isnan(row["layers"]):
        return f"{row['instances_per_step']:g}"
    text = f"{row['instances_per_step']:g} = {row['layers']:g} × {row['per_layer']:g}"
    text += f" + {row['remainder']:g}" if row["remainder"] else ""
    return text + (f" ({row['remainder_modules']})" if row["remainder_modules"] else "")


def value_text(value: object, decimals: int | str | None) -> str:
    """A value as text: with so many decimals, as a share in per cent, or as it is; a dash for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if decimals is None:
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"{100 * value:.1f} %" if decimals == "%" else f"{value:,.{decimals}f}"
