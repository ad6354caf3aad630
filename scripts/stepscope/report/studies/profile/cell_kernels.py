"""Tables of one profiled cell: its phases, its kernels, their categories."""

import re

import pandas as pd

from stepscope.report.data.profile import (
    GPU,
    PHASES,
    Profile,
    Words,
    count,
    count_text,
    named,
    number,
    share,
    share_text,
    shortened,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table

MOST_KERNELS = 8
_KERNEL_PHASES = ("inference", "forward", "loss", "backward", "optimizer")
_NAME = 80
_FULL_NAME = 700


def phases_table(profile: Profile, row: dict, name: str) -> Table | None:
    """A row a phase: host time, GPU time and kernels, a step and in total."""
    rows = profile.rows("phases", row["cell"])
    if rows.empty:
        return None
    words = profile.words(row)
    columns = [Column("phase", number=False), Column("count"), Column("inclusive", group="host time (ms)")]
    columns += [Column("exclusive", group="host time (ms)"), Column("inclusive", group=f"{words.time} (ms)")]
    columns += [Column("exclusive", group=f"{words.time} (ms)"), Column("inclusive", group=words.operations)]
    columns += [Column("exclusive", group=words.operations)]
    keys = ["host_ms", "host_exclusive_ms", "gpu_ms", "gpu_exclusive_ms", "kernels", "kernels_exclusive"]
    if words is GPU:
        columns += [Column("by thread", group="kernels"), Column("copies and fills of memory")]
        keys += ["kernels_by_thread_rule", "memory_operations"]
    lines = []
    for phase in _in_order(rows):
        line = [named(phase["phase"]), count(phase.get("count"))]
        lines.append(line + [_each_and_total(phase, key) for key in keys])
    steps = profile.number_of(row["cell"], "steps")
    caption = f"{name}: phases. A step, and below it the total of {_steps(steps)}."
    notes = [
        "Exclusive: without the phases inside it (the loss is a part of forward). "
        + (
            "A kernel belongs to the phase in which it was launched, by any thread; by thread: what a count of the "
            "range's own thread finds."
            if words is GPU
            else "An operator's time is without the operators that it calls."
        )
    ]
    return Table(f"phases-{row['cell']}", caption, columns, lines, notes)


def _steps(steps: float) -> str:
    return "the profiled steps" if not steps > 0 else f"{steps:,.0f} profiled step{'s' * (steps != 1)}"


def _each_and_total(phase: dict, key: str) -> Cell:
    each, total = phase.get(f"{key}_per_step"), phase.get(f"{key}_total")
    if key.endswith("ms"):
        return number(each, 4, formatting.significant(total, 4) if total else "0")
    return count(each, formatting.count(total))


def _in_order(rows: pd.DataFrame) -> list[dict]:
    """The phases' rows, the known ones in their order."""
    order = {phase: at for at, phase in enumerate(PHASES)}
    rank = rows["phase"].map(lambda phase: order.get(phase, len(order)))
    return rows.assign(_rank=rank).sort_values("_rank", kind="stable").to_dict("records")


def kernels_table(profile: Profile, row: dict, name: str) -> Table | None:
    """The kernels that take most of each phase's GPU time, with how often and from where they are launched."""
    parts, words = _largest(profile, row), profile.words(row)
    if not parts:
        return None
    columns = [Column("phase", number=False), Column(words.operation, number=False, wrap=True)]
    columns += [Column("category", number=False), Column("share", "%", group=words.time)]
    columns += [
        Column("total", "ms", group=words.time),
        Column("in a step = layers × k + r", number=False, wrap=True),
    ]
    columns += [Column(key, group="length of one (µs)") for key in ("mean ± std", "median", "min", "max")]
    made = any(part[key].notna().any() for _, part in parts for key in ("tile", "data_type", "unit"))
    columns += [Column("data type, unit, tile", number=False)] if made else []
    lines, left = [], []
    for phase, part in parts:
        for kernel in part.head(MOST_KERNELS).to_dict("records"):
            lines.append(_kernel(phase, kernel) + ([_made(kernel)] if made else []))
        rest = part.iloc[MOST_KERNELS:]
        if len(rest):
            percent = share_text(rest["share_of_phase_gpu_time"].sum())
            left.append(f"{phase}: {len(rest):,} more take {percent} %")
    what = f"the {words.operations} that take most of a phase's {words.time}"
    caption = f"{name}: {what}, {MOST_KERNELS} at most."
    notes = [
        f"Share: of the phase's {words.time}. Total: of {_steps(profile.number_of(row['cell'], 'steps'))}. k: "
        "instances in each layer, r: in the rest of the step; below them the modules that launch them. Of instances "
        "whose module is not known, k is only the quotient: that many in each layer would leave r."
    ]
    notes += [f"Not shown: {'; '.join(left)}."] if left else []
    return Table(f"kernels-{row['cell']}", caption, columns, lines, notes, grouped=True)


def _largest(profile: Profile, row: dict) -> list[tuple[str, pd.DataFrame]]:
    """(phase, its kernels, the largest GPU time first)."""
    rows = profile.rows("kernels", row["cell"])
    parts = [(phase, rows[rows["phase"] == phase]) for phase in _KERNEL_PHASES] if len(rows) else []
    return [(phase, part.sort_values("total_ms", ascending=False, kind="stable")) for phase, part in parts if len(part)]


def _kernel(phase: str, kernel: dict) -> list[Cell]:
    full, each = str(kernel.get("full_name") or ""), kernel["instances_per_step"]
    line = [
        Cell(phase),
        Cell(shortened(kernel["name"] or "–", _NAME), title=full),
        Cell(str(kernel["category"] or "–")),
    ]
    line += [share(kernel["share_of_phase_gpu_time"]), number(kernel["total_ms"], 4)]
    formula = instances(kernel)
    text = count_text(each) if formula.text in ("–", count_text(each)) else f"{count_text(each)} = {formula.text}"
    line.append(Cell(text, formula.below, each, title=formula.title))
    mean = kernel.get("mean_us")
    text = formatting.mean_and_std(mean, kernel.get("std_us")) if formatting.known(mean) else "–"
    line.append(Cell(text, sort=mean if formatting.known(mean) else None))
    return line + [number(kernel.get(f"{key}_us"), 3) for key in ("median", "min", "max")]


def _made(kernel: dict) -> Cell:
    """Data type and unit, and below them the tile."""
    words = [str(kernel[key]) for key in ("data_type", "unit") if kernel[key]]
    tile = str(kernel["tile"] or "").replace("x", "×")
    return Cell(shortened(", ".join(words) or "–", 40), shortened(tile, 40))


def names_table(profile: Profile, row: dict, name: str) -> Table | None:
    """The full names of the kernels that kernels_table() shows, each once; None where they tell no more."""
    shown = [kernel for _, part in _largest(profile, row) for kernel in part.head(MOST_KERNELS).to_dict("records")]
    full = {str(kernel["full_name"]): str(kernel["name"]) for kernel in shown if kernel.get("full_name")}
    if all(short == long for long, short in full.items()):
        return None
    columns = [Column(profile.words(row).operation, number=False, wrap=True)]
    columns.append(Column("full name", number=False, wrap=True))
    lines = [[Cell(shortened(short, _NAME)), named(long, _FULL_NAME)] for long, short in full.items()]
    caption = f"{name}: full names of these {profile.words(row).operations}"
    return Table(f"names-{row['cell']}", caption, columns, lines, [], folded=True, page_only=True)


def instances(kernel: dict) -> Cell:
    """`24 × 2 + 1 LM head`, and below it the modules in each layer."""
    layers, each, rest = (kernel.get(key) for key in ("layers", "per_layer", "remainder"))
    if not all(formatting.known(value) for value in (layers, each, rest)):
        return Cell("–")
    in_layers, once = str(kernel.get("layer_modules") or ""), str(kernel.get("remainder_modules") or "")
    parts = [f"{layers:,.0f} × {each:,.0f}"] if each else []
    if rest:
        parts.append(once.replace(", ", " + ") if _counted(once) == rest else f"{rest:,.0f}")
    below = [f"each layer: {_modules(in_layers, each)}"] if in_layers else []
    below += [f"else: {_modules(once, rest)}"] if once and _counted(once) != rest else []
    whole = "; ".join(below)
    text = " + ".join(parts) or "0"
    title = f"{text}; {whole}" if len(text) > 80 or len(whole) > 160 else ""
    return Cell(shortened(text, 80), shortened(whole, 160), title=title)


def _modules(names: str, number_of: float) -> str:
    unknown = number_of - _counted(names)
    return f"{names}, {unknown:,.0f} not known" if unknown > 0 else names


def _counted(names: str) -> int:
    """How many instances `2 FFN, 1 LM head` stands for; a name may hold a comma, but then no number follows it."""
    return sum(int(number_of) for number_of in re.findall(r"(?:^|, )(\d+) ", names))


def categories_table(profile: Profile, row: dict, name: str) -> Table | None:
    """A row a category, a column a phase."""
    rows = profile.rows("categories", row["cell"])
    words = profile.words(row)
    there = set(rows["phase"]) if len(rows) else set()
    phases = [phase for phase in PHASES if phase in there]
    if not phases:
        return None
    step = "step" if "step" in there else phases[0]
    order = rows[rows["phase"] == step].sort_values("ms_per_step", ascending=False, kind="stable")["category"].tolist()
    order += [category for category in dict.fromkeys(rows["category"]) if category not in order]
    found = {(line["phase"], line["category"]): line for line in rows.to_dict("records")}
    columns = [Column("category", number=False)]
    for phase in phases:
        columns += [Column("time, share", "ms, %", group=phase), Column(words.operations, group=phase)]
    lines = [
        [Cell(str(category)), *(cell for phase in phases for cell in _category(found.get((phase, category), {})))]
        for category in order
    ]
    caption = f"{name}: categories by phase, in a step."
    notes = [
        f"Time: {words.time} in ms; below it the share of the phase's. "
        f"A category is judged by the name of the {words.operation} alone."
    ]
    return Table(f"categories-{row['cell']}", caption, columns, lines, notes)


def _category(line: dict) -> list[Cell]:
    percent = line.get("share_of_phase_gpu_time")
    below = f"{share_text(percent)} %" if formatting.known(percent) else ""
    return [number(line.get("ms_per_step"), 3, below), count(line.get("instances_per_step"))]


def top_kernel(profile: Profile, cell: str, phase: str) -> dict:
    """The kernel that takes the most GPU time in a phase; empty without one."""
    rows = profile.rows("kernels", cell)
    own = rows[rows["phase"] == phase] if len(rows) else rows
    return own.loc[own["total_ms"].idxmax()].to_dict() if len(own) else {}


def top_sentence(profile: Profile, row: dict) -> str:
    """Which kernel takes the most time in forward and in backward, and whether it is the same."""
    words = profile.words(row)
    forward, backward = (top_kernel(profile, row["cell"], phase) for phase in ("forward", "backward"))
    if not forward:
        forward = top_kernel(profile, row["cell"], "inference")
    if not forward:
        return ""
    where = f"the {forward['phase']} pass" if forward["phase"] == "forward" else "inference"
    text = f"In {where} {_told(forward)} takes the most {words.time}: {_often(forward)}."
    if not backward:
        return text
    if backward["full_name"] == forward["full_name"]:
        return f"{text} It is the same in the backward pass: {_often(backward)}."
    again = next(
        (
            line
            for line in profile.rows("kernels", row["cell"]).to_dict("records")
            if line["phase"] == "backward" and line["full_name"] == forward["full_name"]
        ),
        None,
    )
    there = (
        f"the first one takes {share_text(again['share_of_phase_gpu_time'])} % there"
        if again
        else "the first one does not run there"
    )
    return f"{text} In the backward pass it is another, {_told(backward)}: {_often(backward)}; {there}."


def _told(kernel: dict) -> str:
    return f"“{shortened(kernel['name'], 80)}”"


def _often(kernel: dict) -> str:
    percent = share_text(kernel["share_of_phase_gpu_time"])
    text = f"{percent} % of it, {count_text(kernel['instances_per_step'])} times a step"
    formula = instances(kernel).text
    return f"{text} ({formula})" if formula not in ("–", count_text(kernel["instances_per_step"])) else text


def others_sentence(profile: Profile, row: dict) -> str:
    """The categories besides matrix products that take more than a twentieth of the step."""
    rows = profile.rows("categories", row["cell"])
    own = rows[(rows["phase"] == "step") & (rows["category"] != "matmul")] if len(rows) else rows
    own = own[own["share_of_phase_gpu_time"] >= 0.05].sort_values("ms_per_step", ascending=False) if len(own) else own
    words: Words = profile.words(row)
    parts = [
        f"{line['category']} {share_text(line['share_of_phase_gpu_time'])} % "
        f"({count_text(line['instances_per_step'])} {words.operations})"
        for line in own.to_dict("records")
    ]
    return (
        f"Besides matrix products, these take 5 % of the step's {words.time} or more: {formatting.listing(parts)}."
        if parts
        else ""
    )
