"""Models of one's own in figures over the parameters: diamonds beside the line that joins sizes of one model."""

import pandas as pd
from drawing import Made, cell_row, draw
from stepscope.figures.timing import draw_by_context, draw_by_size

OWN = {"model": "models/mine.py:build", "parameters": 2e8}


def timing(own=(), **more):
    rows = [cell_row("timing", size, **more) for size in ("small", "medium")]
    rows += [cell_row("timing", **more) | OWN | {"size": name, "cell": f"gpu/timing/{name}"} for name in own]
    times = {"step_median_ms": 10.0, "step_ci_low_ms": 9.0, "step_ci_high_ms": 11.0, "step_status": "ok"}
    return Made(timing=pd.DataFrame([row | times for row in rows]))


def drawn(figure) -> list[tuple[str, str, list]]:
    """(marker, line style, x) of each line of the panel that has a name."""
    (panel,) = figure.axes
    named = [line for line in panel.lines if line.get_label() == "fp32"]
    return [(line.get_marker(), line.get_linestyle(), list(line.get_xdata())) for line in named]


def test_a_line_over_parameters_leaves_own_models_out():
    assert drawn(draw(draw_by_size, timing(["mine"]))) == [("o", "-", [1e8, 4e8]), ("D", "None", [2e8])]
    assert drawn(draw(draw_by_size, timing())) == [("o", "-", [1e8, 4e8])]


def test_over_the_context_a_model_has_a_line_like_a_size():
    both = timing(["mine"])
    longer = timing(["mine"], context=512.0)
    found = draw(draw_by_context, Made(timing=pd.concat([both["timing"], longer["timing"]])))
    lines = [line for panel in found.axes for line in panel.lines if line.get_label() == "fp32"]
    assert [list(line.get_xdata()) for line in lines] == [[256, 512]] * 3
    assert {line.get_marker() for line in lines} == {"o"}
