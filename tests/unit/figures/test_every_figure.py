"""What holds for the figures of every study: names, captions, colours, files, words, and what they do without data."""

import re
from pathlib import Path

import hardware_maker
import matplotlib
import numpy as np
import page_one_maker
import pandas as pd
import pytest
import roofline_maker
import synthetic
import synthetic_attention
import synthetic_ladder
import synthetic_memory
import synthetic_precision
import synthetic_profile
import synthetic_warmup
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from stepscope import colours
from stepscope.axes import IMPLEMENTATIONS
from stepscope.figures import figures_of, theme
from stepscope.snapshot import table_names
from stepscope.tables.reader import Tables
from stepscope.tables.warmup import PARTS
from stepscope.trace import categories

ROOT = Path(__file__).resolve().parents[3]
STYLE = (ROOT / "report/style.css").read_text()
NAMES = {
    "timing": ["timing_by_size", "timing_by_context", "timing_phases", "timing_samples", "timing_distribution"],
    "ceilings": ["ceilings"],
    "profile": ["profile_matmul_share", "profile_launches", "profile_bound", "profile_categories"],
    "memory": ["memory_peaks", "memory_peak_categories", "memory_predicted"],
    "attention": ["attention_time", "attention_memory", "attention_head_dimension", "attention_rates"],
    "precision": ["precision_accumulation", "precision_forced", "precision_speedup"],
    "warmup": ["warmup_means", "warmup_steps", "warmup_first_step"],
    "ladder": ["ladder_steps", "ladder_rates", "ladder_checkpoint"],
    "roofline": ["roofline", "roofline_attention"],
    "hardware": ["hardware_speedup"],
    "page_one": ["page_one"],
}
# A figure's words: its units, fixed parameters, what ran out of memory, both machines.
WORDS = {
    "timing_by_size": ("step (ms)", "OOM", "nvidia-h100-80gb-hbm3"),
    "timing_by_context": ("context (tokens", "OOM"),
    "timing_phases": ("share of forward + backward + optimizer (%)", "OOM"),
    "timing_samples": ("time (ms",),
    "timing_distribution": ("(%)",),
    "ceilings": ("TFLOP/s", "GB/s"),
    "profile_matmul_share": ("matmul (%)", ">gpu", ">cpu", "OOM"),
    "profile_launches": ("kernels launched in a step", ">gpu", ">cpu", "OOM"),
    "profile_bound": ("time (% of the step without a profiler)", ">gpu", ">cpu", "(throttled)", "attention=sdpa"),
    "profile_categories": ("(ms per step)", ">gpu", ">cpu", "OOM", "attention=sdpa"),
    "profile_cell_gpu_s_ctx128_fp32": ("ms per step", "one step under nsys", "CUDA call"),
    "memory_peaks": ("peak (GiB)", ">gpu", ">cpu", "OOM", "attention=sdpa"),
    "memory_peak_categories": ("alive at the peak (GiB)", ">gpu", ">cpu", "OOM", "attention=sdpa"),
    "memory_predicted": ("difference (%)", ">gpu", ">cpu", "OOM", "attention=sdpa"),
    "memory_cell_gpu_s_ctx128_fp32": ("active (GiB)",),
    "attention_time": (">gpu", ">cpu", "OOM"),
    "attention_memory": ("memory (MiB)", "OOM"),
    "attention_head_dimension": ("time (ms)", "OOM"),
    "attention_rates": ("TFLOP/s",),
    "precision_speedup": ("times as fast as in fp32", "OOM"),
    "warmup_means": ("amd-epyc-cpu, context 64, fp32", "nvidia-h100-80gb-hbm3, context 128, fp32"),
    "warmup_steps": ("amd-epyc-cpu, context 64, fp32", "nvidia-h100-80gb-hbm3, context 128, fp32"),
    "warmup_first_step": ("amd-epyc-cpu, context 64, fp32", "nvidia-h100-80gb-hbm3, context 128, fp32"),
    "ladder_steps": (">gpu", ">cpu", "OOM"),
    "ladder_rates": ("TFLOP/s", ">gpu", ">cpu"),
    "ladder_checkpoint": ("peak (GiB)",),
    "roofline": ("FLOP/byte", "gpu, bf16", "cpu, fp32"),
    "roofline_attention": ("FLOP/byte", "d = 16, forward"),
    "page_one": ("share of the step without a profiler (%)", "gpu; context 128, batch 4", "GPU idle"),
    "hardware_speedup": ("times as fast on cpu as on gpu",),
}


# Tables of a GPU and a CPU with cells of all kinds, for each study ---------------------------------------------------


def _renamed(row: dict, size: str, option: str = "") -> dict:
    """The same cell of another size, or with an option."""
    return row | {"size": size, "cell": row["cell"].replace("/s/", f"/{size}/") + option}


