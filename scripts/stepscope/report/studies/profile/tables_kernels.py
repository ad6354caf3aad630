"""Tables of one profiled cell: its phases, its kernels, their categories, and the inside of attention."""

import re
from functools import partial

import pandas as pd

from stepscope.report.data.profile import GPU, PHASES, Profile, Words
from stepscope.report.data.profile_parts import SOFTMAX_OPERATIONS, flops_of_part, parts_of_forward
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.formatting import known, mean_count, percentage, rounded, shortened
from stepscope.report.studies.profile.tables import FOUR_DIGITS

MOST_KERNELS = 8
_NAME = 80
_FULL_NAME = 700


def phases_table(profile: Profile, row: dict, name: str) -> Table | None:
    """A row a phase: host time, GPU time and kernels, a step and in total."""
    words = profile.words(row)
    columns = [
        Column("phase", number=False, value=lambda phase: table.named(phase["phase"])),
        Column("count", value="count", show=mean_count),
        _each_and_total("inclusive", "host time (ms)", "host_ms", FOUR_DIGITS),
        _each_and_total("exclusive", "host time (ms)", "host_exclusive_ms", FOUR_DIGITS),
        _each_and_total("inclusive", f"{words.time} (ms)", "gpu_ms", FOUR_DIGITS),
        _each_and_total("exclusive", f"{words.time} (ms)", "gpu_exclusive_ms", FOUR_DIGITS),
        _each_and_total("inclusive", words.operations, "kernels"),
        _each_and_total("exclusive", words.operations, "kernels_exclusive"),
    ]
    rule = "An operator's time is without the operators that it calls."
    if words is GPU:
        columns += [
            _each_and_total("by thread", "kernels", "kernels_by_thread_rule"),
            _each_and_total("copies and fills of memory", "", "memory_operations"),
        ]
        rule = (
            "A kernel belongs to the phase in which it was launched, by any thread; by thread: what a count of the "
            "range's own thread finds."
        )
    caption = f"{name}: phases. A step, and below it the total of {_steps(profile, row)}."
    notes = [f"Exclusive: without the phases inside it (the loss is a part of forward). {rule}"]
    rows = in_order(profile.rows("phases", row["cell"]), PHASES)
    return table.build(f"phases-{row['cell']}", caption, columns, rows, notes)


def _each_and_total(label: str, group: str, key: str, show=None) -> Column:
    """A step's value over the total; counts unless `show` says how to print both."""

    def cell(phase: dict) -> TableCell:
        total = (show or formatting.count)(phase.get(f"{key}_total"))
        return table.number(phase.get(f"{key}_per_step"), show or mean_count, total)

    return Column(label, group=group, value=cell)


def _steps(profile: Profile, row: dict) -> str:
    steps = profile.number_of(row["cell"], "steps")
    return "the profiled steps" if not steps > 0 else f"{steps:,.0f} profiled step{'s' * (steps != 1)}"


def in_order(rows: pd.DataFrame, phases: tuple[str, ...]) -> list[dict]:
    """Rows of a table that has phases, these first and in their order."""
    order = {phase: at for at, phase in enumerate(phases)}
    lines = rows.to_dict("records")
    return sorted(lines, key=lambda line: order.get(line["phase"], len(order)))


