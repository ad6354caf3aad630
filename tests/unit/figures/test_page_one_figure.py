"""The figure of page one: its bars are the parts of the step."""

import page_one_maker as made
import pytest
from drawing import draw, texts
from matplotlib.patches import Rectangle
from stepscope import colours
from stepscope.figures import page_one
from stepscope.figures.page_one import COLOURS, draw_page_one, step_text
from stepscope.report.data.profile import Profile
from stepscope.report.data.step_parts import PARTS, every_step


def test_a_bar_is_the_parts_of_the_step(tmp_path):
    figure = draw(draw_page_one, made.everything(tmp_path))
    plain, mixed = figure.axes
    assert [panel.get_title(loc="left") for panel in (plain, mixed)] == ["fp32", "bf16"]
    assert plain.get_position().y0 > mixed.get_position().y1 and figure.get_figwidth() <= 5.2  # a phone's width
    widths = [bar.get_width() for bar in mixed.patches if isinstance(bar, Rectangle)]
    assert widths == pytest.approx([40.0, 4.75, 5.25, 10.0, 40.0])  # % of 20 ms: 8, 0.95, 1.05, 2 and 8 ms
    assert {"40", "10"} <= {text.get_text() for text in mixed.texts}
    assert not {"5", "4.75", "5.25"} & {text.get_text() for text in mixed.texts}  # too narrow for a number


def test_the_steps_uncertainty_stands_beside_the_bar(tmp_path):
    cells, timing = made.both(processes=3)
    single = made.both()[1]
    with_interval = every_step(Profile(made.write(tmp_path / "three", cells, timing)))[1]
    noisy = every_step(Profile(made.write(tmp_path / "one", cells, [row | {"step_noisy": True} for row in single])))[1]
    assert step_text(with_interval) == "20.0 ms ± 0.34 %"
    assert step_text(noisy) == "~20.0 ms"


def test_each_part_has_a_colour_of_its_own_that_the_page_can_recolour():
    assert set(COLOURS) == set(PARTS) and len(set(COLOURS.values())) == len(PARTS)
    assert set(COLOURS.values()) <= set(colours.VARIABLES)


def test_of_many_sizes_and_precisions_some_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(page_one, "MOST_PANELS", 1)
    figure = draw(draw_page_one, made.everything(tmp_path))
    assert len(figure.axes) == 1 and any("1 more are in the tables" in " ".join(text.split()) for text in texts(figure))
