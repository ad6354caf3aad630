"""Figures of the memory study: what is drawn, against numbers worked out from small tables by hand."""

import itertools
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from drawing import Made, draw, line, texts
from drawing import cell_row as row_of
from matplotlib.patches import Polygon, Rectangle
from stepscope import colours
from stepscope.figures import figures_of, theme
from stepscope.figures.memory.across import (
    alive_at_peak,
    differences,
    draw_peak_categories,
    draw_peaks,
    draw_predicted,
    signed,
)
from stepscope.figures.memory.cell import Timeline, draw_cell, size_text, steps
from stepscope.figures.memory.data import measured
from stepscope.snapshot.table_names import CATEGORIES
from stepscope.tables.reader import Tables

ROOT = Path(__file__).resolve().parents[3]
GIB = 2**30
# GiB at the events 0, 10, … of a step: 3 are there all the time, the peak of 3 + 4 + 1 is at event 20.
EVENTS = (0, 10, 20, 30, 40, 50, 60)
PHASES = ("forward", "forward", "forward", "backward", "backward", "optimizer", "optimizer")
HELD = {"parameters": (2,) * 7, "gradients": (0, 0, 0, 1, 2, 2, 2), "optimizer state": (1,) * 7,
        "activations": (0, 2, 4, 2, 0, 0, 0), "workspace": (0, 0, 1, 0, 0, 0, 0)}  # fmt: skip


def cell_row(*point, hardware="gpu", **more) -> dict:
    """A cell whose allocator counted 8 GiB of 20; on a CPU it counts nothing."""
    unknown = np.nan if hardware == "cpu" else 1.0
    row = {"peak_allocated_bytes": 8.0 * GIB * unknown, "peak_reserved_bytes": 0.0 if hardware == "cpu" else 9.0 * GIB,
           "predicted_peak_bytes": 7.6 * GIB, "capacity_total_bytes": 20.0 * GIB * unknown,
           "predicted_first_context_too_long": 400.0 * unknown, "baseline_model_bytes": 2.0 * GIB * unknown,
           "baseline_first_step_bytes": 3.0 * GIB * unknown}  # fmt: skip
    return row_of("memory", *point, hardware=hardware, **row | more)


def timeline_rows(cell: str, device: str = "0", scale: float = 1.0, reserved: float = 9.0) -> list[dict]:
    rows = []
    for at, event in enumerate(EVENTS):
        held = {name.replace(" ", "_"): HELD.get(name, (0,) * 7)[at] * scale * GIB for name in CATEGORIES}
        rows.append({"cell": cell, "device": device, "event": float(event), "time_ms": np.nan, "step": 2.0,
                     "phase": PHASES[at] or None, "active_bytes": sum(held.values()),
                     "reserved_bytes": reserved * GIB} | held)  # fmt: skip
    return rows


def made(cells: list[dict], recorded=("ok", "oom")) -> Made:
    """Tables in which each cell that is ok or ran out of memory has the timeline above and HELD at its peak."""
    own = [cell for cell in cells if cell["status"] in recorded]
    tables = Made(memory=pd.DataFrame(cells))
    host = {cell["cell"]: cell["hardware"] == "cpu" for cell in own}
    rows = [row for name, cpu in host.items() for row in timeline_rows(name, reserved=0.0 if cpu else 9.0)]
    tables["memory_timeline"] = pd.DataFrame(rows)
    tables["memory_peak"] = pd.DataFrame(
        [
            {"cell": name, "category": category, "bytes": HELD.get(category, (0,) * 7)[2] * GIB}
            for name in host
            for category in CATEGORIES
        ]
    )
    tables["memory_summary"] = pd.DataFrame(
        [{"cell": cell["cell"], "peak_bytes": 8.0 * GIB, "peak_module": "loss",
          "oom_requested_bytes": 3.0 * 2**20 if cell["status"] == "oom" else np.nan,
          "oom_free_bytes": 2.0 * 2**20 if cell["status"] == "oom" else np.nan} for cell in own]
    )  # fmt: skip
    return tables


def bars(panel) -> list[tuple]:
    """(left, width, name of the category) of each filled bar, in data units."""
    names = {colour: name for name, colour in colours.MEMORY.items()}
    found = [each for each in panel.patches if isinstance(each, Rectangle) and each.get_fill()]
    return [
        (each.get_x(), each.get_width(), names[matplotlib.colors.to_hex(each.get_facecolor())])
        for each in found
        if each.get_width() > 0
    ]


