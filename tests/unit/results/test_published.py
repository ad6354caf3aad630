"""Published figures: what a file may hold, what is said of a wrong one, which of ours they are set
beside, and the committed files as printed."""

import math

import pandas as pd
import pytest
from common import ROOT, one_line, picked
from pytest import approx
from stepscope.results.ours import READ
from stepscope.results.published import PublishedError, _options, read, rows
from stepscope.results.tables import placed, typed

HEAD = "source,gpu,study,quantity,value,unit"
ROW = "somebody,T4,timing,time,1.5,s"


@pytest.fixture
def file(tmp_path):
    """Writes a file of published figures; gives its path."""

    def write(*lines):
        path = tmp_path / "mine.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def test_what_a_file_leaves_out_is_empty_and_its_columns_stand_in_any_order(file):
    (row,) = read(
        file("unit,value,gpu,quantity,study,source,context", "MiB,2,,peak allocated,memory,me,128")
    )
    assert (row["value"], row["unit"], row["gpu"], row["context"]) == (2.0, "MiB", "", 128)
    assert (row["statistic"], row["size"]) == ("", "") and math.isnan(row["batch"])


@pytest.mark.parametrize(
    "told, lines",
    {
        "line 2: it must contain ['unit'] properties": (
            HEAD.replace(",unit", ""),
            "a,T4,timing,time,1",
        ),
        "line 2: it must not contain {'colour'} properties": (HEAD + ",colour", ROW + ",red"),
        "line 3: quantity must be string, not null": (HEAD, ROW, "a,T4"),
        "line 2: it must not contain {'more fields than names'}": (HEAD, ROW + ",more"),
        'line 2: value must be number, not "fast"': (HEAD, ROW.replace("1.5", "fast")),
        'line 2: value must be number, not "nan"': (HEAD, ROW.replace("1.5", "nan")),
        "line 2: value must be smaller than or equal to 1e+18, not 1e+308": (
            HEAD,
            ROW.replace("1.5", "1e308"),
        ),
        "line 2: value must be bigger than or equal to 0, not -1.5": (
            HEAD,
            ROW.replace("1.5", "-1.5"),
        ),
        "line 2: unit must be one of ['s', 'ms',": (HEAD, ROW.replace(",s", ",weeks")),
        "line 2: precision must be one of ['', 'fp32', 'tf32', 'bf16', 'fp16'": (
            HEAD + ",precision",
            ROW + ",fp64",
        ),
        "line 2: value must not be there, not 1.5": (HEAD + ",status", ROW + ",oom"),
        "line 2: it must contain ['value'] properties": (HEAD, ROW.replace("1.5", "")),
    }.items(),
)
def test_a_wrong_file_is_told_by_line_and_column(lines, told, file):
    said = one_line(PublishedError, read, file(*lines))
    assert told in said and "mine.csv" in said


def test_what_is_no_csv_file_is_told_in_one_line(tmp_path):
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe")
    for path in (tmp_path / "picture.csv", tmp_path / "none.csv", tmp_path):
        assert "no CSV file of published figures" in one_line(PublishedError, read, path)


PLACE = {
    "machine": "a",
    "size": "medium",
    "context": 128.0,
    "batch": 4.0,
    "precision": "fp32",
    "options": "",
    "mode": "step",
    "cell": "a/cell",
}
TIMED = {"study": "timing", "variant": "step", "phase": "step", "direction": "", "quantity": "time"}


def ours(**row):
    """A series: 40 ms of a step of medium at 128 in fp32."""
    numbers = {"median": 0.04, "mean": 0.05, "std": 0.001, "unit": "s", "status": "ok"}
    return PLACE | TIMED | numbers | row


def tables(*series, **others):
    """The tables that published figures are set beside."""
    found = {"series": list(series) or [ours()]} | others
    places = pd.DataFrame([PLACE | {"study": "profile"}])
    made = {name: typed(pd.DataFrame(found.get(name, [])), name) for name in READ}
    return {name: placed(frame, typed(places, "cells")) for name, frame in made.items()}


def one(path, *series, **others):
    """The only row of a file's only figure."""
    (row,) = typed(rows([path], tables(*series, **others)), "published").to_dict("records")
    return {name: None if value != value else value for name, value in row.items()}


STEP = (
    "source,gpu,study,size,context,batch,precision,mode,phase,quantity,statistic,value,unit",
    "me,T4,timing,medium,128,4,fp32,",
)


