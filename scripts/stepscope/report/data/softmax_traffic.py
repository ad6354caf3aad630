"""What the softmax of naive attention moves through a GPU's memory, operation by operation.

Each operation of stepscope.model.softmax is a kernel that reads or writes the scores once; of those that work on the
rows' sums and largest elements alone nothing is counted. An estimate: scores that stay in the caches between two
kernels are moved faster.
"""

from typing import NamedTuple

from stepscope.axes import PRECISIONS
from stepscope.report.data.profile_parts import shape_of
from stepscope.report.kit.formatting import known

_FP32 = 4


class Pass(NamedTuple):
    """An operation of the softmax: bytes that it reads and writes for each element of the scores."""

    name: str
    read: int
    written: int


def passes(precision: str) -> list[Pass]:
    """The operations in their order. Inside the softmax all is fp32; in 16 bits the scores come and go as such."""
    low = PRECISIONS[precision].bytes
    found = [
        Pass("largest of a row", low, 0),
        Pass("difference to it", low, _FP32),
        Pass("exponential", _FP32, _FP32),
        Pass("sum of a row", _FP32, 0),
        Pass("product with the reciprocal sum", _FP32, _FP32),
    ]
    return [*found, Pass("rounding", _FP32, low)] if low < _FP32 else found


def softmax_bytes(row: dict) -> float | None:
    """Bytes that the softmax of all layers moves in a forward pass of a profiled cell; None if that is not known."""
    matrix = scores_bytes(row)
    if matrix is None or row["precision"] not in PRECISIONS:
        return None
    each = sum(each.read + each.written for each in passes(row["precision"]))
    return shape_of(row).num_layers * matrix / _FP32 * each


def scores_bytes(row: dict) -> float | None:
    """Bytes of a layer's scores in fp32: batch × heads × context × context of them. None if that is not known."""
    shape = shape_of(row)
    if shape is None or not (known(row["batch"]) and known(row["context"])):
        return None
    return row["batch"] * shape.num_heads * row["context"] ** 2 * _FP32
