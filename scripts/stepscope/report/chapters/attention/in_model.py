"""Attention inside the profiled model: its share of the forward pass, and its softmax beside its matrix products."""

from stepscope.report.data.machines import bandwidth
from stepscope.report.data.own_models import is_own
from stepscope.report.data.profile import GPU
from stepscope.report.data.profile_parts import shape_of, softmax_against_products
from stepscope.report.data.softmax_traffic import scores_bytes, softmax_bytes
from stepscope.report.data.spotlight import MIXED, Machine
from stepscope.report.data.step_parts import StepParts
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import precision_rank
from stepscope.report.kit.sizes import percent_change, size
from stepscope.report.studies.page_one.changes import Change, change

RISES = 1.02  # times as large a share, from which on it is said to grow
UNLIKE = 2.0  # times as far apart as operations, from which on times do not follow them
SERVED, EXPLAINED = 1.05, 0.5  # predicted over measured time: above, caches help; from here on traffic sets the time
LARGEST_L2 = 128 * 2**20  # bytes: that of a B200, 126 MB, is the largest; records do not tell a GPU's own
IDLES = 0.1  # of the step before a change, from which on launches are the reason for less gain than predicted
_CALL = "attention"  # the whole of it, a part of the forward pass


def rows_of_size(machine: Machine) -> list[dict]:
    """The profiled steps, at neutral options, of the size that was profiled at most contexts; of equals the largest.

    In the order of context and precision, all of the batch that most have.
    """
    rows = [row for row in machine.profile.profiled() if _is_plain(row) and row["hardware"] == machine.hardware]
    rows = [row for row in rows if _line(machine, row, _CALL)]
    if not rows:
        return []
    contexts = {row["size"]: {each["context"] for each in rows if each["size"] == row["size"]} for row in rows}
    parameters = {row["size"]: row["parameters"] if formatting.known(row.get("parameters")) else 0 for row in rows}
    chosen = max(contexts, key=lambda name: (len(contexts[name]), parameters[name]))
    own = [row for row in rows if row["size"] == chosen]
    batches = [row["batch"] for row in own]
    batch = max(batches, key=batches.count)
    own = [row for row in own if row["batch"] == batch]
    return sorted(own, key=lambda row: (row["context"], precision_rank(row["precision"])))


def _is_plain(row: dict) -> bool:
    return mode(row) == "step" and row["repeat"] == 1 and not row["options"]


def in_main_precision(rows: list[dict]) -> list[dict]:
    """Those in bf16, else those in the plainest precision."""
    names = {row["precision"] for row in rows}
    main = MIXED if MIXED in names else min(names, key=precision_rank, default="")
    return [row for row in rows if row["precision"] == main]


def _line(machine: Machine, row: dict, part: str, **where) -> dict:
    """A part's row of the profile's table of attention; empty where there is none."""
    return machine.profile.row("attention", row["cell"], part=part, **where)


def _share(machine: Machine, row: dict) -> float | None:
    share = _line(machine, row, _CALL).get("share_of_forward_gpu_time")
    return share if formatting.known(share) else None


def share_by_context(machine: Machine, rows: list[dict]) -> Finding | None:
    """Attention's share of the forward pass at the shortest and the longest context."""
    own = [row for row in in_main_precision(rows) if _share(machine, row) is not None]
    if not own:
        return None
    first, last = own[0], own[-1]
    time = machine.profile.words(last).time
    numbers = {"last": Number(_share(machine, last), (last["cell"],), formatting.percent)}
    told, cause = f"{{last}} of the forward pass's {time} at context {last['context']:,.0f}", ""
    if len(own) > 1:
        numbers["first"] = Number(_share(machine, first), (first["cell"],), formatting.percent)
        told = f"{{first}} of the forward pass's {time} at context {first['context']:,.0f} and {{last}} at "
        told += f"{last['context']:,.0f}"
        cause = "It does not grow, although its scores are context × context."
        if _share(machine, last) > RISES * _share(machine, first):
            cause = "Its scores are context × context."
        if is_own(last):  # it may not make them, or not over the context
            cause = ""
    answer = f"Attention takes {told} ({last['size']}, {last['precision']})."
    return Finding("what share of the forward pass is attention", answer, numbers, machine.hardware, cause)