def kernels_table(profile: Profile, row: dict, name: str) -> Table | None:
    """The kernels that take most of each phase's GPU time, with how often and from where they are launched."""
    parts, words = _by_time(profile, row), profile.words(row)
    columns = [
        Column("phase", number=False, value="phase"),
        Column(words.operation, number=False, wrap=True, value=_kernel),
        Column("category", number=False, value="category"),
        Column("share", "%", words.time, value="share_of_phase_gpu_time", show=percentage),
        Column("total", "ms", words.time, value="total_ms", show=FOUR_DIGITS),
        Column("in a step = layers × k + r", number=False, wrap=True, value=_often),
        Column("mean ± std", group="length of one (µs)", value=_mean),
        *(Column(key, group="length of one (µs)", value=f"{key}_us", show=rounded) for key in ("median", "min", "max")),
        Column("data type, unit, tile", number=False, optional=True, value=_made),
    ]
    what = f"the {words.operations} that take most of a phase's {words.time}"
    caption = f"{name}: {what}, {MOST_KERNELS} at most."
    left = [_left(phase, part.iloc[MOST_KERNELS:]) for phase, part in parts.items() if len(part) > MOST_KERNELS]
    notes = [
        f"Share: of the phase's {words.time}. Total: of {_steps(profile, row)}. k: "
        "instances in each layer, r: in the rest of the step; below them the modules that launch them. Of instances "
        "whose module is not known, k is only the quotient: that many in each layer would leave r.",
        f"Not shown: {'; '.join(left)}." if left else "",
    ]
    return table.build(f"kernels-{row['cell']}", caption, columns, _shown(parts), notes, grouped=True)


def _by_time(profile: Profile, row: dict) -> dict[str, pd.DataFrame]:
    """Phase -> its kernels, the largest GPU time first."""
    rows = profile.rows("kernels", row["cell"])
    parts = {phase: rows[rows["phase"] == phase] for phase in PHASES if phase != "step"} if len(rows) else {}
    return {
        phase: part.sort_values("total_ms", ascending=False, kind="stable")
        for phase, part in parts.items()
        if len(part)
    }


def _shown(parts: dict[str, pd.DataFrame]) -> list[dict]:
    return [kernel for part in parts.values() for kernel in part.head(MOST_KERNELS).to_dict("records")]


def _left(phase: str, rest: pd.DataFrame) -> str:
    return f"{phase}: {len(rest):,} more take {percentage(rest['share_of_phase_gpu_time'].sum())} %"


def _kernel(kernel: dict) -> TableCell:
    return TableCell(shortened(kernel["name"] or "–", _NAME), title=str(kernel.get("full_name") or ""))


def _often(kernel: dict) -> TableCell:
    times, formula, own = mean_count(kernel["instances_per_step"]), formula_of(kernel), instances(kernel)
    text = f"{times} = {formula}" if formula else times
    return TableCell(text, own.below, kernel["instances_per_step"], title=own.title)


def formula_of(kernel: dict) -> str:
    """How the number of a kernel's instances comes about; empty where it is not known or says no more."""
    formula = instances(kernel).text
    return "" if formula in ("–", mean_count(kernel["instances_per_step"])) else formula


def _mean(kernel: dict) -> TableCell:
    return table.number(kernel.get("mean_us"), lambda mean: formatting.mean_and_std(mean, kernel.get("std_us")))


def _made(kernel: dict) -> TableCell:
    """Data type and unit, and below them the tile."""
    words = [str(kernel[key]) for key in ("data_type", "unit") if kernel[key]]
    tile = str(kernel["tile"] or "").replace("x", "×")
    return TableCell(shortened(", ".join(words) or "–", 40), shortened(tile, 40))


def names_table(profile: Profile, row: dict, name: str) -> Table | None:
    """The full names of the kernels that kernels_table() shows, each once; None where they tell no more."""
    operation = profile.words(row).operation
    shown = [
        kernel for part in _by_time(profile, row).values() for kernel in part.head(MOST_KERNELS).to_dict("records")
    ]
    full = {str(kernel["full_name"]): str(kernel["name"]) for kernel in shown if kernel.get("full_name")}
    if all(short == long for long, short in full.items()):
        return None
    columns = [
        Column(operation, number=False, wrap=True, value=lambda names: TableCell(shortened(names[1], _NAME))),
        Column("full name", number=False, wrap=True, value=lambda names: table.named(names[0], _FULL_NAME)),
    ]
    caption = f"{name}: full names of these {operation}s"
    return table.build(f"names-{row['cell']}", caption, columns, full.items(), folded=True)


