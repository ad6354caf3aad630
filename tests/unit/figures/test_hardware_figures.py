"""The figure of machines side by side: its lines, references and words."""

import hardware_maker as made
import pytest
from drawing import draw, lines_of, svg
from roofline_maker import ceilings
from stepscope import colours
from stepscope.figures.hardware import draw_speedup

RATES = [
    *ceilings("old", "Unheard", copy=1000.0, fp32=10.0, bf16=50.0),
    *ceilings("new", "Unheard", copy=2000.0, fp32=40.0, bf16=400.0),
]


def both(old, new, **place):
    return [made.timing("old", ms=old, **place), made.timing("new", ms=new, **place)]


@pytest.fixture
def tables(tmp_path):
    """Two sizes and two contexts in two precisions, on a machine twice, four or eight times as fast."""
    rows = [*both(10.0, 5.0), *both(40.0, 10.0, size="medium"), *both(20.0, 5.0, context=512)]
    rows += [*both(8.0, 1.0, precision="bf16")]
    return made.write(tmp_path, timing=rows, ceilings=RATES)


def test_a_line_a_context_and_the_ratios_of_rates(tables):
    figure = draw(draw_speedup, tables)
    assert len(figure.axes) == 4 * 2
    fp32, bf16 = map(lines_of, figure.axes[:2])
    assert fp32["128"] == ([1e8, 4e8], pytest.approx([2.0, 4.0]))
    assert fp32["512"] == ([1e8], pytest.approx([4.0]))
    assert bf16["128"] == ([1e8], pytest.approx([8.0]))
    assert (fp32["arithmetic"][1], fp32["memory"][1]) == ([4.0, 4.0], [2.0, 2.0])
    assert (bf16["arithmetic"][1], bf16["memory"][1]) == ([8.0, 8.0], [2.0, 2.0])
    assert all(
        panel.get_yscale() == "log" and panel.get_ylim()[0] < 1 < 8 < panel.get_ylim()[1] for panel in figure.axes
    )


def test_words_and_colours(tables):
    text = svg(draw_speedup, tables)
    for word in ("times as fast on new as on old", "arithmetic × 4.00 (dashed)", "memory × 2.00 (dotted)", "forward",
                 "backward", "optimizer", "step", "small", "medium", "512"):  # fmt: skip
        assert word in text, word
    assert colours.PRECISION["fp32"] in text and colours.PRECISION["bf16"] in text


def test_unknown_ratios_are_said_so(tmp_path):
    text = svg(draw_speedup, made.write(tmp_path, timing=both(10.0, 5.0)))
    assert "arithmetic: ratio unknown" in text and "memory: ratio unknown" in text


def test_out_of_memory_on_one_of_both_is_marked(tmp_path):
    rows = [*both(10.0, 5.0), made.timing("old", size="large"), made.lost("new", size="large")]
    assert "OOM" in svg(draw_speedup, made.write(tmp_path / "one", timing=rows))
    rows[-2] = made.lost("old", size="large")
    assert "OOM" not in svg(draw_speedup, made.write(tmp_path / "both", timing=rows))


def test_several_machines_have_rows_of_their_own(tmp_path):
    for others, rows in ((2, 4), (3, 3), (6, 4)):
        cells = [made.timing(f"m{at}", ms=10.0 + at) for at in range(others + 1)]
        found = made.write(tmp_path / str(others), timing=cells)
        assert len(draw(draw_speedup, found).axes) == rows
        text = svg(draw_speedup, found)
        assert "as on m0" in text and "m1" in text
        assert ("more" in text) is (others == 6)


def test_without_two_machines_or_a_common_cell_there_is_still_a_picture(tmp_path):
    assert "one machine only" in svg(draw_speedup, made.write(tmp_path / "a", timing=[made.timing("old")]))
    assert "nothing to draw" in svg(draw_speedup, made.write(tmp_path / "b"))
    apart = made.write(tmp_path / "c", timing=[made.timing("old"), made.timing("new", context=256)])
    assert "nothing to draw" in svg(draw_speedup, apart)


def test_one_batch_and_one_set_of_options_are_drawn(tmp_path):
    rows = [*both(10.0, 5.0), *both(10.0, 1.0, attention="sdpa")]
    assert lines_of(draw(draw_speedup, made.write(tmp_path, timing=rows)).axes[0])["128"][1] == pytest.approx([2.0])