def share_by_precision(machine: Machine, rows: list[dict]) -> Finding | None:
    """Why attention's share is larger in 16 bits: at the longest context that was profiled in fp32 too."""
    after = [row for row in in_main_precision(rows) if row["precision"] != "fp32"]
    before = {row["context"]: row for row in rows if row["precision"] == "fp32"}
    both = [(before[row["context"]], row) for row in after if row["context"] in before]
    if not both:
        return None
    pair = both[-1]
    inside = [_line(machine, row, _CALL).get("gpu_ms_per_step") for row in pair]
    outside = [_line(machine, row, "forward without attention").get("gpu_ms_per_step") for row in pair]
    if not all(map(formatting.known, (*inside, *outside))) or not all((*inside, *outside)):
        return None
    if outside[0] / outside[1] <= RISES * inside[0] / inside[1]:
        return None
    cells = tuple(row["cell"] for row in pair)
    numbers = {"inside": Number(inside[0] / inside[1], cells, formatting.times)}
    numbers["outside"] = Number(outside[0] / outside[1], cells, formatting.times)
    products = _line(machine, pair[1], _CALL).get("gpu_matmul_ms_per_step")
    cause = ""
    if formatting.known(products) and products < inside[1] / 2:
        cause = f"In {pair[1]['precision']} matrix products are {{products}} of attention's time."
        numbers["products"] = Number(products / inside[1], cells, formatting.percent)
    name = pair[1]["precision"]
    answer = (
        f"Profiled once at {pair[1]['context']:,.0f}, attention ran {{inside}} as fast in {name} as in fp32, the rest "
        "of the forward pass {outside}."
    )
    return Finding("why is the share larger in 16 bits", answer, numbers, machine.hardware, cause)


def softmax(machine: Machine, rows: list[dict]) -> Finding | None:
    """Softmax against the two products in operations, GPU time and host time, at the longest context."""
    found = [(row, own) for row in in_main_precision(rows) if (own := softmax_against_products(machine.profile, row))]
    if not found:
        return None
    row, own = found[-1]
    cells = (row["cell"],)
    numbers = {"flops": Number(own.flops, cells, _two_digits), "time": Number(own.time, cells, _two_digits)}
    host = ""
    if own.host and machine.profile.words(row) is GPU:
        host = " and {host} times their host time"
        numbers["host"] = Number(own.host, cells, _two_digits)
    answer = (
        f"The softmax does {{flops}} times the FLOP of both products, yet takes {{time}} times their "
        f"{machine.profile.words(row).time}{host} (context {row['context']:,.0f}, {row['precision']})."
    )
    cause = ""
    if own.time / own.flops < UNLIKE:
        answer, cause = answer.replace(", yet takes", " and takes"), "Here FLOP predict its time."
    return Finding("what does the softmax cost", answer, numbers, machine.hardware, cause)


def _two_digits(value: float) -> str:
    return formatting.significant(value, 2)


def traffic(machine: Machine, rows: list[dict]) -> Finding | None:
    """The softmax's time as its bytes over the measured copy rate predict it, at the longest context of a GPU."""
    rate = bandwidth(machine.tables, machine.hardware, "measured")
    own = [row for row in in_main_precision(rows) if machine.profile.words(row) is GPU and softmax_bytes(row)]
    if not own or not rate:
        return None
    row = own[-1]
    line, cells = _line(machine, row, "softmax"), (row["cell"],)
    measured, kernels = line.get("gpu_ms_per_step"), line.get("kernels_per_step")
    if not (formatting.known(measured) and measured > 0 and formatting.known(kernels)):
        return None
    moved = softmax_bytes(row)
    predicted = moved / rate / 1e6  # GB/s are 1e6 bytes a millisecond
    numbers = {
        "kernels": Number(kernels / shape_of(row).num_layers, cells, formatting.mean_count),
        "moved": Number(moved, cells, size),
        "predicted": Number(predicted, cells),
        "measured": Number(measured, cells),
        "gap": Number(measured / predicted - 1, cells, percent_change),
    }
    ratio = predicted / measured
    cause = "Its bytes alone do not explain that."
    if ratio > SERVED:
        cause = "The caches serve part of them."
    elif ratio >= EXPLAINED:
        cause = "Mostly memory traffic sets its time."
        if scores_bytes(row) <= LARGEST_L2:
            cause = "But a layer's {scores} of scores may fit in the L2 cache."
            numbers["scores"] = Number(scores_bytes(row), cells, size)
    answer = (
        "By formula its {kernels} kernels a layer move {moved} of scores a forward pass. That takes {predicted} ms "
        "at the copy rate; {measured} ms were measured ({gap})."
    )
    return Finding("why is the softmax slow", answer, numbers, machine.hardware, cause)