def areas(panel) -> dict[str, np.ndarray]:
    """Category → corners of its area (corners, 2), without those on the lower edge."""
    return {each.get_label(): each.get_xy()[:-3] for each in panel.patches if isinstance(each, Polygon)}


# Names --------------------------------------------------------------------------------------------------


def test_the_study_has_a_figure_for_each_cell_also_repeated_ones():
    again = cell_row(repeat=2.0) | {"cell": "gpu/memory/small/ctx256/fp32/repeat=2"}
    tables = made([cell_row(), again, cell_row(mode="inference"), cell_row("medium", status="missing")])
    names = ["small_ctx256_fp32", "small_ctx256_fp32_repeat-2", "small_ctx256_fp32_mode-inference",
             "medium_ctx256_fp32"]  # fmt: skip
    across = list(figures_of("memory"))
    assert list(figures_of("memory", tables)) == across + [f"memory_cell_gpu_{name}" for name in names]
    assert list(figures_of("memory", Made())) == across
    for function in figures_of("memory", tables).values():
        draw(function, tables)
    captions = {path.stem for path in (ROOT / "report/snakemake_captions").glob("memory_*.rst")}
    assert captions == {*across, "memory_cell"}


# The peak over the context ------------------------------------------------------------------------------------------


def test_allocated_and_reserved_over_the_context():
    cells = [cell_row(), cell_row(context=512.0, peak_allocated_bytes=12 * GIB, peak_reserved_bytes=13 * GIB)]
    panel = draw(draw_peaks, made(cells)).axes[0]
    assert line(panel, "fp32") == ([256, 512], [8, 12])
    assert [9, 13] in [list(each.get_ydata()) for each in panel.lines]
    assert line(panel, "capacity")[1] == [20, 20]
    assert line(panel, "too long") == ([400], [20])
    assert {"the card: 20.0", "400", "fp32"} <= set(texts(panel))
    assert panel.get_xscale() == "log" and panel.get_ylim()[0] == 0


def test_a_cold_start_is_a_figure_of_its_own_and_in_none_across_cells():
    cold = cell_row(context=1024.0, start="cold") | {"cell": "gpu/memory/small/ctx1024/fp32/start=cold"}
    tables = made([cell_row(start="warm"), cell_row(context=512.0, start="warm"), cold])
    panels = draw(draw_peaks, tables).axes
    assert line(panels[0], "fp32")[0] == [256, 512]
    assert not any("cold" in panel.get_title("left") for panel in panels)
    assert "memory_cell_gpu_small_ctx1024_fp32_start-cold" in figures_of("memory", tables)


def test_out_of_memory_stands_at_the_capacity_and_the_prediction_where_it_is_known():
    lost = {"status": "oom", "context": 512.0, "peak_allocated_bytes": 19 * GIB}
    cells = [cell_row(), cell_row(predicted_peak_bytes=24 * GIB, **lost),
             cell_row(precision="bf16", predicted_peak_bytes=np.nan, **lost)]  # fmt: skip
    figure = draw(draw_peaks, made(cells))
    panel = figure.axes[0]
    assert line(panel, "fp32") == ([256], [8])  # what was reached when memory ran out is no peak
    assert line(panel, "OOM") == ([512], [20])
    (context,), (height,) = line(panel, "OOM", 1)
    assert context == 512 and 17 < height < 20  # a second one below the first
    dotted = [each for each in panel.lines if each.get_marker() == "D"]
    assert [list(each.get_xdata()) for each in dotted] == [[256, 400, 512]]
    assert [list(each.get_ydata()) for each in dotted] == [[8, 20, 24]]
    assert dotted[0].get_markevery() == [2]  # only the prediction has a mark
    assert panel.get_ylim()[1] > 24
    assert texts(panel).count("OOM") == 1
    assert {"out of memory", "predicted peak, does not fit"} <= set(texts(figure))


def test_a_prediction_far_beyond_the_card_does_not_flatten_the_others():
    cells = [cell_row(), cell_row(status="oom", context=512.0, predicted_peak_bytes=500 * GIB)]
    panel = draw(draw_peaks, made(cells)).axes[0]
    assert 20 < panel.get_ylim()[1] < 30


