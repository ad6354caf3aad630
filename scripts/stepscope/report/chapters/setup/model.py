"""The model: what it is made of, where its parameters are, what a step multiplies, and that nothing is fused."""

import re
from collections.abc import Sequence

from stepscope.model.flops import forward_flops_by_component
from stepscope.model.shape import ModelShape
from stepscope.report.chapters.parts import count_range, parameter_range
from stepscope.report.data.ladder import Ladder
from stepscope.report.data.own_models import OwnModel
from stepscope.report.data.profile_parts import product_flops, shape_of
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.data.timing_grid import TimingGrid, cells_of, place
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known

FAR_FROM_NAME = 0.05  # a share of the count that a name gives; nearer it is the name that was rounded
_SCALES = {"K": 1e3, "M": 1e6, "B": 1e9}


def sizes(grid: TimingGrid) -> list[dict]:
    """A row a size that tells its shape and its parameters, by parameters."""
    return [row for row in grid.sizes if shape_of(row) and known(row.get("parameters"))]


def baseline(grid: TimingGrid, others: int = 0) -> Finding | None:
    """What is trained, in which sizes, and that nothing in it is fused, or with which options it runs.

    others: models of one's own, which are trained beside it.
    """
    rows = sizes(grid)
    if not rows:
        return None
    counts = [row["parameters"] for row in rows]
    numbers = {"counts": Number(counts, cells_of(rows), parameter_range)}
    many = f"{len(rows):,} sizes" if len(rows) > 1 else "one size"
    batch = f", batch {formatting.count(rows[0]['batch'])}" if known(rows[0].get("batch")) else ""
    it = "The Transformer" if others else "It"
    answer = f"A decoder-only Transformer is trained on random tokens{batch}: {many} of {{counts}} parameters."
    if others:
        numbers["models"] = Number(len(rows) + others, cells_of(rows), formatting.count)
        answer = (
            f"{{models}} models are trained{batch}: {many} of a decoder-only Transformer, {{counts}} parameters, on "
            f"random tokens, and {others:,} of one's own."
        )
    cause = f"{it} runs with {rows[0]['options']}."
    if not rows[0]["options"]:
        cause = (
            f"{it} is written plainly: naive attention, AdamW of our own, no compiler. Nothing is fused, so that each "
            "fusion can be measured as one change."
        )
    return Finding("what is the baseline", answer, numbers, rows[0]["hardware"], cause)


def blocks(grid: TimingGrid, models: Sequence[OwnModel] = ()) -> Finding | None:
    """What a block of the sizes is made of, and how many there are; beside models of one's own how many these have."""
    rows = sizes(grid)
    if not rows:
        return None
    numbers = {"blocks": Number([row["num_layers"] for row in rows], cells_of(rows), count_range)}
    count, each = "There are {blocks} blocks.", "Each"
    if models:
        whose, each = "The sizes have" if len(rows) > 1 else f"{rows[0]['size']} has", "Each of these"
        count = f"{whose} {{blocks}} blocks."
    answer = (
        f"{count} {each} is RMSNorm and attention with rotary positions (RoPE), then RMSNorm and SwiGLU. Nothing has "
        "biases, and the head is not tied to the embedding."
    )
    others = [each.row for each in models if known(each.row.get("blocks"))]
    if others:
        numbers["others"] = Number([row["blocks"] for row in others], cells_of(others), count_range)
        theirs = "Models of one's own have" if len(others) > 1 else f"{others[0]['size']}, of one's own, has"
        answer += f" {theirs} {{others}} blocks."
    return Finding("what is a block", answer, numbers, rows[0]["hardware"])


def kernels(machine: Machine) -> Finding | None:
    """How many kernels the reference step launches, and how few the last rung of the largest ladder."""
    numbers, parts, own = {}, [], machine.reference
    count = machine.profile.row("phases", own.row["cell"], phase="step").get("kernels_per_step") if own else None
    if known(count):
        cells = (own.row["cell"],)
        numbers["kernels"] = Number(count, cells, formatting.count)
        part = ""
        of_adamw = machine.profile.row("phases", own.row["cell"], phase="optimizer").get("kernels_per_step")
        if known(of_adamw):
            numbers["adamw"] = Number(of_adamw, cells, formatting.count)
            part = ", {adamw} of them for AdamW"
        parts.append(f"As written a step of {own.name} in {own.precision} launches {{kernels}} kernels{part}.")
    climbed = [one for one in machine.ladders if _both_counts(one)]
    one = max(climbed, key=lambda one: work(one.parameters, one.context), default=None)
    if one:
        first, last = _both_counts(one)
        numbers["before"] = Number(first["kernels"], (first["cell"],), formatting.count)
        numbers["after"] = Number(last["kernels"], (last["cell"],), formatting.count)
        place = f"a step of {one.size} at {one.context:,.0f}"
        parts.append(
            f"On the ladder {place} runs {{before}} with {first['name']}, {{after}} with all changes up to "
            f"{last['name']}."
        )
    if not parts:
        return None
    return Finding("how many kernels is a step", " ".join(parts), numbers, machine.hardware)