def _profile(folder):
    make = synthetic_profile.cell
    lost = _renamed(make("bf16", status="oom"), "m")
    option = _renamed(make("bf16", attention="sdpa"), "m", "/attention=sdpa")
    host = make(hardware="cpu", device="cpu", profiler="torch")
    cells = [make(), make("bf16", throttle="power"), make(mode="inference"), lost, option, host]
    lanes = (
        ("ranges 0", "range", "attention"),
        ("CUDA calls, thread 0", "call", ""),
        ("GPU 0, stream 7", "matmul", ""),
    )
    rows = [{"cell": cells[0]["cell"], "view": view, "lane": lane, "start_us": 0, "end_us": 900, "label": label,
             "category": category, "span_us": span}
            for view, span in (("step", 9000), ("attention", 1000)) for lane, category, label in lanes]  # fmt: skip

    def with_timeline(frames):
        frames["profile_timeline"] = pd.DataFrame(rows)

    timings = [synthetic_profile.timing(cells[0], 20.0)]
    return synthetic_profile.write(folder, cells, timings, change=with_timeline)


def _memory(folder):
    make = synthetic_memory.cell
    lost = synthetic_memory.out_of_memory(make(context=512, predicted_peak_bytes=90 * 2**30))
    option = _renamed(make(attention="sdpa"), "m", "/attention=sdpa")
    host = synthetic_memory.cpu(make(hardware="cpu"))
    missing = _renamed(make("bf16", status="missing"), "m")
    cells = [make(), make("bf16"), make(mode="inference"), lost, option, missing, host]
    rows = [{"cell": cell["cell"], "event": at, "step": 2, "phase": phase, "reserved_bytes": 9e9, "parameters": 2e9,
             "activations": at * 1e9} for cell in (cells[0], lost)
            for at, phase in enumerate(("forward", "forward", "backward", "optimizer"))]  # fmt: skip

    def with_timeline(frames):
        frames["memory_timeline"] = pd.DataFrame(rows)

    return synthetic_memory.write(folder, cells, change=with_timeline)


def _attention(folder):
    rows = synthetic_attention.grid()
    rows[:6] = synthetic_attention.without_result(rows[:6], "oom", "CUDA out of memory")
    rows += synthetic_attention.cpu(synthetic_attention.cell("naive", 32, "fp32", (128, 512), hardware="cpu"))
    return synthetic_attention.write(folder, rows, synthetic_attention.ceilings())


def _precision(folder):
    made = synthetic_precision
    timed = [made.timing(hardware=each, precision=name) for each in ("gpu", "cpu") for name in ("fp32", "bf16")]
    timed += [made.timing(size="large", precision="fp32"), made.lost(size="large", precision="bf16")]
    timed += [made.lost(size="large", phases=["step"], hardware="cpu")]
    names = ("bf16 += bf16", "fp32 += bf16")
    sums = [{"cell": "gpu/precision/accumulation", "hardware": "gpu", "variant": name, "step": step, "sum": step / 90}
            for name in names for step in (1, 2, 3)]  # fmt: skip
    forced = [made.tried(value=1.0, error=0.25), made.tried(value=256.0, error=1.0, zero=8)]
    frames = {"precision": [made.probe()], "precision_samples": sums, "precision_forced": forced, "timing": timed}
    made.write(folder, frames | {"precision_accumulation": [made.summed(name) for name in names]})
    return folder


def _ladder(folder):
    made = synthetic_ladder
    cells = [*made.chain(), made.whole(), *made.checkpoints(), *made.chain("medium", 512), *made.chain(hardware="cpu")]
    cells[1] = made.without_step(cells[1])
    return made.write(folder, cells)


def _warmup(folder):
    return synthetic_warmup.believable(synthetic_warmup.Plan(folder / "results")).write(folder / "tables")


def _roofline(folder):
    rows = [roofline_maker.timing("bf16"), roofline_maker.timing(hardware="cpu", gpu="Unheard", cell="cpu")]
    roofline_maker.write(folder, rows, roofline_maker.ceilings(bf16=500.0), roofline_maker.attention())
    return folder


def _hardware(folder):
    rows = [hardware_maker.timing(each, ms=ms) for each, ms in (("gpu", 1.0), ("cpu", 9.0))]
    hardware_maker.write(folder, timing=rows)
    return folder


def _page_one(folder):
    page_one_maker.everything(folder)
    return folder


