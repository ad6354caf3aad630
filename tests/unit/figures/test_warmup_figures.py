"""Figures of the warm-up study: what is drawn, against numbers worked out from round records by hand."""

import re
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/unit/report"))

import synthetic_warmup as made  # noqa: E402
from stepscope.figures import colours, figures_of, theme  # noqa: E402
from stepscope.figures.warmup.first_step import draw_first_step  # noqa: E402
from stepscope.figures.warmup.means import draw_means  # noqa: E402
from stepscope.figures.warmup.steps import draw_steps  # noqa: E402
from stepscope.tables.reader import Tables  # noqa: E402
from stepscope.tables.warmup import PARTS  # noqa: E402

NAMES = ["warmup_means", "warmup_steps", "warmup_first_step"]


@pytest.fixture
def plan(tmp_path):
    return made.Plan(tmp_path / "results")


def tables(plan, tmp_path) -> Tables:
    return Tables(plan.write(tmp_path / "tables"), ["warmup"])


def draw(function, found):
    """The figure, laid out as when it is written."""
    with matplotlib.rc_context(theme.STYLE):
        figure = function(found)
        figure.draw_without_rendering()
    return figure


def texts(artist) -> list[str]:
    return [each.get_text() for each in artist.findobj(matplotlib.text.Text) if each.get_text() and each.get_visible()]


def line(panel, colour):
    """The one line of points in a colour."""
    (found,) = [
        each for each in panel.lines if each.get_color() == colour and each.get_marker() not in ("None", None, "")
    ]
    return found


def test_names_and_colours():
    assert list(figures_of("warmup")) == NAMES
    assert tuple(colours.FIRST_STEP) == tuple(PARTS)
    assert len(colours.VARIABLES) == len(set(colours.VARIABLES.values()))
    style = (ROOT / "report/style.css").read_text()
    for colour in colours.FIRST_STEP.values():
        values = re.findall(rf"--{colours.VARIABLES[colour]}: (#[0-9a-f]{{6}});", style)
        assert len(values) == 4 and values[0] == values[3] == colour  # light and print, the dark theme's two ways
        assert values[1] == values[2] != colour
    for name in NAMES:
        assert (ROOT / f"report/captions/{name}.rst").read_text().strip()


def test_nothing_measured_is_said(plan, tmp_path):
    for name, function in figures_of("warmup").items():
        assert b"nothing to draw" in theme.render(function, Tables(tmp_path / "none", ["warmup"]))[0], name
    plan.cell("s", 0, measure=False)
    plan.cell("s", 1, status="oom")
    for function in figures_of("warmup").values():
        assert b"nothing to draw" in theme.render(function, tables(plan, tmp_path))[0]


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


@pytest.mark.parametrize("name", NAMES)
def test_machines_stand_below_each_other_in_known_colours(plan, tmp_path, name):
    made.believable(plan)
    svg, png = theme.render(figures_of("warmup")[name], tables(plan, tmp_path))
    text = svg.decode()
    assert len(svg) < 300_000 and png.startswith(b"\x89PNG")
    assert "amd-epyc-cpu, context 64, fp32" in text and "nvidia-h100-80gb-hbm3, context 128, fp32" in text
    invisible = set(matplotlib.colors.TABLEAU_COLORS.values())  # lines of one point in theme's crosses
    assert set(re.findall(r"#[0-9a-f]{6}", text)) - invisible <= set(colours.VARIABLES) | {colours.ON_BAR}


def test_warm_runs_that_differ_are_told(plan, tmp_path):
    made.points(plan, ("m",), (0, 5, 10))
    plan.cell("s", 5, steady=(6.0, 12.0, 3.0))
    plan.cell("s", 10)
    words = texts(draw(draw_means, tables(plan, tmp_path)))
    assert words.count("warm runs differ\nby 50 %") == 1 and sum("warm runs" in each for each in words) == 1
