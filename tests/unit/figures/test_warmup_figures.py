"""Figures of the warm-up study: what is drawn, against numbers worked out from round records by hand."""

import matplotlib
import numpy as np
import pytest
import synthetic_warmup as made
from drawing import draw, texts
from stepscope import colours
from stepscope.figures import figures_of, theme
from stepscope.figures.warmup import draw_first_step, draw_means, draw_steps
from stepscope.tables.reader import Tables
from stepscope.tables.warmup import PARTS


@pytest.fixture
def plan(tmp_path):
    return made.Plan(tmp_path / "results")


def tables(plan, tmp_path) -> Tables:
    return Tables(plan.write(tmp_path / "tables"), ["warmup"])


def line(panel, colour):
    """The one line of points in a colour."""
    (found,) = [
        each for each in panel.lines if each.get_color() == colour and each.get_marker() not in ("None", None, "")
    ]
    return found


def test_nothing_measured_is_said(plan, tmp_path):
    plan.cell("s", 0, measure=False)
    plan.cell("s", 1, status="oom")
    for function in figures_of("warmup").values():
        assert b"nothing to draw" in theme.render(function, tables(plan, tmp_path))["svg"]


def test_steps_in_their_order_with_the_steady_state(plan, tmp_path):
    made.points(plan)
    figure = draw(draw_steps, tables(plan, tmp_path))
    small, large = figure.axes
    step = line(small, colours.PHASE["step"])
    assert list(step.get_xdata()) == list(range(20))
    np.testing.assert_allclose(step.get_ydata()[:5], [1285, 42, 38.5, 35, 35])
    np.testing.assert_allclose(line(large, colours.PHASE["backward"]).get_ydata()[:4], [280, 96, 88, 80])
    assert [each.get_ydata()[0] for each in small.lines if each.get_marker() == "None"] == [pytest.approx(35)]
    assert small.get_title(loc="left").startswith("s · ") and "time (ms, log scale)" in texts(figure)


def test_the_band_spans_the_processes(plan, tmp_path):
    plan.cell("s", 1)
    plan.cell("s", 5, steady=(30.0, 20.0, 5.0))
    (panel,) = draw(draw_steps, tables(plan, tmp_path)).axes
    assert line(panel, colours.PHASE["forward"]).get_ydata()[4] == pytest.approx(20)  # between 10 and 30
    band = panel.collections[0].get_paths()[0].vertices
    assert sorted(set(np.round(band[band[:, 0] == 4][:, 1], 6))) == [10, 30]
    assert set(np.round(band[band[:, 0] == 12][:, 1], 6)) == {30}  # the second process alone ran step 12


def test_means_over_the_steady_state(plan, tmp_path):
    made.points(plan, ("s",), profiled=False)
    above, below = draw(draw_means, tables(plan, tmp_path)).axes
    found = line(above, colours.PHASE["step"])
    cold = (1285 + 42 + 38.5 + 7 * 35) / 10
    np.testing.assert_allclose(found.get_ydata()[:3], [cold / 35, 1 + 0.3 / 10, 1 + 0.1 / 10])
    assert list(found.get_xdata()) == [0, 1, 2, 3, 4]
    assert [text.get_text() for text in above.get_xticklabels()] == ["0", "1", "2", "5", "10"]
    # After one warm-up step 1.2, 1.1 and eight times 1: a sample standard deviation over a mean of 1.03.
    spread = np.std([1.2, 1.1, *[1] * 8], ddof=1) / 1.03
    assert line(below, colours.PHASE["step"]).get_ydata()[1] == pytest.approx(100 * spread)


def test_out_of_memory_is_marked(plan, tmp_path):
    made.points(plan, ("s",), counts=(0, 1))
    plan.cell("s", 2, status="oom")
    plan.cell("m", 0, status="oom")
    plan.cell("m", 2, status="oom", profiled=True)
    found = tables(plan, tmp_path)
    assert texts(draw(draw_means, found)).count("OOM") == 2
    assert texts(draw(draw_steps, found)).count("OOM") == 1  # the panel of the size that never ran
    assert texts(draw(draw_first_step, found)).count("OOM") == 1


def bars(panel) -> dict:
    names = {matplotlib.colors.to_rgba(colour): name for name, colour in colours.FIRST_STEP.items()}
    return {names[bar.get_facecolor()]: (bar.get_x(), bar.get_width()) for bar in panel.patches}


def test_the_parts_of_the_first_step_are_stacked(plan, tmp_path):
    made.points(plan, ("s",))
    figure = draw(draw_first_step, tables(plan, tmp_path))
    (panel,) = figure.axes
    found = bars(panel)
    assert list(found) == list(PARTS)
    for part, (start, width) in {"module loading": (0, 780), "memory allocation": (780, 190),
                                 "other API calls": (1160, 90), "Python and the rest": (1335, 25)}.items():  # fmt: skip
        assert found[part] == (pytest.approx(start), pytest.approx(width)), part
    (diamond,) = [each for each in panel.lines if each.get_marker() == "D"]
    assert diamond.get_xdata()[0] == pytest.approx(1250)
    assert "1,360 ms, without a profiler 1,250 ms" in texts(figure)


def test_what_is_faster_in_the_first_step_is_left_of_zero(plan, tmp_path):
    plan.cell("s", 5, profiled=True, parts=(made.IN_FIRST, made.IN_STEADY | {"operators": 0.14}))
    (panel,) = draw(draw_first_step, tables(plan, tmp_path) if plan.cell("s", 5) is None else None).axes
    start, width = bars(panel)["operators"]
    assert (start, width) == (0, pytest.approx(-100)) and panel.get_xlim()[0] < -100


def test_a_steady_state_that_is_not_known_well_is_told(plan, tmp_path):
    for count in (0, 5, 10):
        plan.cell("m", count, launched=0.4)
    plan.cell("s", 5, steady=(6.0, 12.0, 3.0), launched=0.97)
    plan.cell("s", 10, launched=0.97)
    plan.cell("l", 10, launched=0.4, shape=(256, 512, 2, 2), steady=(50.0, 100.0, 25.0))
    words = texts(draw(draw_means, tables(plan, tmp_path)))
    told = [each for each in words if each.startswith(("steady state", "one steady"))]
    assert len(told) == 2 and told[0] == "steady state\nover ± 100 %" and told[1] == "one steady\nprocess"
