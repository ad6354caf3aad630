"""What naive attention needs of a GPU's memory in closed form, and where each implementation runs out of it."""

from dataclasses import dataclass

from stepscope.report.data.attention import DIRECTIONS, NAIVE, Attention, Group, lost, point_name
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.sizes import percent_change, size
from stepscope.report.studies.attention.tables import before_backward

BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
MOMENTS = ("forward", "before backward", "backward")
_FP32 = 4
_FAR = 2**24  # no length beyond is looked for


@dataclass(frozen=True)
class Tensor:
    """Tensors that naive attention keeps alive: their formula, bytes, and at which of MOMENTS."""

    name: str
    formula: str
    size: float
    moments: tuple[str, ...]


def naive_tensors(row: dict, length: float | None = None) -> list[Tensor]:
    """The tensors of model/attention/naive.py and model/softmax.py at a result's shape, or at another length.

    The forward pass needs most when the softmax multiplies by the reciprocal sums; the backward pass in the gradient of
    that product, when the exponentials and three tensors of their size in fp32 are alive. Left out: sums of rows
    (batch × heads × length), and what cuBLAS holds.
    """
    length, width = length or row["length"], BYTES.get(str(row["precision"]), _FP32)
    heads = max(1, int(row["heads"])) if formatting.known(row["heads"]) else 1
    sequences = _sequences(row, length) * heads
    line, square = sequences * length * row["d_head"], sequences * length**2
    low = width < _FP32
    many = "batch × " + "heads × " * (heads > 1)
    of_line, of_square = f"{many}length × d × {width} B", f"{many}length² × "
    always, last = MOMENTS, MOMENTS[1:] if low else MOMENTS
    found = [
        Tensor("Q, K, V", f"3 × {of_line}", 3 * line * width, always),
        Tensor("Q, scaled", of_line, line * width, always),
        Tensor("causal mask", f"length² × {width} B", length**2 * width * (row["causal"] == "yes"), always),
        Tensor("scores", f"{of_square}{width} B", square * width, MOMENTS[:1]),
        Tensor("exponentials", f"{of_square}{_FP32} B", square * _FP32, always),
        Tensor("weights in fp32", f"{of_square}{_FP32} B", square * _FP32 * low, MOMENTS[:1]),
        Tensor("weights", f"{of_square}{width} B", square * width, MOMENTS[:2]),
        Tensor("output", of_line, line * width, last),
        Tensor("gradients of output and V", f"2 × {of_line}", 2 * line * width, MOMENTS[2:]),
        Tensor("gradients in the softmax", f"3 × {of_square}{_FP32} B", 3 * square * _FP32, MOMENTS[2:]),
    ]
    return [tensor for tensor in found if tensor.size]


