"""What naive attention needs of a GPU's memory in closed form, and where each implementation runs out of it."""

from dataclasses import dataclass

from stepscope.axes import PRECISIONS
from stepscope.report.data.attention import NAIVE, Group, setting_of
from stepscope.report.kit.formatting import known

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

    K and V have the heads and the length of Q here: shapes where they have their own are not asked for.

    The forward pass needs most when the softmax multiplies by the reciprocal sums; the backward pass in the gradient of
    that product, when the exponentials and three tensors of their size in fp32 are alive. Left out: sums of rows
    (batch × heads × length), and what cuBLAS holds.
    """
    length, precision = length or row["length"], PRECISIONS.get(row["precision"])
    width = precision.bytes if precision else _FP32
    heads = max(1, int(row["heads"])) if known(row["heads"]) else 1
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
    return max(1, int(tokens // length)) if known(tokens) and tokens else row["batch"]


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
    return value if row.get("device") == "cuda" and known(value) else None


def ran_out_first(rows: list[dict]) -> dict:
    """The naive result that ran out of memory and needs least of it in closed form; empty where none did."""
    lost_ones = [row for row in _naive(rows) if row["status"] == "oom"]
    return min(lost_ones, key=lambda row: (needed(row, row["direction"]), row["length"]), default={})


def largest(rows: list[dict]) -> dict:
    """The naive backward pass with the largest measured peak; empty where no memory is known."""
    backward = [row for row in _naive(rows) if row["direction"] == "backward"]
    done = [row for row in backward if row["status"] == "ok" and known(row.get("peak_bytes"))]
    return max(done, key=lambda row: row["peak_bytes"], default={})


def _naive(rows: list[dict]) -> list[dict]:
    """Naive attention's results of shapes that have a closed form."""
    return [row for row in rows if row["implementation"] == NAIVE and not setting_of(row).is_special]


def first_lost(group: Group, name: str, precision: str, d_head: float, direction: str) -> float | None:
    """The shortest length at which a direction ran out of memory; None where none did."""
    rows = (group.at(name, precision, d_head, length, direction) for length in group.values("length"))
    return min((row["length"] for row in rows if row.get("status") == "oom"), default=None)