def _both_counts(one: Ladder) -> tuple[dict, dict] | None:
    """The first and the last rung of which the kernels of a whole step were counted, if the last has fewer."""
    own = [row for row in one.climbed if known(row.get("kernels")) and row.get("counted") == "step"]
    return (own[0], own[-1]) if len(own) > 1 and own[-1]["kernels"] < own[0]["kernels"] else None


# Parameters and FLOP --------------------------------------------------------------------------------------------------


def named_count(size: str) -> float | None:
    """How many parameters a name such as `2.7B` promises; None for `small`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMB])", size, re.IGNORECASE)
    return float(found[1]) * _SCALES[found[2].upper()] if found else None


def misnamed(grid: TimingGrid) -> dict | None:
    """The largest size whose name promises another number of parameters than it has."""
    found = [
        row
        for row in sizes(grid)
        if (told := named_count(row["size"])) and abs(row["parameters"] / told - 1) > FAR_FROM_NAME
    ]
    return found[-1] if found else None


def parameters(grid: TimingGrid) -> Finding | None:
    """Where the parameters are; of a size with a misleading name, why it has more or fewer than that says."""
    if not sizes(grid):
        return None
    row = misnamed(grid) or sizes(grid)[-1]
    shape, told = shape_of(row), named_count(row["size"]) if misnamed(grid) else None
    matrix = shape.num_layers * shape.d_model * shape.d_ff
    untied = shape.vocab_size * shape.d_model
    values = {
        "whole": row["parameters"],
        "feed_forward": 3 * matrix,
        "attention": 4 * shape.num_layers * shape.d_model**2,
        "third": matrix,
        "untied": untied,
        "without": row["parameters"] - matrix - untied,
    }
    numbers = {name: Number(value, (row["cell"],), formatting.parameters) for name, value in values.items()}
    where = "{feed_forward} are in feed-forward layers, {attention} in attention"
    answer = f"Of {row['size']}'s {{whole}} parameters {where}."
    cause = "SwiGLU has three matrices where a plain layer has two, which adds {third}; the untied head adds {untied}."
    if told:
        is_nearer = abs(values["without"] - told) < abs(values["whole"] - told)
        cause += " Without both it would have {without}, " + (
            "nearer its name." if is_nearer else "no nearer its name."
        )
    return Finding("where are the parameters", answer, numbers, row["hardware"], cause)


def flop(grid: TimingGrid) -> Finding | None:
    """FLOP of a step where the rule of six a parameter and token is farthest off, and why."""
    rows = [row for row in grid.rows if shape_of(row) and product_flops(row, "step") and known(row.get("parameters"))]
    if not rows:
        return None
    row = max(rows, key=lambda row: abs(product_flops(row, "step") / by_rule(row) - 1))
    shape, batch, context = shape_of(row), int(row["batch"]), int(row["context"])
    forward = forward_flops_by_component(shape, batch, context)
    values = {
        "exact": product_flops(row, "step"),
        "rule": by_rule(row),
        "scores": 3 * (forward["scores"] + forward["attention x V"]),
        "looked_up": _embedding(shape, batch * context),
    }
    numbers = {name: Number(value, (row["cell"],), formatting.flop) for name, value in values.items()}
    answer = (
        f"The matrix products of a step of {place(row)} take {{exact}}; by the rule of 6 FLOP a parameter and token it "
        "would be {rule}." + " No other cell is farther off." * (len(rows) > 1)
    )
    cause = (
        "The rule leaves out attention's products over the context ({scores}) and counts the embedding, a look-up "
        "({looked_up})."
    )
    return Finding("how many FLOP is a step", answer, numbers, row["hardware"], cause)


def by_rule(row: dict) -> float:
    """6 FLOP for each parameter and token: two forward, four backward (Kaplan et al. 2020, section 2.1)."""
    return 6 * row["parameters"] * row["batch"] * row["context"]


def _embedding(shape: ModelShape, tokens: int) -> float:
    return 6 * shape.vocab_size * shape.d_model * tokens


def closed_form(grid: TimingGrid) -> Finding | None:
    """In how many sizes the closed form gives the parameters that the running model counted."""
    rows = sizes(grid)
    if not rows:
        return None
    right = [row for row in rows if shape_of(row).parameters == row["parameters"]]
    numbers = {"right": Number(len(right), cells_of(rows), formatting.count)}
    answer = f"The closed form counts as many parameters as the running model in {{right}} of {len(rows):,} sizes."
    return Finding("does the formula count the parameters", answer, numbers, rows[0]["hardware"])
