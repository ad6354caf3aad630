"""The roofline's part of the report. It has no cells of its own: it compares timing, attention and ceilings."""

from stepscope.report.data.roofline import RoofPoint, attention_groups, attention_points, groups, model_points, roofs
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.captions import fixed_parameters
from stepscope.report.kit.finding import Finding
from stepscope.report.kit.formatting import listing
from stepscope.report.kit.order import machine_labels, main_grid, precision_rank
from stepscope.report.studies.roofline import findings as roofline_findings
from stepscope.report.studies.roofline.tables import attention_tables, phases_table, roofs_table
from stepscope.tables.reader import Tables

_END = "Solid: a large matrix product and a large copy, measured here; dashed: the GPU's data sheet."


def findings(tables: Tables) -> list[Finding]:
    """What the summary says."""
    return roofline_findings.findings(tables)


def context(tables: Tables) -> dict:
    """What report/sections/roofline.md.j2 is filled with."""
    parts = groups(model_points(tables["timing"]))
    attention = {group.hardware: attention_points(group) for group in attention_groups(tables)}
    of_attention = [(hardware, precision) for hardware, own in attention.items() for _, precision, _ in groups(own)]
    known = dict.fromkeys([(hardware, precision) for hardware, precision, _ in parts] + of_attention)
    order = machine_labels(hardware for hardware, _ in known)
    places = sorted(known, key=lambda place: (order.index(place[0]), precision_rank(place[1])))
    return {
        "pictures": _pictures(
            tables, [p for *_, own in parts for p in own], [p for o in attention.values() for p in o]
        ),
        "roofs": roofs_table(tables, places),
        "phases": [phases_table(*place, own, roofs(tables, *place)) for *place, own in parts],
        "attention": [table for group in attention_groups(tables) for table in attention_tables(tables, group)],
    }


def _pictures(tables: Tables, points: list[RoofPoint], attention: list[RoofPoint]) -> dict[str, Picture]:
    """The figures that have points; others would be empty."""
    found = {}
    if any(point.tflops for point in points):
        caption = (
            "Forward, backward and, in the lower panels, the optimizer below the roofs. A line a size; "
            "the smallest and the largest size are named; hollow marks are noisy or throttled. The gap to the roof is "
            f"what a better program could gain at most. {_END} {fixed_parameters(main_grid(tables['timing']))}"
        )
        words = "Scatter charts of TFLOP/s over FLOP/byte for each precision, below a slanted and a level roof."
        found["roofline"] = Picture("roofline", caption.strip(), words)
    if any(point.tflops for point in attention):
        titles = listing(list(dict.fromkeys(group.setting.title for group in attention_groups(tables))), 3, "; ")
        machines = listing(machine_labels([point.hardware for point in attention]), 3)
        caption = (
            "Attention by itself below the roofs, each implementation over growing lengths; d is the one with the most "
            "results. The intensity is that of Q, K, V and the output moved once, the same for all. An implementation "
            f"that moves the scores too needs more bytes, and its true roof is lower. {_END} {machines}; {titles}."
        )
        words = "Line charts of TFLOP/s over FLOP/byte for each implementation of attention, forward and backward."
        found["roofline_attention"] = Picture("roofline_attention", caption, words)
    return found
