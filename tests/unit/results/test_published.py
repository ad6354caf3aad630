"""Published figures: what a file may hold, what is said of a wrong one, which of ours they are set
beside, and the committed files as printed."""

import pandas as pd
import pytest
from stepscope.results.published import PublishedError, read, rows
from stepscope.results.schema import TABLES

HEAD = "source,gpu,study,quantity,value,unit"
ROW = "somebody,T4,timing,time,1.5,s"


@pytest.fixture
def file(tmp_path):
    """Writes a file of published figures; gives its path."""

    def one(*lines):
        path = tmp_path / "mine.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return one


def test_what_a_file_leaves_out_is_empty_and_its_columns_stand_in_any_order(file):
    (row,) = read(
        file("unit,value,gpu,quantity,study,source,context", "MiB,2,,peak allocated,memory,me,128")
    )
    assert (row["value"], row["unit"], row["gpu"], row["context"]) == (2.0, "MiB", "", 128)
    assert (row["statistic"], row["batch"], row["size"]) == ("", None, "")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((HEAD.replace(",unit", ""), "a,T4,timing,time,1"), "line 1: column 'unit' is missing"),
        ((HEAD + ",colour", ROW + ",red"), "line 1: column 'colour' is none of batch, causal"),
        ((HEAD, ROW, "a,T4"), "line 3: has not as many fields as the first line"),
        ((HEAD, ROW + ",more"), "line 2: has not as many fields as the first line"),
        ((HEAD, ROW.replace("1.5", "fast")), "line 2: value: 'fast' is no number"),
        ((HEAD, ROW.replace("1.5", "nan")), "line 2: value: 'nan' is not finite"),
        ((HEAD, ROW.replace("1.5", "inf")), "line 2: value: 'inf' is not finite"),
        ((HEAD, ROW.replace(",s", ",weeks")), "line 2: unit: 'weeks' is none of s, ms, us"),
        (
            (HEAD, ROW.replace("timing", "Timing")),
            "line 2: study: 'Timing' is none of timing, warmup",
        ),
        (
            (HEAD + ",precision", ROW + ",fp64"),
            "line 2: precision: 'fp64' is none of fp32, tf32, bf16, fp16",
        ),
        (
            (HEAD + ",impossible", ROW + ",maybe"),
            "line 2: impossible: 'maybe' is none of True, False",
        ),
        (
            (HEAD + ",status", ROW + ",oom"),
            "line 2: value: a number for the status ok, and none for any other",
        ),
        (
            (HEAD, ROW.replace("1.5", "")),
            "line 2: value: a number for the status ok, and none for any other",
        ),
    ],
)
def test_a_wrong_file_is_told_by_line_and_column(lines, told, file):
    with pytest.raises(PublishedError) as error:
        read(file(*lines))
    assert (
        told in str(error.value) and "mine.csv" in str(error.value) and "\n" not in str(error.value)
    )


def test_what_is_no_csv_file_is_told_in_one_line(tmp_path):
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe")
    for path in (tmp_path / "picture.csv", tmp_path / "none.csv", tmp_path):
        with pytest.raises(PublishedError, match="no CSV file of published figures"):
            read(path)


def ours(**row) -> pd.DataFrame:
    """Series with one row: 40 ms of a step of medium at 128 in fp32."""
    plain = {
        "machine": "a",
        "study": "timing",
        "size": "medium",
        "context": 128.0,
        "batch": 4.0,
        "precision": "fp32",
    }
    plain |= {
        "variant": "step",
        "options": "",
        "mode": "step",
        "phase": "step",
        "direction": "",
        "quantity": "time",
    }
    plain |= {"median": 0.04, "mean": 0.05, "std": 0.001, "status": "ok", "cell": "a/cell"}
    return pd.DataFrame([plain | row]).reindex(columns=TABLES["series"].names)


STEP = (
    "source,gpu,study,size,context,batch,precision,mode,phase,quantity,statistic,value,unit",
    "me,T4,timing,medium,128,4,fp32,",
)


@pytest.mark.parametrize(
    ("figure", "measured"),
    [
        ("step,step,time,mean,100,ms", 0.05),
        ("step,step,time,median,0.1,s", 0.04),
        ("step,step,time,std,100,ms", 0.001),
        ("forward-backward,step,time,mean,100,ms", 0.05),  # of whatever mode that has the phase
        ("step,optimizer,time,mean,100,ms", None),
        ("step,step,share of GPU time,value,10,%", None),
    ],
)
def test_a_figure_is_set_beside_ours_of_the_same_place(file, figure, measured):
    (row,) = rows([file(STEP[0], STEP[1] + figure)], ours())
    assert row["measured"] == measured
    assert row["cell"] == ("a/cell" if measured else "")
    assert row["ratio"] == (pytest.approx(row["value"] / measured) if measured else None)