def test_a_card_far_above_is_told_in_words():
    cells = [cell_row(capacity_total_bytes=80 * GIB, predicted_first_context_too_long=12345.0)]
    panel = draw(draw_peaks, made(cells)).axes[0]
    assert not any(each.get_label() in ("capacity", "too long") for each in panel.lines)
    assert {"the card: 80.0, far above", "fp32: predicted not to fit from 12,345"} <= set(texts(panel))
    assert panel.get_ylim()[1] < 15
    assert panel.get_xlim()[1] < 1000


def test_a_context_beyond_the_edge_is_named_there():
    panel = draw(draw_peaks, made([cell_row(predicted_first_context_too_long=99999.0)])).axes[0]
    assert "99,999 ▸" in texts(panel) and panel.get_xlim()[1] < 1000


def test_panels_by_size_and_mode_the_step_first():
    cells = [cell_row("medium"), cell_row(mode="inference"), cell_row()]
    figure = draw(draw_peaks, made(cells))
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "small · 100M, step", "medium · 400M, step", "small · 100M, inference", ""
    ]  # fmt: skip
    assert [panel.axison for panel in figure.axes] == [True, True, True, False]
    assert [panel.get_ylabel() for panel in figure.axes] == ["peak (GiB)", "", "peak (GiB)", ""]


def test_many_sizes_take_two_rows():
    sizes = {"a": 1e8, "b": 2e8, "c": 3e8, "d": 4e8}
    cells = [cell_row() | {"size": size, "parameters": count, "cell": f"gpu/memory/{size}/ctx256/fp32"}
             for size, count in sizes.items()]  # fmt: skip
    figure = draw(draw_peaks, made(cells))
    titles = [(panel.get_title(loc="left")[0], *panel.get_subplotspec().rowspan) for panel in figure.axes]
    assert titles == [("a", 0), ("b", 0), ("c", 1), ("d", 1)]


def test_precisions_that_fail_at_the_same_context_are_told_together():
    panel = draw(draw_peaks, made([cell_row(), cell_row(precision="tf32")])).axes[0]
    assert texts(panel).count("400") == 1


def test_several_machines_have_panels_of_their_own():
    cells = [cell_row(), cell_row(hardware="cpu")]
    for function in (draw_peaks, draw_peak_categories, draw_predicted):
        figure = draw(function, made(cells))
        assert [panel.get_title(loc="left").splitlines() for panel in figure.axes] == [
            ["gpu", "small · 100M, step"], ["cpu", "small · 100M, step"]
        ]  # fmt: skip


def test_on_a_cpu_the_peak_is_the_recordings():
    tables = made([cell_row(hardware="cpu")])
    assert measured(tables)["peak_bytes"].tolist() == [8.0 * GIB]
    figure = draw(draw_peaks, tables)
    panel = figure.axes[0]
    assert line(panel, "fp32") == ([256], [8])
    assert panel.get_ylabel() == "peak (GiB)"
    assert "reserved" not in texts(figure) and not any("card" in text for text in texts(figure))


def test_little_memory_is_in_mebibytes():
    small = {"predicted_peak_bytes": 7.6 * 2**20, "capacity_total_bytes": np.nan}
    tables = made([cell_row(peak_allocated_bytes=8.0 * 2**20, peak_reserved_bytes=np.nan, **small)])
    tables["memory_peak"]["bytes"] /= 1024
    panel = draw(draw_peaks, tables).axes[0]
    assert line(panel, "fp32")[1] == [8] and panel.get_ylabel() == "peak (MiB)"
    figure = draw(draw_peak_categories, tables)
    assert bars(figure.axes[0])[0] == (0, 2, "parameters")
    assert "alive at the peak (MiB), by context and precision" in texts(figure)


def test_only_out_of_memory_on_a_machine_without_a_capacity():
    panel = draw(draw_peaks, made([cell_row(hardware="cpu", status="oom")], recorded=())).axes[0]
    assert "OOM" in texts(panel)


# What was alive at the peak -----------------------------------------------------------------------------------------


def test_categories_are_stacked_in_their_order():
    panel = draw(draw_peak_categories, made([cell_row()])).axes[0]
    assert bars(panel) == [
        (0, 2, "parameters"), (2, 1, "optimizer state"), (3, 4, "activations"), (7, 1, "workspace")
    ]  # fmt: skip
    assert {"2.00", "4.00", "8.00"} <= set(texts(panel))


