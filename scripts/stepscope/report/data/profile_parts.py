"""The parts of a profiled model: their operations, and the time of the softmax over that of attention's products.

Each part's share of the time in attention is a column of the tables: stepscope.trace.attention computes it.
"""

from dataclasses import dataclass

from stepscope.axes import NEUTRAL
from stepscope.model.flops import forward_flops, forward_flops_by_component, step_flops
from stepscope.model.shape import ModelShape
from stepscope.report.data.own_models import is_own
from stepscope.report.data.profile import Profile
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting

SOFTMAX_OPERATIONS = 5
# A part's name in the model's ranges -> its component in stepscope.model.flops.
_COMPONENTS = {
    "qkv projection": ("qkv",),
    "attention scores": ("scores",),
    "softmax": ("softmax",),
    "attention x v": ("attention x V",),
    "output projection": ("output",),
}
_LINEAR = ("qkv", "output")
_INSIDE = ("scores", "softmax", "attention x V")
_OUTSIDE = ("feed-forward", "head")
_ATTENTION_PRODUCTS = ("attention scores", "attention x v")  # parts


def shape_of(row: dict) -> ModelShape | None:
    """The model's shape; None where the cell does not tell."""
    names = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
    if not all(formatting.known(row.get(name)) for name in names):
        return None
    return ModelShape(**{name: int(row[name]) for name in names}, **way_of_attention(row))


def way_of_attention(row: dict) -> dict[str, int]:
    """The options that belong to a model's shape, as ModelShape takes them; of an older table the neutral ones."""
    names = ("key_value_heads", "window")
    return {name: int(row.get(name) or NEUTRAL[name]) for name in names}


def parts_of_forward(row: dict) -> dict[str, float]:
    """Floating-point operations of a forward pass by component, the softmax at five an element; empty if unknown."""
    shape = shape_of(row)
    if shape is None or not (formatting.known(row["batch"]) and formatting.known(row["context"])):
        return {}
    batch, context = int(row["batch"]), int(row["context"])
    softmax = SOFTMAX_OPERATIONS * shape.num_layers * batch * shape.num_heads * context * shape.keys_seen(context)
    return {**forward_flops_by_component(shape, batch, context), "softmax": softmax}


def product_flops(row: dict, phase: str) -> float | None:
    """Operations of the matrix products of a phase; of `step`, those of what the cell's mode runs. None if unknown.

    Of a model of one's own only those of both passes together are known.
    """
    shape = shape_of(row)
    if is_own(row):
        is_whole = phase == "step" and mode(row) not in ("inference", "forward")
        return row["model_flop"] if is_whole and formatting.known(row.get("model_flop")) else None
    if shape is None or not (formatting.known(row["batch"]) and formatting.known(row["context"])):
        return None
    batch, context = int(row["batch"]), int(row["context"])
    forward, both = forward_flops(shape, batch, context), step_flops(shape, batch, context)
    of_mode = forward if mode(row) in ("inference", "forward") else both
    return {"inference": forward, "forward": forward, "backward": both - forward, "step": of_mode}.get(phase)


def _small(part: object) -> str:
    """A part's name in small letters, the sign of multiplication as an x."""
    return str(part or "").replace("×", "x").lower()


def flops_of_part(line: dict, parts: dict[str, float]) -> float | None:
    """Floating-point operations of a row of the attention table in a step; None where they are not counted.

    parts: parts_of_forward() of its cell.
    """
    kind, name = line["kind"], str(line["part"] or "")
    if kind == "part":
        names = _COMPONENTS.get(_small(name), ())
    elif kind == "sum":
        names = _LINEAR if name.startswith("linear") else _INSIDE
    else:
        names = {"whole": _LINEAR + _INSIDE, "forward": _OUTSIDE}.get(kind, ())
    return sum(parts[name] for name in names) if names and all(name in parts for name in names) else None


@dataclass(frozen=True)
class SoftmaxRatios:
    """Softmax over attention's two products: GPU time, that of their matmul kernels alone (None if unknown), FLOPs.

    host: the time on the host, under the profiler; None if unknown.
    """

    time: float
    kernels: float | None
    flops: float
    host: float | None = None


def softmax_against_products(profile: Profile, row: dict) -> SoftmaxRatios | None:
    """Softmax against attention's two products; None if they are not known."""
    rows, parts = profile.rows("attention", row["cell"]), parts_of_forward(row)
    if rows.empty or not parts:
        return None
    lines = {_small(line["part"]): line for line in rows[rows["kind"] == "part"].to_dict("records")}
    wanted = ("softmax", *_ATTENTION_PRODUCTS)
    if not all(name in lines and formatting.known(lines[name]["gpu_ms_per_step"]) for name in wanted):
        return None
    softmax = lines["softmax"]["gpu_ms_per_step"]
    whole, kernels, host = (
        sum(lines[name].get(key, float("nan")) for name in _ATTENTION_PRODUCTS)
        for key in ("gpu_ms_per_step", "gpu_matmul_ms_per_step", "host_ms_per_step")
    )
    if not whole:
        return None
    return SoftmaxRatios(
        softmax / whole,
        softmax / kernels if kernels > 0 else None,
        parts["softmax"] / (parts["scores"] + parts["attention x V"]),
        lines["softmax"]["host_ms_per_step"] / host if host > 0 else None,
    )