@pytest.mark.parametrize(
    "changed",
    [{"options": "compile=block"}, {"precision": "bf16"}, {"study": "ladder"}, {"batch": 8.0}],
)
def test_another_place_is_no_partner(file, changed):
    (row,) = rows([file(STEP[0], STEP[1] + "step,step,time,mean,100,ms")], ours(**changed))
    assert row["measured"] is None


def test_an_implementation_that_is_not_ours_is_set_beside_our_fastest_of_as_many_bits(file):
    head = "source,gpu,study,batch,precision,implementation,d_head,heads,causal,length,"
    head += "direction,quantity,value,unit"
    path = file(
        head, "me,H100,attention,4,fp16,flash-attention-3,64,16,yes,1024,forward,rate,500,TFLOP/s"
    )
    place = {
        "study": "attention",
        "size": "d64",
        "context": None,
        "length": 1024.0,
        "mode": "",
        "quantity": "rate",
    }
    place |= {
        "options": "tokens=4096 heads=16 mask=causal",
        "phase": "forward",
        "direction": "forward",
    }
    rates = {("triton", "bf16"): 4e14, ("flex", "bf16"): 2e14, ("naive", "fp32"): 9e14}
    known = [
        ours(**place, variant=name, precision=kind, median=rate)
        for (name, kind), rate in rates.items()
    ]
    (row,) = rows([path], pd.concat(known))
    assert (row["measured"], row["value"], row["unit"]) == (4e14, 5e14, "FLOP/s")
    assert row["ratio"] == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("unit", "si", "factor"), [("us", "s", 1e-6), ("MiB", "B", 2**20), ("%", "1", 0.01)]
)
def test_values_are_in_si_units(file, unit, si, factor):
    (row,) = rows([file(HEAD, f"me,T4,profile,anything,3,{unit}")], ours())
    assert (row["value"], row["unit"]) == (pytest.approx(3 * factor), si)


def test_what_cannot_be_true_is_doubted(file):
    (row,) = rows([file(HEAD + ",impossible", ROW + ",True")], ours())
    assert row["doubt"] == "cannot be true"


@pytest.fixture(scope="module")
def committed(request):
    root = request.config.rootpath / "report/published"
    return {path.stem: read(path) for path in sorted(root.glob("*.csv"))}


def found(figures, **wanted):
    return [row for row in figures if all(row[name] == value for name, value in wanted.items())]


def test_there_is_a_file_for_each_source(committed):
    papers = {"cudnn", "flash-attention-3"}
    assert set(committed) == {f"write-up-00{at}" for at in range(5)} | papers
    for name, own in committed.items():
        assert {row["source"].casefold().replace(" ", "-") for row in own} == {
            name.replace("flash-a", "flasha")
        }


# Read off the write-ups and papers, one of each kind of table.
PRINTED = [
    ("write-up-000", {"size": "2.7B", "phase": "forward", "statistic": "std"}, (56.249, "ms")),
    ("write-up-001", {"size": "xl", "phase": "forward", "statistic": "mean"}, (0.178, "s")),
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
        {"size": "tiny", "phase": "forward_backward", "statistic": "mean"},
        (352.83, "ms"),
    ),
    (
        "write-up-003",
        {"item": "mixed precision", "size": "2.35B", "phase": "forward", "quantity": "time"},
        (112.58, "ms"),
    ),
    (
        "write-up-004",
        {"item": "precisions", "precision": "fp16", "quantity": "peak reserved"},
        (17820.0, "MiB"),
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


@pytest.mark.parametrize(("name", "wanted", "printed"), PRINTED)
def test_figures_are_as_they_were_printed(name, wanted, printed, committed):
    assert [(row["value"], row["unit"]) for row in found(committed[name], **wanted)] == [printed]


# A quotation of each slip, and how many figures stand beside it.
SLIPS = [
    (
        "write-up-000",
        "consistently takes at least 1x longer",
        4,
    ),  # mean and std of large, forward and backward
    (
        "write-up-001",
        '"ms", the figures are seconds',
        64,
    ),  # 4 d x 4 lengths x 2 implementations x 2 directions
    (
        "write-up-001",
        "3096 is written, 4096 was announced",
        24,
    ),  # 4 d x 2 implementations x 3 figures
    ("write-up-001", "191 calls of 64.9 µs", 1),
    ("write-up-002", "All models including 2.7B run successfully", 1),
    ("write-up-002", "below 1 % of the mean", 5),  # small twice, medium forward, large twice
    ("write-up-003", "--warmup_steps 0", 4),  # 2.35B: two passes, mean and std
    ("write-up-003", "the profile is named 2_35_b", 6),  # three passes, mean and std
    ("write-up-004", "given as ↑0.3%, and is +2.9 %", 2),  # the figure and its change
]


@pytest.mark.parametrize(("name", "quoted", "many"), SLIPS)
def test_slips_are_kept_and_quoted(name, quoted, many, committed):
    own = [row for row in committed[name] if quoted in (row["note"] or "")]
    assert len(own) == many and all("slip: " in row["note"] for row in own)