@pytest.mark.parametrize(
    "figure, measured",
    {
        "step,step,time,mean,100,ms": 0.05,
        "step,step,time,median,0.1,s": 0.04,
        "step,step,time,std,100,ms": 0.001,
        "forward-backward,step,time,mean,100,ms": 0.05,  # of whatever mode that has the phase
        "step,optimizer,time,mean,100,ms": None,
        "step,step,share of GPU time,value,10,%": None,
    }.items(),
)
def test_a_figure_is_set_beside_ours_of_the_same_place(file, figure, measured):
    row = one(file(STEP[0], STEP[1] + figure))
    assert row["measured"] == measured
    assert row["cell"] == ("a/cell" if measured else "")
    assert row["ratio"] == (approx(row["value"] / measured) if measured else None)


@pytest.mark.parametrize(
    "changed",
    [{"options": "compile=block"}, {"precision": "bf16"}, {"study": "ladder"}, {"batch": 8.0}],
)
def test_another_place_is_no_partner(file, changed):
    row = one(file(STEP[0], STEP[1] + "step,step,time,mean,100,ms"), ours(**changed))
    assert row["measured"] is None


ATTENTION = (
    "source,gpu,study,batch,precision,implementation,d_head,heads,causal,length,direction,"
    "quantity,statistic,value,unit"
)


def passed(variant, precision, rate):
    """The rate of one of our implementations at d64, length 1,024, 16 heads, causal."""
    return ours(
        study="attention",
        size="d64",
        context=None,
        length=1024.0,
        mode="",
        quantity="rate",
        unit="FLOP/s",
        options="tokens=4096 heads=16 mask=causal",
        phase="forward",
        direction="forward",
        variant=variant,
        precision=precision,
        median=rate,
        mean=rate,
        cell=f"a/{precision}",
    )


@pytest.mark.parametrize(
    "precision, implementation, beside",
    [
        ("fp16", "flash-attention-3", ("triton", 3e14)),  # not ours: the fastest of that format
        ("bf16", "flash-attention-3", ("sdpa-flash", 6e14)),
        ("bf16", "flash-attention-2", ("sdpa-flash", 6e14)),  # the same under another name
        ("bf16", "naive", ("naive", 1e14)),
        ("fp32", "naive", ("", None)),  # a format that was not measured
    ],
)
def test_attention_is_set_beside_the_same_format_and_says_which_implementation(
    file, precision, implementation, beside
):
    figure = f"me,H100,attention,4,{precision},{implementation},64,16,yes,1024,forward"
    path = file(ATTENTION, f"{figure},rate,mean,500,TFLOP/s")
    known = [
        passed("triton", "fp16", 3e14),
        passed("naive", "fp16", 1e14),
        passed("naive", "bf16", 1e14),
        passed("sdpa-flash", "bf16", 6e14),
    ]
    row = one(path, *known)
    assert (row["beside"], row["measured"]) == beside
    assert row["ratio"] == (approx(5e14 / beside[1]) if beside[1] else None)


def timed(file, figure):
    """A figure of medium at 128, batch 4; what follows the precision."""
    head = "source,gpu,study,size,context,batch,precision,mode,phase,name,quantity,statistic,value"
    return file(f"{head},unit,warmup", f"me,T4,{figure}")


NO_MEANS = ("total", "min", "max", "value")
WARM = [
    {"machine": "a", "cell": "a/cell", "phase": phase, "skipped": skipped, "mean": mean, "std": 0.1}
    for phase, skipped, mean in (("step", 0, 0.5), ("step", 2, 0.06), ("forward", 0, 0.4))
]


@pytest.mark.parametrize(
    "figure, measured",
    [
        *((f"timing,medium,128,4,fp32,step,step,,time,{name},1,s,10", None) for name in NO_MEANS),
        ("timing,medium,128,4,fp32,step,step,,time,mean,1,s,10", 0.05),  # a warm mean
        ("timing,medium,128,4,fp32,step,step,,time,mean,1,s,", 0.05),
        ("timing,medium,128,4,fp32,step,step,,time,mean,1,s,0", 0.5),
        ("warmup,medium,128,4,fp32,step,step,,time,mean,1,s,2", 0.06),
        ("warmup,medium,128,4,fp32,step,step,,time,std,1,s,2", 0.1),
        ("warmup,medium,128,4,fp32,step,forward,,time,mean,1,s,0", 0.4),
        ("warmup,medium,128,4,fp32,step,step,,time,mean,1,s,1", None),  # as many were not skipped
        ("warmup,medium,128,4,fp32,step,step,,time,mean,1,s,", None),  # nobody says how many
        ("warmup,medium,128,4,fp32,step,backward,,time,mean,1,s,0", None),
    ],
)
def test_first_steps_stand_beside_first_steps_and_means_beside_means(file, figure, measured):
    assert one(timed(file, figure), warmup=WARM)["measured"] == measured