def remedy(machine: Machine, rows: list[dict]) -> Finding | None:
    """What a fused kernel brings to a step: predicted from the forward pass, and as the ladder measured it.

    Of the step that the ladder climbed from if that was profiled, else of the one at the longest context.
    """
    names = {row["cell"] for row in in_main_precision(rows)}
    steps = sorted((each for each in machine.steps if each.row["cell"] in names), key=lambda each: each.row["context"])
    both = [(own, made) for own in steps if own.attention > 0 and (made := _fused(machine, own))]
    if not both:
        return None
    climbed = [(own, made) for own, made in both if (made.ladder.size, made.ladder.context) == own.place[:2]]
    own, made = (climbed or both)[-1]
    cells = (own.row["cell"],)
    predicted, cause = own.total / (own.total - own.attention), ""
    numbers = {"predicted": Number(predicted, cells, formatting.times), "gain": made.number}
    before, is_there = made.speed.times[0], own.place[:2] == (made.ladder.size, made.ladder.context)
    if is_there and made.speed.ratio < predicted and own.busy <= (1 - IDLES) * before:
        cause = "Without it kernels fill {busy} of its {before} ms: launches limit it."
        numbers["before"] = Number(before, made.cells[:1])
        numbers["busy"] = Number(own.busy, cells)
    place = f"{own.row['size']} at {own.row['context']:,.0f}"
    where = "" if is_there else f" ({made.place})"
    answer = (
        f"By its forward pass, fused attention should bring {{predicted}} in a step of {place}; the ladder measured "
        f"{{gain}}{where}."
    )
    return Finding("what does a fused kernel bring", answer, numbers, machine.hardware, cause)


def _fused(machine: Machine, own: StepParts) -> Change | None:
    return change(machine.ladders, own, "attention", lambda value: value != "naive")


def softmax_table(machine: Machine, rows: list[dict]) -> Table | None:
    """A row a context and precision: attention's share, and softmax over products in operations and times."""
    found = [(row, own) for row in rows if (own := softmax_against_products(machine.profile, row))]
    if not found:
        return None
    words = machine.profile.words_of(rows)
    ratio, own = "softmax over the two products", found[-MOST_ROWS:]
    columns = [
        Column("context", "tokens", value=lambda each: each[0]["context"], show=formatting.count),
        Column("precision", value=lambda each: each[0]["precision"], number=False),
        Column("attention", "% of forward", value=lambda each: _share(machine, each[0]), show=formatting.percentage),
        Column("softmax", "ms a step", value=lambda each: _line(machine, each[0], "softmax").get("gpu_ms_per_step")),
        Column("FLOP", "×", ratio, value=lambda each: each[1].flops, show=_two_digits),
        Column(words.time, "×", ratio, value=lambda each: each[1].time, show=_two_digits),
    ]
    if words is GPU:
        columns.append(Column("host time", "×", ratio, value=lambda each: each[1].host, show=_two_digits))
    caption = (
        f"Attention's share of the forward pass's {words.time}, and its softmax beside its two matrix products. "
        f"{own[0][0]['size']}, batch {own[0][0]['batch']:,.0f}, profiled steps, naive attention, on {machine.hardware}."
    )
    return table.build(f"chapter-attention-softmax-{machine.hardware}", caption, columns, own)