TABLES = {
    "timing": lambda folder: synthetic.write("two", folder),
    "ceilings": lambda folder: synthetic.write("two", folder),
    "profile": _profile,
    "memory": _memory,
    "attention": _attention,
    "precision": _precision,
    "warmup": _warmup,
    "ladder": _ladder,
    "roofline": _roofline,
    "hardware": _hardware,
    "page_one": _page_one,
}
BESIDE = ["timing", "ceilings", "attention", "profile"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """study -> name -> its files by their suffix, drawn when it is first asked for."""
    found: dict[str, dict[str, dict[str, bytes]]] = {}

    def of(study: str) -> dict[str, dict[str, bytes]]:
        if study not in found:
            folder = TABLES[study](tmp_path_factory.mktemp(study))
            tables = Tables(folder, list(dict.fromkeys([study, *BESIDE])))
            found[study] = {name: theme.render(draw, tables) for name, draw in figures_of(study, tables).items()}
        return found[study]

    return of


@pytest.mark.parametrize("study", NAMES)
def test_the_figures_have_their_names_and_captions(study):
    assert list(figures_of(study)) == NAMES[study]
    for name in NAMES[study]:
        assert (ROOT / f"report/snakemake_captions/{name}.rst").read_text().strip()


@pytest.mark.parametrize("study", NAMES)
def test_without_data_a_figure_says_so(study, tmp_path):
    for name, draw in figures_of(study, Tables(tmp_path, [study])).items():
        assert b"nothing to draw" in theme.render(draw, Tables(tmp_path, [study]))["svg"], name


@pytest.mark.parametrize("study", NAMES)
def test_files_are_small_and_text_is_text_in_known_colours(study, drawn):
    invisible = {"#000000", "#ffffff", *matplotlib.colors.TABLEAU_COLORS.values()}  # of marks that hide their lines
    for name, files in drawn(study).items():
        text = files["svg"].decode()
        assert "nothing to draw" not in text, name  # a cell's own figure may say `Nothing to draw.`
        assert len(files["svg"]) < 300_000 and files["png"].startswith(b"\x89PNG"), name
        assert files["pdf"].startswith(b"%PDF-") and b"/CreationDate" not in files["pdf"], name
        assert b"/Type3" not in files["pdf"], name  # fonts that publishers refuse
        assert "<text" in text and "dc:date" not in text, name
        assert set(re.findall(r"#[0-9a-f]{6}\b", text)) - invisible <= {*colours.VARIABLES, colours.ON_BAR}, name


@pytest.mark.parametrize("name", WORDS)
def test_units_machines_and_what_was_lost_are_named(name, drawn):
    (study,) = (each for each in NAMES if name.startswith(each))
    text = drawn(study)[name]["svg"].decode()
    assert [word for word in WORDS[name] if word not in text] == []


# Colours --------------------------------------------------------------------------------------------------------------

FAMILIES = {
    "category": (colours.CATEGORY, categories.CATEGORIES),
    "memory": (colours.MEMORY, table_names.CATEGORIES),
    "attention": (colours.ATTENTION, IMPLEMENTATIONS),
    "attention text": (colours.ATTENTION_TEXT, IMPLEMENTATIONS),
    "attention marker": (colours.ATTENTION_MARKERS, IMPLEMENTATIONS),
    "first step": (colours.FIRST_STEP, PARTS),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_drawn_has_a_look_of_its_own(family):
    own, names = FAMILIES[family]
    assert tuple(own) == tuple(names) and len(set(own.values())) == len(own)


def test_each_colour_is_a_variable_of_the_page_in_each_theme():
    assert len(colours.VARIABLES) == len(set(colours.VARIABLES.values()))
    always_new = (*colours.ATTENTION.values(), *colours.ATTENTION_TEXT.values(), *colours.FIRST_STEP.values())
    for colour, variable in colours.VARIABLES.items():
        values = re.findall(rf"--{variable}: (#[0-9a-f]{{6}});", STYLE)
        if not values and colour in (*colours.PRECISION.values(), *colours.PRECISION_TEXT.values()):
            continue  # a precision may look the same in both themes: the page leaves its colour as it is
        assert values and (values[0] == colour or colour == colours.PAPER), variable
        if colour in (*colours.CATEGORY.values(), *colours.MEMORY.values(), *always_new):
            assert len(values) in (2, 4), variable  # light and print, and the dark theme's two ways if it differs
        if colour in always_new:
            assert values[3] == colour and values[1] == values[2] != colour, variable


def contrast(colour: str, paper: str) -> float:
    """Contrast ratio of WCAG 2."""
    shares = [np.array([int(name[at : at + 2], 16) / 255 for at in (1, 3, 5)]) for name in (colour, paper)]
    light = [np.where(each <= 0.03928, each / 12.92, ((each + 0.055) / 1.055) ** 2.4) for each in shares]
    high, low = sorted((float(each @ [0.2126, 0.7152, 0.0722]) for each in light), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_labels_and_lines_are_readable_in_both_themes():
    for least, own in ((2.2, colours.ATTENTION), (4.5, colours.ATTENTION_TEXT)):
        for name, colour in own.items():
            dark = re.findall(rf"--{colours.VARIABLES[colour]}: (#[0-9a-f]{{6}});", STYLE)[1]
            assert contrast(colour, "#ffffff") >= least and contrast(dark, "#15171a") >= max(least, 4.5), name


NAMES_OF_SIX = ("parameters", "optimizer state", "activations", "cast weights", "buffers", "workspace")


@pytest.mark.parametrize(("width", "rows"), [(9.6, {1}), (5.6, {2}), (3.0, {2, 3, 4})])
def test_a_legend_takes_as_many_rows_as_its_figure_needs(width, rows):
    with matplotlib.rc_context(theme.STYLE):
        figure = Figure(figsize=(width, 2), layout="constrained")
        figure.subplots()
        theme.legend(figure, [Patch(label=name) for name in NAMES_OF_SIX], 6)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        lines = {round(text.get_window_extent().y0) for text in legend.get_texts()}
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and len(lines) in rows