KERNEL = {
    "machine": "a",
    "cell": "a/cell",
    "phase": "forward",
    "name": "gemm",
    "full_name": "void gemm<128>()",
    "calls": 4.0,
    "time": 0.008,
    "share": 0.25,
    "median": 0.0019,
    "min": 0.001,
    "max": 0.003,
    "std": 0.0002,
}
SOFTMAX = {
    "machine": "a",
    "cell": "a/cell",
    "module": "softmax",
    "calls": 24.0,
    "host_time": 0.024,
    "gpu_time": 0.012,
    "kernels": 120.0,
}
KIND = {"machine": "a", "cell": "a/cell", "phase": "step", "category": "softmax forward"}


@pytest.mark.parametrize(
    "figure, measured",
    {
        "forward,gemm,time per instance,mean,1,s": 0.002,
        "forward,gemm,time per instance,median,1,s": 0.0019,
        "forward,gemm,time per instance,max,1,s": 0.003,
        "forward,void gemm<128>(),instances,value,4,count": 4.0,
        "forward,gemm,share of GPU time,value,50,%": 0.25,
        "forward,gemm,time,total,1,s": None,
        "backward,gemm,instances,value,4,count": None,
        "forward,softmax,time per call,mean,1,s": 0.001,
        "forward,softmax,GPU time per call,mean,1,s": 0.0005,
        "forward,softmax,launches per call,value,5,count": 5.0,
        "step,softmax (fwd),share of GPU,value,1,%": 0.125,
        "forward,softmax,time,mean,1,s": None,  # of a part, which no step is
    }.items(),
)
def test_parts_stand_beside_kernels_modules_and_kinds(file, figure, measured):
    path = timed(file, f"profile,medium,128,4,fp32,step,{figure},")
    found = one(path, kernels=[KERNEL], modules=[SOFTMAX], categories=[KIND | {"share": 0.125}])
    assert found["measured"] == (approx(measured) if measured else None)


@pytest.mark.parametrize(
    "figure, measured, ratio",
    [
        ("precision,medium,128,4,bf16,step,step,,speed-up,value,4,ratio,5", 2.5, 1.6),
        ("timing,medium,128,4,bf16,step,step,,ratio to forward,value,3,ratio,5", 4.0, 0.75),
        ("timing,medium,128,4,tf32,step,step,,change by TF32,value,-10,%,5", -0.2, 0.9 / 0.8),
        ("precision,medium,128,4,fp16,step,step,,speed-up,value,4,ratio,5", None, None),
    ],
)
def test_effects_stand_beside_the_same_effect_of_ours(file, figure, measured, ratio):
    """A step of 50 ms in fp32, 20 in bf16 with 5 of forward, 40 in TF32."""
    known = [
        ours(),
        ours(precision="bf16", mean=0.02),
        ours(precision="bf16", mean=0.005, phase="forward"),
        ours(precision="tf32", mean=0.04),
    ]
    row = one(timed(file, figure), *known)
    assert row["measured"] == (approx(measured) if measured else None)
    assert row["ratio"] == (approx(ratio) if ratio else None)


def test_sums_of_numbers_are_the_same_on_every_machine(file):
    path = timed(file, "precision,,,,,,,fp16 += fp16,sum,value,9.953125,,")
    known = {"machine": "a", "cell": "a/sums", "variant": "fp16 += fp16", "sum": 9.953125}
    assert one(path, sums=[known])["ratio"] == 1


@pytest.mark.parametrize(
    "unit, si, factor", [("us", "s", 1e-6), ("MiB", "B", 2**20), ("%", "1", 0.01)]
)
def test_values_are_in_si_units(file, unit, si, factor):
    row = one(file(HEAD, f"me,T4,profile,anything,3,{unit}"))
    assert (row["value"], row["unit"]) == (approx(3 * factor), si)


def test_what_is_in_doubt_is_compared_with_nothing(file):
    figure = "step,step,time,mean,100,ms,a slip"
    row = one(file(f"{STEP[0]},doubt", STEP[1] + figure))
    assert (row["measured"], row["ratio"]) == (0.05, None)


@pytest.fixture(scope="module")
def committed(request):
    root = request.config.rootpath / "report/published"
    return {path.stem: read(path) for path in sorted(root.glob("*.csv"))}


def found(figures, **wanted):
    return [row for row in figures if all(row[name] == value for name, value in wanted.items())]