def _sequences(row: dict, length: float) -> float:
    """The batch at a length: as given, or as many sequences as make up the tokens."""
    tokens = row.get("tokens")
    return max(1, int(tokens // length)) if formatting.known(tokens) and tokens else row["batch"]


def needed(row: dict, moment: str, length: float | None = None) -> float:
    """Bytes that naive attention needs at a moment."""
    return sum(tensor.size for tensor in naive_tensors(row, length) if moment in tensor.moments)


def first_too_long(row: dict, moment: str) -> int | None:
    """The shortest length at which naive attention needs more than the device has; None if that is not known."""
    capacity = memory_of(row)
    if capacity is None:
        return None
    low, high = 0, _FAR  # `high` does not fit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if needed(row, moment, middle) > capacity else (middle, high)
    return high


def memory_of(row: dict) -> float | None:
    """Bytes of the GPU's memory; None on a CPU."""
    value = row.get("device_memory_bytes")
    return value if row.get("device") == "cuda" and formatting.known(value) else None


def ran_out_first(rows: list[dict]) -> dict:
    """The naive result that ran out of memory and needs least of it in closed form; empty where none did."""
    lost_ones = [row for row in rows if row["implementation"] == NAIVE and row["status"] == "oom"]
    return min(lost_ones, key=lambda row: (needed(row, row["direction"]), row["length"]), default={})


def largest(rows: list[dict]) -> dict:
    """The naive backward pass with the largest measured peak; empty where no memory is known."""
    known = [row for row in rows if row["implementation"] == NAIVE and row["direction"] == "backward"]
    known = [row for row in known if row["status"] == "ok" and formatting.known(row.get("peak_bytes"))]
    return max(known, key=lambda row: row["peak_bytes"], default={})


def accounting_table(attention: Attention, hardware: str) -> Table | None:
    """The closed form of the smallest naive configuration that ran out, or of the largest; None without memory."""
    rows = [row for group in attention.of(hardware) for row in group.rows]
    row = ran_out_first(rows) or largest(rows)
    if not row:
        return None
    measured = _measured(rows, row)
    moments = [moment for moment in MOMENTS if row["status"] == "ok" or moment in (*measured, row["direction"])]
    columns = [Column("tensors", number=False), Column("size", number=False), *(Column(m, "GiB") for m in moments)]
    kept = [tensor for tensor in naive_tensors(row) if set(tensor.moments) & set(moments)]
    lines = [[Cell(each.name), Cell(each.formula), *_at_moments(each, moments)] for each in kept]
    sums = {moment: needed(row, moment) for moment in moments}
    lines.append([Cell("sum"), Cell(""), *(_gib(sums[moment]) for moment in moments)])
    if measured:
        cells = [_beside(measured.get(moment), sums[moment]) for moment in moments]
        lines.append([Cell("measured"), Cell(""), *cells])
    capacity = memory_of(row)
    lines += [[Cell("the card's memory"), Cell(""), *(_gib(capacity) for _ in moments)]] if capacity else []
    what = "The smallest configuration of naive attention that ran out of memory"
    what = what if row["status"] == "oom" else "Naive attention never ran out of memory: its largest configuration"
    caption = f"{what}, in closed form: {shape_of(row)}, {row['precision']}, {row['direction']}, on {hardware}."
    note = "The closed form counts the tensors that the code keeps alive; it is not fitted to any measurement."
    note += " Measured: highest allocated, or reached when memory ran out; below it the closed form against it."
    name = f"attention-accounting-{hardware}"
    badges = [*lines[-2], *lines[-1]]
    return Table(name, caption, columns, lines, [note] + ["OOM: out of memory."] * any(c.badges for c in badges))


def _at_moments(tensor: Tensor, moments: list[str]) -> list[Cell]:
    return [_gib(tensor.size if moment in tensor.moments else None) for moment in moments]


def shape_of(row: dict) -> str:
    """`batch 8, length 16,384, d = 64`; heads and the mask if there are any."""
    parts = [f"batch {formatting.count(row['batch'])}"]
    parts += [f"{row['heads']:,.0f} heads"] if formatting.known(row["heads"]) and row["heads"] else []
    parts += [f"length {formatting.count(row['length'])}", f"d = {formatting.count(row['d_head'])}"]
    return ", ".join(parts + ["causal"] * (row["causal"] == "yes"))


def _measured(rows: list[dict], row: dict) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Moment -> (bytes, badges) at a result's point, where they were measured."""
    names = ("cell", "length")
    both = {each["direction"]: each for each in rows if all(each[name] == row[name] for name in names)}
    found = {way: (each.get("peak_bytes"), lost(each)) for way, each in both.items()}
    found["before backward"] = (before_backward(both.get("backward", {})), ())
    return {moment: pair for moment, pair in found.items() if formatting.known(pair[0])}


def _beside(measured: tuple[float, tuple[str, ...]] | None, closed: float) -> Cell:
    if measured is None:
        return Cell("–")
    value, badges = measured
    return Cell(_gib(value).text, "" if badges else percent_change(closed / value - 1), float(value), badges)


def _gib(value: object) -> Cell:
    return Cell(formatting.gib(value), sort=float(value)) if formatting.known(value) else Cell("–")


def first_lost(group: Group, name: str, precision: str, d_head: float, direction: str) -> float | None:
    """The shortest length at which a direction ran out of memory; None where none did."""
    rows = (group.at(name, precision, d_head, length, direction) for length in group.values("length"))
    return min((row["length"] for row in rows if row.get("status") == "oom"), default=None)


def limits_table(group: Group) -> Table | None:
    """A row for each precision and implementation that ran out: the first length that did, by d; None if none did."""
    sizes = group.values("d_head")
    rows = []
    for precision in group.values("precision"):
        for name in group.values("implementation", precision):
            line = [_limit(group, name, precision, d_head) for d_head in sizes]
            rows += [[Cell(precision), Cell(name), *line]] if any(cell.sort is not None for cell in line) else []
    if not rows:
        return None
    columns = [Column(name, number=False) for name in ("precision", "implementation")]
    columns += [Column(f"d = {d_head:,.0f}", "tokens") for d_head in sizes]
    caption = f"The first length that runs out of memory, forward / backward, {group.place}."
    note = "Longer ones are not tried. –: none did. Implementations that are not listed ran out nowhere that they ran"
    note += f" (longest: {formatting.count(max(group.values('length')))})."
    return Table(f"attention-limits-{group.hardware}", caption, columns, rows, [note], grouped=True)


def _limit(group: Group, name: str, precision: str, d_head: float) -> Cell:
    both = [first_lost(group, name, precision, d_head, direction) for direction in DIRECTIONS]
    known = [length for length in both if length is not None]
    text = " / ".join(formatting.count(length) if length is not None else "–" for length in both)
    return Cell(text, sort=min(known)) if known else Cell("–")


def told(attention: Attention, hardware: str) -> str:
    """Where naive attention ran out of memory, with the closed form; or from where on it will."""
    rows = [row for group in attention.of(hardware) for row in group.rows]
    row = ran_out_first(rows)
    if row:
        need = size(needed(row, row["direction"]))
        capacity = memory_of(row)
        beside = f"; the card has {size(capacity)}" if capacity else ""
        name = f"{shape_of(row)}, {row['precision']}, {row['direction']}"
        return f"The smallest configuration of naive attention that ran out of memory ({name}) needs {need}{beside}."
    row = largest(rows)
    length = first_too_long(row, "backward") if row else None
    if length is None:
        return ""
    fixed = point_name(row, ("implementation", "length", "direction"))
    return (
        f"Naive attention ran out of memory nowhere; in closed form its backward pass does from length "
        f"{formatting.count(length)} on ({fixed}, {group_of(attention, row).setting.title}), on a card with "
        f"{size(memory_of(row))}."
    )


def group_of(attention: Attention, row: dict) -> Group:
    """The group that a result belongs to."""
    return next(group for group in attention.groups if any(each is row for each in group.rows))
