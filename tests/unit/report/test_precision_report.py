"""The precision study's findings by their numbers, its tables' values, and pages of what there is and what is not."""

import math
from pathlib import Path

import pytest
from pages import data_pages
from stepscope.figures import theme
from stepscope.report.data.precision import Precision, outcome, scientific
from stepscope.report.page import Request
from stepscope.report.studies.precision import section
from stepscope.report.studies.precision.findings import findings
from stepscope.report.studies.precision.tables import (
    accumulation_table,
    attention_table,
    dtypes_table,
    forced_tables,
    gradients_table,
    operators_table,
    signed,
    summary_table,
)
from synthetic_precision import dtypes, probe, summed, timing, tried, write

ROOT = Path(__file__).resolve().parents[3]
SQUARES = "variance as mean(x²) − mean(x)²"
GRADIENTS = {"cell": "gpu/precision/autocast", "hardware": "gpu", "loss_fp32": 2.0, "zero_share": 0.25, "not_finite": 0}
FULL = {
    "precision": [probe("accumulation"), probe("autocast"), probe("normalisation")],
    "precision_accumulation": [summed(), summed("fp32 += bf16 cast to fp32", 10.00976562, 1000)],
    "precision_dtypes": [dtypes("layer_norm", "fp32"), dtypes("blocks.*.attention.qkv", "bf16", "own", modules=4)],
    "precision_forced": [tried(value=255.0), tried(value=256.0, error=1.0, zero=8, inner="inf"),
                         tried(value=256.0, way="under autocast", inner=None)],
    "precision_gradients": [GRADIENTS | {"autocast": "fp16", "loss": 2.004, "error": 0.01}],
}  # fmt: skip


@pytest.fixture
def made(tmp_path):
    """Precision of the tables with these rows."""

    def make(**frames):
        return Precision(write(tmp_path / "tables", {"precision": [probe()], **frames}))

    return make


def pages(tables, tmp_path):
    for name in ("precision_accumulation", "precision_forced", "precision_speedup"):
        theme.write(lambda _: theme.empty("not drawn in this test"), tables, tmp_path / "figures", name)
    request = Request(
        ["precision"], tables.folder, tmp_path / "figures", ROOT / "report", tmp_path / "report", "Title", "c", False
    )
    return data_pages(request)


def values(finding):
    return {name: number.value for name, number in finding.numbers.items()}


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_each_probe_has_its_finding_with_the_cells_that_it_comes_from(made):
    sums, layer_norm, overflow, gradients = findings(made(**FULL))
    assert values(sums) == {"times": 1000, "bf16": 4.0, "last_change": 350}
    assert values(layer_norm) == {} and "runs it in fp32" in layer_norm.text
    assert values(overflow) == {"RMSNorm_fp16": 256.0} and "not so under autocast" in overflow.text
    assert values(gradients) == {"fp16_error": 0.01, "fp16_zeros": 0.25}
    assert sums.cells == ("gpu/precision/accumulation",) and overflow.cells == ("gpu/precision/normalisation",)
    assert {each.hardware for each in (sums, layer_norm, overflow, gradients)} == {"gpu"}


def test_operations_that_overflow_alike_share_a_number(made):
    lost = [tried(operation, value=value, error=1.0, zero=8, inner="inf")
            for operation in ("RMSNorm", "LayerNorm") for value in (1024.0, 256.0)]  # fmt: skip
    lost.append(tried("LayerNorm", value=1e5, name="bf16", error=None, nan=1))
    (finding,) = findings(made(precision_forced=lost))
    assert values(finding) == {"RMSNorm_fp16": 256.0, "LayerNorm_bf16": 1e5}
    assert "RMSNorm and LayerNorm in fp16 give nothing but zeros" in finding.text


@pytest.mark.parametrize(("inner", "text"), [(0.0, "0"), (-4.0, "−4.00"), ("inf", "Inf"), ("nan", "NaN")])
def test_a_variance_as_a_difference_is_told_where_it_first_is_of_no_use(made, inner, text):
    near = tried("LayerNorm", "mean of x", 10.0, way=SQUARES, error=0.01)
    far = [tried("LayerNorm", "mean of x", mean, way=SQUARES, error=314.0, inner=inner) for mean in (1e4, 100.0)]
    (finding,) = findings(made(precision_forced=[near, *far]))
    assert (finding.numbers["fp16_mean"].value, finding.numbers["fp16_exact"].value) == (100.0, 1.0)
    assert str(finding.numbers["fp16_inner"]) == text


def test_a_slow_sum_stops_at_its_largest_value(made):
    sums = [tried("softmax", "equal logits", size, way="sum one by one", inner=inner, inner_exact=size, error=3.0)
            for size, inner in ((1024.0, 1024.0), (8192.0, 2048.0), (4096.0, 2047.0), (65536.0, None))]  # fmt: skip
    (finding,) = findings(made(precision_forced=sums))
    assert values(finding) == {"fp16": 2048.0}


