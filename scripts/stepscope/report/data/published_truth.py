"""Published figures that cannot be true: so said by who read them, or faster than the GPU can compute."""

from collections.abc import Mapping

from stepscope.axes import CAUSAL, FULL
from stepscope.model import flops
from stepscope.model.shape import ModelShape
from stepscope.report.kit.formatting import known, significant
from stepscope.tables import peaks

_VOCABULARY = 10_000  # of all models of the write-ups, where a row does not say it
# What a phase computes, in forward passes.
_FORWARD_PASSES = {"inference": 1, "forward": 1, "backward": 2, "forward_backward": 3, "step": 3}


def impossible(figure: Mapping, value: float | None) -> str:
    """Why a published figure cannot be true; empty where it can. value: in ms, or in TFLOP/s."""
    if figure["impossible"]:
        return figure["doubt"] or "so it was marked"
    rate, peak = rate_of(figure, value), peaks.tflops(figure["gpu"], figure["precision"] or "")
    if rate is None or peak is None or rate <= peak:
        return ""
    needed = "any rate" if rate == float("inf") else f"{significant(rate)} TFLOP/s"
    return f"it needs {needed}, and the data sheet of the {figure['gpu']} gives {significant(peak)}"


def rate_of(figure: Mapping, value: float | None) -> float | None:
    """TFLOP/s that a published time of a whole phase or of attention takes, or that it gives; None of other figures."""
    if value is None or figure["statistic"] not in ("mean", "median", "value") or figure["name"]:
        return None
    if figure["quantity"] == "rate":
        return value
    operations = _operations(figure) if figure["quantity"] == "time" else None
    if operations is None:
        return None
    return operations / value / 1e9 if value > 0 else float("inf")


def _operations(figure: Mapping) -> float | None:
    """Floating-point operations of what was timed; None where the row does not say what that was."""
    if figure["study"] == "attention":
        shape = [figure[name] for name in ("batch", "length", "d_head")]
        if not (all(map(known, shape)) and figure["direction"]):
            return None
        batch, length, d_head = shape
        heads = figure["heads"] if known(figure["heads"]) and figure["heads"] else 1
        mask = CAUSAL if figure["causal"] == "yes" else FULL
        return flops.attention_flops(batch, heads, length, d_head, mask, figure["direction"])
    sides = [figure[name] for name in ("d_model", "d_ff", "num_layers", "num_heads", "batch", "context")]
    passes = _FORWARD_PASSES.get(figure["phase"] or "")
    if passes is None or not all(map(known, sides)):
        return None
    *shape, batch, context = map(int, sides)
    vocabulary = int(figure["vocab_size"]) if known(figure["vocab_size"]) else _VOCABULARY
    try:
        return passes * flops.forward_flops(ModelShape(*shape, vocabulary), batch, context)
    except ValueError:  # a shape that no model can have
        return None