def test_precisions_of_a_context_are_beside_each_other():
    cells = [
        cell_row(precision="bf16"),
        cell_row(),
        cell_row(context=1024.0),
        cell_row(precision="bf16", context=1024.0),
    ]
    panel = draw(draw_peak_categories, made(cells)).axes[0]
    assert [each.get_text() for each in panel.get_yticklabels()] == ["256   fp32", "bf16", "1,024   fp32", "bf16"]
    first, second, third, fourth = panel.get_yticks()
    assert second - first == fourth - third < third - second


def test_what_ran_out_of_memory_goes_on_to_its_prediction():
    cells = [cell_row(), cell_row("medium", status="oom", predicted_peak_bytes=10 * GIB)]
    figure = draw(draw_peak_categories, made(cells))
    _, panel = figure.axes
    (ghost,) = [each for each in panel.patches if not each.get_fill()]
    assert (ghost.get_x(), ghost.get_width()) == (8, 2)
    assert "OOM, 10.0" in texts(panel) and "predicted" in texts(figure)
    assert sum(width for _, width, _ in bars(panel)) == 8


def test_a_cell_without_a_recording_says_why():
    cells = [cell_row(), cell_row(context=512.0, status="failed"), cell_row(context=1024.0, status="missing")]
    panel = draw(draw_peak_categories, made(cells)).axes[0]
    assert {"failed", "missing", "8.00"} <= set(texts(panel))
    assert len(bars(panel)) == 4


def test_an_unknown_category_is_not_lost():
    tables = made([cell_row()])
    tables["memory_peak"].loc[0, "category"] = "strange"
    assert alive_at_peak(tables)[cell_row()["cell"]] == {
        "unknown": 2 * GIB, "optimizer state": GIB, "activations": 4 * GIB, "workspace": GIB
    }  # fmt: skip
    assert bars(draw(draw_peak_categories, tables).axes[0])[-1] == (6, 2, "unknown")


# Prediction ---------------------------------------------------------------------------------------------------------


def test_the_difference_is_predicted_over_measured_less_one():
    cells = [cell_row(), cell_row(context=512.0, predicted_peak_bytes=9 * GIB)]
    panel = draw(draw_predicted, made(cells)).axes[0]
    x, y = line(panel, "fp32")
    assert x == [256, 512] and y == pytest.approx([-5, 12.5])
    low, high = panel.get_ylim()
    assert low < -12.5 and high > 12.5
    (band,) = panel.patches
    assert (band.get_y(), band.get_height()) == (-5, 10)
    assert "fp32 +12.5 %" in texts(panel)


def test_a_peak_that_did_not_fit_is_not_compared():
    cells = [cell_row(), cell_row(precision="bf16", status="oom")]
    assert differences(measured(made(cells))).isna().tolist() == [False, True]
    panel = draw(draw_predicted, made(cells)).axes[0]
    assert "OOM" in texts(panel) and not any(each.get_label() == "bf16" for each in panel.lines)


def test_a_difference_has_its_sign():
    assert [signed(value) for value in (0.42, -0.42, 0.01, -0.01)] == ["+0.4", "−0.4", "0.0", "0.0"]


# One cell -----------------------------------------------------------------------------------------------------------


def test_areas_are_stacked_over_events_in_steps():
    panel = draw(draw_cell, made([cell_row()]), cell_row()["cell"]).axes[0]
    found = areas(panel)
    assert list(found) == ["workspace", "activations", "optimizer state", "gradients", "parameters"]  # painted so
    assert found["parameters"].tolist() == [[0, 2], [60, 2]]
    assert found["gradients"].tolist() == [[0, 2], [30, 2], [30, 3], [40, 3], [40, 4], [60, 4]]
    assert found["activations"].tolist() == [
        [0, 3], [10, 3], [10, 5], [20, 5], [20, 7], [30, 7], [30, 6], [40, 6], [40, 5], [60, 5]
    ]  # fmt: skip
    assert found["workspace"][:, 1].max() == 8
    assert panel.get_xlim() == (0, 60) and panel.get_ylim()[0] == 0