# Read off the write-ups and papers, one of each kind of table.
PRINTED = [
    ("write-up-000", {"size": "2.7B", "phase": "forward", "statistic": "std"}, (56.249, "ms")),
    ("write-up-001", {"size": "large", "precision": "fp16", "statistic": "mean"}, (0.388, "s")),
    (
        "write-up-002",
        {
            "size": "xl",
            "context": 1024,
            "precision": "bf16",
            "phase": "backward",
            "statistic": "mean",
        },
        (648.14, "ms"),
    ),
    (
        "write-up-003",
        {"item": "mixed precision", "size": "2.35B", "phase": "forward", "quantity": "time"},
        (112.58, "ms"),
    ),
    (
        "write-up-004",
        {
            "d_head": 512,
            "length": 16384,
            "precision": "tf32",
            "direction": "backward",
            "quantity": "time",
        },
        (33706.693, "ms"),
    ),
    ("flash-attention-3", {"d_head": 128, "length": 8192}, (602.0, "TFLOP/s")),
    ("cudnn", {"direction": "backward", "length": 2048}, (370.0, "TFLOP/s")),
]


@pytest.mark.parametrize("name, wanted, printed", PRINTED)
def test_figures_are_as_they_were_printed(name, wanted, printed, committed):
    assert picked(found(committed[name], **wanted), "value", "unit") == [printed]


def test_mfu_of_published_steps_by_hand():
    """6 N + 12 L d T a token, N without the embedding; by this count, or with another, three
    publishers' own numbers come out."""
    found = rows([ROOT / "report/published/training-steps.csv"], tables())
    of = found.set_index(["source", "gpu", "precision"])["mfu"]
    # An 8B Llama: blocks of 2 x 4096^2 + 2 x 4096 x 1024 + 3 x 4096 x 14336, two gains each; one
    # gain and the head.
    blocks = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096)
    head = 4096 * 128256
    a_token = 6 * (blocks + 4096 + head)
    scores = 12 * 32 * 4096
    peaks = {"H100": 989.4e12, "H200": 989.5e12}
    by_hand = {
        ("torchtitan", "H100 96GB HBM2e", "bf16"): 6667 * (a_token + scores * 8192),
        ("torchtitan", "H100 96GB HBM2e", "fp8"): 8532 * (a_token + scores * 8192),
        ("torchtitan", "H200", "fp8"): 10938 * (a_token + scores * 8192),
        ("Megatron-Bridge", "H100 80GB HBM3", "fp8"): 14451 * (a_token + scores * 8192),
        ("KempnerForge", "H200", "bf16"): 10471 * (a_token + scores * 4096),
        ("llm-foundry", "H100 80GB HBM3", "fp8"): 5.482421e14,
    }
    for place, work in by_hand.items():
        assert of[place] == approx(work / peaks[place[1][:4]], rel=1e-9), place
    assert of["torchtitan", "H100 96GB HBM2e", "bf16"] == approx(0.39, abs=0.005)
    with_embedding = 10471 * (a_token + 6 * head + scores * 4096) / 989.5e12
    assert with_embedding == approx(0.578, abs=0.0005)
    half = 14451 * (a_token + scores * 8192 / 2)
    assert half == approx(744e12, rel=0.001)
    assert approx(0.277, abs=0.0005) == 5.482421e14 / 1978.9e12


def test_a_shape_that_no_model_has_has_no_mfu(file):
    head = HEAD + ",mode,precision,d_model,d_ff,num_layers,num_heads,vocab_size,context"
    row = "me,H200,timing,tokens per second,100,tokens/s,step,bf16"
    path = file(head, f"{row},64,64,1,3,100,8", f"{row},64,64,1,2,100,8", f"{row},,,,,,")
    found = rows([path], tables())
    # 6 (4 x 64^2 + 3 x 64^2 + 3 x 64 + 6400) + 12 x 64 x 8 FLOP a token
    assert found["mfu"].tolist() == approx(
        [math.nan, 100 * (6 * (7 * 64**2 + 192 + 6400) + 6144) / 989.5e12, math.nan], nan_ok=True
    )


@pytest.mark.parametrize(
    "heads, causal, wanted",
    [
        (math.nan, "", ""),
        (math.nan, "yes", "mask=causal"),
        (16.0, "yes", "heads=16 key_value_heads=16 mask=causal"),
    ],
)
def test_options_of_passes_are_those_of_cells(heads, causal, wanted):
    assert _options({"heads": heads, "kv_heads": heads, "causal": causal}) == wanted
