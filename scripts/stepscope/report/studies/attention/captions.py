"""The attention study's figures: what to see in them, the fixed parameters, and their alt text."""

from stepscope.report.data.attention import Attention, before_backward, median
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Picture

_HOLLOW = " Hollow: noisy, or throttled."
_LOST = " A hollow cross marks what ran out of memory."


def pictures(attention: Attention) -> dict[str, Picture]:
    """The figures by name; none where nothing was measured."""
    if not any(median(row) for row in attention.rows):
        return {}
    end = f"{formatting.listing(attention.hardware, 3)}."
    plain = [group for group in attention.groups if not group.setting.is_special] or attention.groups
    drawn = [group for group in plain if not group.setting.tokens] or plain
    rows = [row for group in drawn for row in group.rows]
    lost = _LOST if any(row["status"] == "oom" for row in rows) else ""
    hollow = _HOLLOW if any(row.get("noisy") is True or row.get("throttle") for row in rows) else ""
    marks = {"attention_time": hollow + lost, "attention_head_dimension": hollow + lost, "attention_memory": lost}
    return {
        name: Picture(name, f"{caption}{marks.get(name, '')} {end}", other)
        for name, (caption, other) in _words(any(before_backward(row) for row in attention.rows)).items()
    }


def _words(with_memory: bool) -> dict[str, tuple[str, str]]:
    """Figure -> (caption, alternative text)."""
    memory = {
        "attention_memory": (
            "Memory before backward over the length, and dashed the peak of a pass, on logarithmic axes. The dotted "
            "guides grow with the length squared and in proportion.",
            "Line charts of the memory before backward over the length, a line for each implementation.",
        )
    }
    return {
        "attention_time": (
            "Median time of a pass over the length, on logarithmic axes, with its 95 % interval; a line an "
            "implementation. The dotted guide grows with the length squared; where a line is flatter, launching "
            "kernels may set the time.",
            "Line charts of the median time of forward and backward over the length, a line for each implementation.",
        ),
        **(memory if with_memory else {}),
        "attention_head_dimension": (
            "Median time of a pass over d, on logarithmic axes: what a larger d costs at the same length. The dotted "
            "guide grows in proportion to d.",
            "Line charts of the median time of forward and backward over d, a line for each implementation.",
        ),
        "attention_rates": (
            "Arithmetic rate by length and d, forward and backward, beside the measured rate of a large matrix "
            "product (matmul).",
            "TFLOP/s of forward and backward by length, for each implementation.",
        ),
    }