def test_peak_landmarks_and_reserved_are_marked():
    figure = draw(draw_cell, made([cell_row()]), cell_row()["cell"])
    (panel,) = figure.axes
    assert line(panel, "peak") == ([20], [8])
    assert line(panel, "model made")[1] == [2, 2] and line(panel, "after the first step")[1] == [3, 3]
    assert set(line(panel, "reserved")[1]) == {9}
    assert not any(each.get_label() == "the card" for each in panel.lines)
    assert {"peak 8.00 GiB in forward (loss)", "model made 2.00", "after the first step 3.00", "reserved 9.00",
            "parameters 2.00", "activations 4.00", "gradients 0 (at most 2.00)"} <= set(texts(figure))  # fmt: skip
    assert not any(text.startswith(("cast weights", "buffers")) for text in texts(figure))


def test_phases_stand_above():
    panel = draw(draw_cell, made([cell_row()]), cell_row()["cell"]).axes[0]
    boxes = [each for each in panel.patches if isinstance(each, Rectangle)]
    assert [each.get_x() for each in boxes] == [0, 30, 50]
    assert [each.get_x() + each.get_width() for each in boxes] == pytest.approx([30, 50, 60], abs=0.1)
    assert {"forward", "backward", "optimizer"} <= set(texts(panel)) and "setup" not in texts(panel)


def test_what_comes_before_the_first_phase_is_setup():
    tables = made([cell_row(status="oom")])
    tables["memory_timeline"].loc[:1, "phase"] = None
    panel = draw(draw_cell, tables, cell_row()["cell"]).axes[0]
    found = {each.get_text(): each.get_position()[0] for each in panel.texts}
    assert found["setup"] == pytest.approx(10) and found["forward"] == pytest.approx(25)


def test_several_steps_are_told_apart():
    tables = made([cell_row()])
    rows = tables["memory_timeline"]
    tables["memory_timeline"] = pd.concat([rows, rows.assign(step=3.0, event=rows["event"] + 70)])
    panel = draw(draw_cell, tables, cell_row()["cell"]).axes[0]
    assert {"forward of step 2", "backward of step 3"} <= set(texts(panel))


def test_out_of_memory_is_told_with_what_was_wanted():
    figure = draw(draw_cell, made([cell_row(status="oom", baseline_first_step_bytes=np.nan)]), cell_row()["cell"])
    (panel,) = figure.axes
    text = "OOM: 3.00 MiB more wanted, 2.00 MiB free on the card; peak 8.00 GiB in forward (loss)"
    assert {text, "the card 20.0"} <= set(texts(figure))
    assert line(panel, "the card")[1] == [20, 20] and panel.get_ylim()[1] > 20
    assert [each.get_marker() for each in panel.lines if each.get_label() == "peak"] == ["X"]
    assert "after the first step 3.00" not in texts(figure)


def test_what_comes_and_goes_is_enlarged_where_it_is_little():
    tables = made([cell_row()])
    tables["memory_timeline"]["parameters"] += 40 * GIB
    figure = draw(draw_cell, tables, cell_row()["cell"])
    whole, part = figure.axes
    assert whole.get_ylim()[0] == 0
    low, high = part.get_ylim()  # 43 to 48 GiB, and a little room
    assert 42 < low < 43 and 48 < high < 49
    assert areas(part)["workspace"][:, 1].max() == 48
    assert "enlarged: the upper 5.00 GiB" in texts(part)


@pytest.mark.parametrize("reserved", [0, 7 * 2**-10], ids=["none", "as much as is alive at the end"])
def test_a_small_recording_is_in_mebibytes_and_has_no_landmarks_on_a_cpu(reserved):
    tables = made([cell_row(hardware="cpu")])
    rows = timeline_rows("cpu/memory/small/ctx256/fp32", scale=2**-10, reserved=reserved)
    tables["memory_timeline"] = pd.DataFrame(rows)
    figure = draw(draw_cell, tables, "cpu/memory/small/ctx256/fp32")
    (panel,) = figure.axes
    assert areas(panel)["workspace"][:, 1].max() == 8
    words = texts(figure)
    assert {"at the peak (MiB):", "active (MiB)", "peak 8.00 MiB in forward (loss)"} <= set(words)
    assert not any(text.startswith(("reserved", "model made", "the card")) for text in words)


def test_the_device_that_held_most_is_drawn():
    rows = timeline_rows("c", "0", 0.1) + timeline_rows("c", "1")
    assert Timeline(pd.DataFrame(rows)).total.max() == 8 * GIB