def instances(kernel: dict) -> TableCell:
    """`24 × 2 + 1 LM head`, and below it the modules in each layer."""
    layers, each, rest = (kernel.get(key) for key in ("layers", "per_layer", "remainder"))
    if not all(known(value) for value in (layers, each, rest)):
        return TableCell("–")
    in_layers, once = str(kernel.get("layer_modules") or ""), str(kernel.get("remainder_modules") or "")
    parts = [f"{layers:,.0f} × {each:,.0f}"] if each else []
    if rest:
        parts.append(once.replace(", ", " + ") if _counted(once) == rest else f"{rest:,.0f}")
    below = [f"each layer: {_modules(in_layers, each)}"] if in_layers else []
    below += [f"else: {_modules(once, rest)}"] if once and _counted(once) != rest else []
    whole = "; ".join(below)
    text = " + ".join(parts) or "0"
    title = f"{text}; {whole}" if len(text) > 80 or len(whole) > 160 else ""
    return TableCell(shortened(text, 80), shortened(whole, 160), title=title)


def _modules(names: str, number_of: float) -> str:
    unknown = number_of - _counted(names)
    return f"{names}, {unknown:,.0f} not known" if unknown > 0 else names


def _counted(names: str) -> int:
    """How many instances `2 FFN, 1 LM head` stands for; a name may hold a comma, but then no number follows it."""
    return sum(int(number_of) for number_of in re.findall(r"(?:^|, )(\d+) ", names))


def categories_table(profile: Profile, row: dict, name: str) -> Table | None:
    """A row a category, a column a phase."""
    found, words = profile.rows("categories", row["cell"]), profile.words(row)
    there = set(found["phase"]) if len(found) else set()
    phases = [phase for phase in PHASES if phase in there]
    columns = [Column("category", number=False, value=lambda own: TableCell(str(own["category"])))]
    for phase in phases:
        columns += [
            Column("time, share", "ms, %", phase, value=partial(_time_and_share, phase)),
            Column(words.operations, group=phase, value=partial(_instances, phase), show=mean_count),
        ]
    caption = f"{name}: categories by phase, in a step."
    notes = [
        f"Time: {words.time} in ms; below it the share of the phase's. "
        f"A category is judged by the name of the {words.operation} alone."
    ]
    rows = _by_category(found, "step" if "step" in there else phases[0]) if phases else []
    return table.build(f"categories-{row['cell']}", caption, columns, rows, notes)


def _by_category(found: pd.DataFrame, first: str) -> list[dict]:
    """A row a category, which holds the line of each phase; by their time in the phase `first`."""
    lines = {(line["phase"], line["category"]): line for line in found.to_dict("records")}
    largest = found[found["phase"] == first].sort_values("ms_per_step", ascending=False, kind="stable")
    return [
        {"category": category} | {phase: lines[phase, category] for phase in PHASES if (phase, category) in lines}
        for category in dict.fromkeys([*largest["category"], *found["category"]])
    ]


def _time_and_share(phase: str, own: dict) -> TableCell:
    line = own.get(phase, {})
    share = percentage(line.get("share_of_phase_gpu_time"))
    return table.number(line.get("ms_per_step"), rounded, share and f"{share} %")


def _instances(phase: str, own: dict) -> float | None:
    return own.get(phase, {}).get("instances_per_step")


