"""The precision study's figures: what to see in them, the fixed parameters, and their alt text."""

from stepscope.report.data.mixed import Mixed
from stepscope.report.data.own_models import is_own
from stepscope.report.data.precision import Precision
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.order import ordered


def pictures(precision: Precision, mixed: Mixed) -> dict[str, Picture]:
    """The figures by name; those without anything to draw are left out."""
    found = {}
    place = f" {formatting.listing(precision.hardware, 3)}." if precision.hardware else ""
    if len(precision.frame("accumulation")):
        caption = (
            "Error of a sum of 0.01 that grows. Solid: the sum in the addend's own format; dashed: a sum in fp32, to "
            "which the addend as rounded to 16 bits is added, so that the error grows in proportion. In a dip the "
            f"error changes its sign.{place}"
        )
        found["precision_accumulation"] = Picture(
            "precision_accumulation", caption, "Lines of the sum's error over the number of additions, on log axes."
        )
    if len(precision.frame("forced")):
        caption = (
            "Normalisations whose every operator is rounded to one format, over what makes them fail; the error is "
            "against float64, relative to the largest exact result. At 1 and above nothing of the result is left. "
            f"Dotted: the same input as autocast treats it. No error at all is drawn at the lowest line.{place}"
        )
        found["precision_forced"] = Picture(
            "precision_forced", caption, "Lines of the largest error for RMSNorm, LayerNorm and softmax by format."
        )
    if any(pair.speeds for pair in mixed.pairs):
        batches = [formatting.count(value) for value in ordered([pair.row.get("batch") for pair in mixed.pairs])]
        speeds = [speed for pair in mixed.pairs for speed in pair.speeds.values()]
        are_judged = any(speed.has_interval for speed in speeds)
        hollow = "Hollow dots: processes that disagree, or a single one, and so no interval. "
        hollow *= are_judged and not all(speed.has_interval for speed in speeds)
        intervals = ", with its 95 % interval" if are_judged else " of single processes"
        diamonds = "A diamond is a model of one's own. " * any(is_own(pair.row) for pair in mixed.pairs)
        fixed = f"{formatting.listing(mixed.hardware, 3)}; batch {', '.join(batches)}."
        caption = (
            "How many times as fast as fp32 a phase runs under autocast: below the line at 1 it takes longer. The "
            f"medians' ratio{intervals}. A hollow cross: fp32 or both ran out of memory. "
            f"{hollow}{diamonds}{fixed}"
        )
        found["precision_speedup"] = Picture(
            "precision_speedup", caption, "Speed-up over fp32 by model size, a row for each phase, a column a context."
        )
    return found