def test_a_long_recording_keeps_its_extremes_in_few_rows():
    """2,000 rows with the peak, a smaller spike and a dip between alike ones, and a change of phase."""
    held = np.full(2000, 5.0)
    held[777], held[555], held[1234] = 9.0, 8.0, 1.0
    rows = pd.DataFrame({"event": np.arange(2000) * 7.0, "step": 2.0, "activations": held * GIB,
                         "phase": ["forward"] * 901 + ["backward"] * 1099})  # fmt: skip
    timeline = Timeline(rows)
    chosen = timeline.telling_rows(150)
    assert len(chosen) <= 2 * 150 + 5
    assert {0, 555, 777, 900, 901, 1234, 1999} <= set(chosen)
    assert [(start, end, phase) for start, end, _, phase in timeline.phases] == [
        (0, 901 * 7, "forward"), (901 * 7, 1999 * 7, "backward")
    ]  # fmt: skip


def test_steps_leave_out_what_is_too_fine_to_see_but_not_the_peak():
    x, y = np.arange(5.0), np.array([1.0, 1.01, 3.0, 3.02, 3.0])
    keep = np.array([False, False, False, True, False])
    found = steps(x, y, 0.1, keep)
    assert found[0].tolist() == [0, 2, 2, 3, 3, 4] and found[1].tolist() == [1, 1, 3, 3, 3.02, 3.02]


def test_sizes_in_the_unit_that_suits_them():
    found = [size_text(size) for size in (13.66 * GIB, 156.25 * 2**20, 2048, 12)]
    assert found == ["13.7 GiB", "156 MiB", "2.00 KiB", "12 B"]


# Nothing to draw ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "words"),
    [("oom", "ran out of memory, and left no recording"), ("failed", "failed"), (None, "missing"),
     ("ok", "nothing was recorded")],
)  # fmt: skip
def test_a_cell_without_a_recording_is_one_sentence(status, words):
    tables = made([cell_row(status=status)], recorded=())
    figure = draw(draw_cell, tables, cell_row()["cell"])
    assert texts(figure) == [f"small, context 256, fp32: {words}. Nothing to draw."]


def test_nothing_alive_is_one_sentence():
    tables = made([cell_row()])
    for name in CATEGORIES:
        tables["memory_timeline"][name.replace(" ", "_")] = np.nan
    tables["memory_peak"]["bytes"] = 0.0
    assert "Nothing to draw." in texts(draw(draw_cell, tables, cell_row()["cell"]))[0]
    assert "nothing to draw" in texts(draw(draw_peak_categories, tables))[0]


def test_without_cells_or_numbers_every_figure_across_cells_says_so():
    unknown = {name: np.nan for name in cell_row() if name.endswith("_bytes")}
    tables = made([cell_row(status="missing", **unknown)])
    for name, function in figures_of("memory").items():
        assert "nothing to draw" in texts(draw(function, tables))[0], name


@pytest.mark.parametrize("base", [0, 400])
def test_a_full_timeline_is_a_small_file(base):
    """2,000 rows in which all categories change all the time; with a large base, enlarged too."""
    random = np.random.default_rng(0)
    tables = made([cell_row()])
    phases = np.repeat(["forward", "backward"], 1000)
    rows = pd.DataFrame({"cell": cell_row()["cell"], "device": "0", "event": np.arange(2000) * 5.0, "step": 2.0,
                         "phase": phases, "reserved_bytes": (base + 99) * GIB})  # fmt: skip
    for name in ("parameters", "gradients", "activations", "cast_weights"):
        rows[name] = random.uniform(2, 8, 2000) * GIB + (base * GIB if name == "parameters" else 0)
    tables["memory_timeline"] = rows
    svg = theme.render(lambda tables: draw_cell(tables, cell_row()["cell"]), tables)["svg"]
    assert len(svg) < 110_000  # the worst case; a real recording is half of it


def test_tables_as_they_are_written(tmp_path):
    """Through files, as the figures read them."""
    for name, table in made([cell_row(), cell_row(hardware="cpu")]).items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    tables = Tables(tmp_path, ["memory"])
    for function in figures_of("memory", tables).values():
        figure = draw(function, tables)
        assert not any("othing to draw" in text for text in texts(figure))


def test_labels_of_phases_do_not_touch():
    figure = draw(draw_cell, made([cell_row()]), cell_row()["cell"])
    words = ("forward", "backward", "optimizer")
    boxes = [each.get_window_extent() for each in figure.axes[0].texts if each.get_text() in words]
    assert len(boxes) == 3
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