def attention_table(profile: Profile, row: dict, name: str) -> Table | None:
    """The parts of attention in the forward pass: host and GPU time, shares, operations."""
    rows = profile.rows("attention", row["cell"])
    words, flops = profile.words(row), parts_of_forward(row)
    host, gpu = "share of host time (%)", f"share of {words.time} (%)"
    columns = [
        _PART,
        *_times(rows, "host_", "host time (ms)"),
        *_times(rows, "gpu_", f"{words.time} (ms)"),
        Column(words.operations, "a step", value="kernels_per_step", show=mean_count),
        Column("attention", group=gpu, value="share_of_attention_gpu_time", show=percentage),
        Column("forward", group=gpu, value="share_of_forward_gpu_time", show=percentage),
        Column("attention", group=host, value="share_of_attention_host_time", show=percentage),
        Column("forward", group=host, value="share_of_forward_host_time", show=percentage),
        Column("GFLOP", "a step", value=partial(_giga_flop, flops), show=rounded),
        Column("rate", f"{'T' if words is GPU else 'G'}FLOP/s", value=partial(_rate, flops, words), show=rounded),
    ]
    caption = f"{name}: inside attention, in the forward pass, a step (all layers)."
    notes = [
        "GFLOP: matrix products in closed form; the softmax at "
        f"{SOFTMAX_OPERATIONS} operations an element (maximum, subtraction, exp, sum, division), a convention. "
        "The mask and the rotation of Q and K are not counted. Rate: over all that the part runs, copies too."
    ]
    return table.build(f"attention-{row['cell']}", caption, columns, rows.to_dict("records"), notes)


_PART = Column("part", number=False, wrap=True, value=lambda part: table.named(part["part"], _NAME))


def _times(rows: pd.DataFrame, side: str, group: str) -> list[Column]:
    """Inclusive and exclusive times of a side, those that are known; exclusive ones that are all zero say nothing."""
    exclusive = f"{side}exclusive_ms_per_step"
    columns = [Column("inclusive", group=group, value=f"{side}ms_per_step", show=rounded, optional=True)]
    if exclusive in rows and (rows[exclusive].fillna(0) != 0).any():
        columns.append(Column("exclusive", group=group, value=exclusive, show=rounded))
    return columns


def _giga_flop(flops: dict[str, float], part: dict) -> float | None:
    own = flops_of_part(part, flops)
    return None if own is None else own / 1e9


def _rate(flops: dict[str, float], words: Words, part: dict) -> float | None:
    """TFLOP/s of a part on a GPU, GFLOP/s on a CPU."""
    own, time = flops_of_part(part, flops), part.get("gpu_ms_per_step")
    return own / time / (1e9 if words is GPU else 1e6) if own is not None and known(time) and time > 0 else None


def layers_table(profile: Profile, row: dict, name: str) -> Table | None:
    """How each part of attention spreads over the layers, and its top kernel; None where the table has neither."""
    rows, words = profile.rows("attention", row["cell"]), profile.words(row)
    rows = rows[rows["kind"].isin(["whole", "part"])] if len(rows) else rows
    columns = [
        Column(key, group=f"{what}, one layer (µs)", value=f"{side}_{key}_us", show=rounded)
        for side, what in (("gpu", words.time), ("host", "host time"))
        for key in ("mean", "median", "min", "max", "std")
        if f"{side}_{key}_us" in rows
    ]
    if "top_kernel" in rows:
        columns += [
            Column(
                f"top {words.operation}",
                number=False,
                wrap=True,
                value=lambda part: table.named(part["top_kernel"]),
            ),
            Column("its share of the part", "%", value=_top_share, show=percentage),
        ]
    if not columns:
        return None
    layers = profile.number_of(row["cell"], "layers")
    columns.insert(
        0, Column(words.operations, "one layer", value=partial(_a_layer, layers), show=mean_count, optional=True)
    )
    caption = f"{name}: inside attention, one layer in one step. The spread is over layers and steps."
    return table.build(f"layers-{row['cell']}", caption, [_PART, *columns], rows.to_dict("records"))


def _a_layer(layers: float, part: dict) -> float | None:
    """Kernels that one layer's call launches."""
    kernels = part.get("kernels_per_step")
    return kernels / layers if known(kernels) and layers > 0 else None


def _top_share(part: dict) -> float | None:
    return part.get("top_kernel_share_of_range_gpu_time", part.get("top_kernel_share"))
