"""Every figure: drawn of the tables that it needs and not without one of them; its bounds, its
bytes, its colours."""

import re
import subprocess
import sys

import made
import pytest
from common import SCRIPTS
from stepscope.figures import NAMES, OF_ALL, OF_MACHINE, colours, draw_all, theme
from stepscope.results.tables import Tables

DRAW = OF_MACHINE | OF_ALL
NEEDS = {  # tables without which a figure is not drawn; without others it is
    "waterfall": {"series", "cells", "categories"},
    "categories": {"categories", "cells"},
    "step_parts": {"series"},
    "time_by_context": {"series"},
    "launches": {"series"},
    "precision_speedup": {"series"},
    "timeline": {"timeline", "cells"},
    "one_attention": {"timeline", "cells"},
    "roofline": {"modules", "cells", "series"},
    "memory_over_step": {"memory_timeline", "cells"},
    "memory_of_inference": {"memory_timeline", "cells"},
    "memory_of_forward": {"memory_timeline", "cells"},
    "memory_from_cold": {"memory_timeline", "cells"},
    "memory_growth": {"series"},
    "attention_time": {"series"},
    "attention_rates": {"series"},
    "forced": {"forced"},
    "warmup": {"warmup"},
    "first_step": {"first_step", "cells"},
    "ladder": {"series", "variants", "cells"},
    "ranks": {"ranks"},
    "curves": {"learning", "curves", "cells"},
    "machines": {"series", "cells"},
    "published": {"published"},
}


def test_each_is_known_here():
    assert set(NEEDS) == set(NAMES)


def tables_of(folder, name):
    return Tables(folder, None if name in OF_ALL else made.GPU)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_drawn_of_the_tables_that_it_needs_within_its_bounds_and_colours(
    name, folder, tmp_path
):
    """A phone is 400 pixels wide, and the page gives the colours."""
    drawn = []
    others = tuple(set(made.everything()) - NEEDS[name])
    needed = tables_of(made.folder(tmp_path / "needed", others), name)
    assert theme.render(DRAW[name], needed) is not None
    for missing in NEEDS[name]:
        assert (
            DRAW[name](tables_of(made.folder(tmp_path / missing, (*others, missing)), name)) is None
        ), missing

    text = theme.render(
        lambda tables: drawn.append(DRAW[name](tables)) or drawn[0], tables_of(folder, name)
    ).decode()
    assert set(re.findall(r"#[0-9a-f]{6}\b", text)) <= set(colours.VARIABLES) | {colours.ON_BAR}
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())
    assert width < 400 and height < 800
    for words in [*drawn[0].texts, *(each for panel in drawn[0].axes for each in panel.texts)]:
        box = words.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= drawn[0].bbox.width + 1, words.get_text()
        assert box.y0 >= 0 and box.y1 <= drawn[0].bbox.height + 1, words.get_text()


def test_machines_have_figures_of_their_own_and_those_without_rows_are_removed(tmp_path):
    folder, out = made.folder(tmp_path / "tables"), tmp_path / "figures"
    drawn = draw_all(folder, out, ["time_by_context", "timeline", "machines"])
    assert set(drawn) == {"time_by_context", "time_by_context-other", "timeline", "machines"}
    assert {each.name for each in out.iterdir()} == {f"{name}.svg" for name in drawn}
    first = (out / "timeline.svg").read_bytes()
    assert (
        draw_all(folder, out, ["timeline"]) == ["timeline"]
        and (out / "timeline.svg").read_bytes() == first
    )
    (folder / "timeline.csv").unlink()
    assert draw_all(folder, out, ["timeline"]) == []
    assert not (out / "timeline.svg").exists() and (out / "machines.svg").exists()


def test_the_program_says_what_it_drew_and_refuses_other_names(folder, tmp_path):
    program = SCRIPTS / "draw_figures.py"
    command = [sys.executable, program, "--tables", folder, "--out", tmp_path / "out", "--only"]
    done = subprocess.run([*command, "timeline"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"1 figures in {tmp_path / 'out'}: timeline\n")
    wrong = subprocess.run([*command, "nothing"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "invalid choice: 'nothing'" in wrong.stderr


def luminance(colour):
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """WCAG 2.2, contrast ratio."""
    low, high = sorted(luminance(each) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", colours.OKABE_ITO)
def test_words_can_be_read_in_both_themes(name):
    colour = colours.OKABE_ITO[name]
    assert (
        contrast(colour.text, "#ffffff") >= 4.5
        and contrast(colour.dark_text, colours.GREYS["paper"][1]) >= 4.5
    )


def test_what_a_file_builds_in_another_type_is_called_that_wherever_it_is_drawn(tmp_path):
    """`large`, in the place of each figure of one place, has neither a bound of the precisions nor
    their colours; `small` is as it was."""
    dtype = "bfloat16"  # which is no autocast to bf16
    models = [
        each | {"dtype": dtype if each["size"] == "large" else "float32"}
        for each in made.everything()["models"]
    ]
    tables = made.tables(tmp_path, models=models)
    drawn = {name: made.draw(draw, tables) for name, draw in OF_MACHINE.items()}
    assert drawn.pop("roofline") is None and drawn.pop("precision_speedup") is not None
    words = {name: "\n".join(made.texts(figure)) for name, figure in drawn.items()}
    for name in ("waterfall", "timeline", "one_attention", "memory_over_step"):
        assert f"large, context 512, batch 4, {dtype};" in words[name], name
    assert "bound" not in words["waterfall"]
    assert made.rows_named(drawn["categories"].axes[0]) == [f"large 512 {dtype}"]
    bars = ["small fp32", "small bf16", f"large {dtype}"]
    assert made.rows_named(drawn["step_parts"].axes[0]) == bars
    assert f"large 128 {dtype}" in made.rows_named(drawn["launches"].axes[0])
    for name in ("time_by_context", "memory_growth"):
        panels = made.panels(drawn[name])
        assert list(panels) == ["fp32", "bf16", dtype]
        assert "large" in made.lines(panels[dtype])
        (line,) = [each for each in panels[dtype].lines if each.get_label() == "large"]
        assert line.get_color() == colours.of("precision", "no precision")