def test_what_machines_have_in_common_is_said_once(made):
    machines = ("a", "b")
    sums = [summed(hardware=name) for name in machines]
    parts = [
        dtypes("layer_norm", output, hardware=name) for name, output in zip(machines, ("fp32", "bf16"), strict=True)
    ]
    precision = made(precision=[probe(hardware=name) for name in machines], precision_accumulation=sums,
                     precision_dtypes=parts)  # fmt: skip
    common, first, second = findings(precision)
    assert common.hardware == "" and common.text.startswith("On a and b: 0.01 added")
    assert common.cells == ("a/precision/accumulation", "b/precision/accumulation")
    assert (first.hardware, second.hardware) == machines


def test_a_sum_without_a_finite_value_is_said_in_words(made):
    lost = accumulation_table(made(precision_accumulation=[summed(total="inf"), summed(total="nan")]))
    assert [row[2].text for row in lost.rows] == ["Inf", "NaN"]


def test_without_rows_there_is_no_table(made):
    precision = made()
    assert accumulation_table(precision) is None and gradients_table(precision) is None
    assert dtypes_table(precision, "gpu", "toy") is None and attention_table(precision, "gpu") is None
    assert operators_table(precision, "gpu") is None and summary_table(precision, "gpu") is None
    assert forced_tables(precision, "gpu") == []


def test_what_cannot_run_is_a_row_and_a_note(made):
    rows = [{"hardware": "gpu", "model": "toy", "autocast": "fp16", "status": "unsupported", "reason": "no kernel"}]
    table = dtypes_table(made(precision_dtypes=rows), "gpu", "toy")
    assert table.rows[0][0].badges == ("unsupported",) and texts(table) == [["fp16", *["–"] * 7]]
    assert table.notes == ["fp16: not possible: no kernel"]


def test_the_operators_of_an_operation_by_what_they_run_in(made):
    key = {"hardware": "gpu", "operation": "own softmax", "autocast": "bf16", "given": "bf16", "status": "ok"}
    rows = [("amax", "bf16", "bf16"), ("_to_copy", "bf16", "fp32"), ("exp_", "fp32", "fp32"),
            ("_to_copy", "fp32", "bf16")]  # fmt: skip
    rows = [key | {"order": i, "operator": a, "input_dtypes": b, "output_dtype": c} for i, (a, b, c) in enumerate(rows)]
    rows.append(key | {"operation": "torch LayerNorm", "status": "unsupported", "reason": "none"})
    precision = made(precision_operators=rows)
    summary, table = summary_table(precision, "gpu"), operators_table(precision, "gpu")
    assert (summary.rows[0][1].text, summary.rows[0][1].below) == ("bf16", "1 of 2 in fp32")
    assert texts(table)[0][3:] == ["exp_", "amax", "bf16 → fp32, fp32 → bf16", "bf16"]
    assert texts(table)[1][3:] == ["–"] * 4
    assert summary.rows[1][1].badges == table.rows[1][2].badges == ("unsupported",)


def test_a_lost_result_is_said_in_words():
    assert outcome(tried(nan=1, error=math.nan)) == "NaN"
    assert outcome(tried(infinite=1, error=math.nan)) == "Inf"
    assert outcome(tried(zero=8, error=1.0)) == "all zero"
    assert outcome(tried(zero=8, zero_exact=8, error=0.0)) == "0"
    assert outcome(tried(error=0.00284)) == "2.8e−3"


def test_numbers_far_from_one_have_a_power_of_ten():
    assert [scientific(value) for value in (0, 0.00284, 0.5, 3.0, 314.0, 57e33)] == [
        *("0", "2.8e−3", "0.50", "3.0", "310", "5.7e34"),
    ]
    assert [signed(value) for value in (0.0, 0.0013, -60.0)] == ["0", "+0.0013", "−60"]


def test_a_page_of_everything(tmp_path):
    mixed = [timing(), timing(precision="bf16", ms=5.0)]
    text, html = pages(write(tmp_path / "tables", FULL | {"timing": mixed}), tmp_path)
    assert "10.00976562" in text and "10.00976562" in html
    assert "nothing to compare" in text  # the timing study was not asked for


def test_a_page_of_nothing_and_of_a_probe_that_cannot_run(tmp_path):
    lost = [probe("autocast", status="unsupported", reason="no bf16"), probe("normalisation", status="missing")]
    for page in pages(write(tmp_path / "tables", {"precision": lost}), tmp_path):
        assert "No probe of precision finished." in page and "no bf16" in page
    empty = write(tmp_path / "empty", {})
    assert [each.text for each in section.findings(empty)] == ["No probe of precision is in the tables."]
    assert section.context(empty)["slower"] is None
