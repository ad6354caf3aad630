"""The precision study's section: tables, sentences, and whole pages of what there is and what there is not."""

import math
from pathlib import Path

import pytest
from stepscope.figures import theme
from stepscope.report.data.precision import Precision, scientific
from stepscope.report.page import Request, report
from stepscope.report.studies.precision import findings as precision_findings
from stepscope.report.studies.precision import section as section
from stepscope.report.studies.precision.norms import forced_tables, outcome, summary_table
from stepscope.report.studies.precision.tables import accumulation_table, dtypes_table, gradients_table, signed
from synthetic_precision import dtypes, probe, summed, timing, tried, write

ROOT = Path(__file__).resolve().parents[3]
FULL = {
    "precision": [probe("accumulation"), probe("autocast"), probe("normalisation")],
    "precision_accumulation": [summed(), summed("fp32 += bf16 cast to fp32", 10.00976562, 1000)],
    "precision_dtypes": [dtypes("layer_norm", "fp32"), dtypes("blocks.*.attention.qkv", "bf16", "own", modules=4)],
    "precision_forced": [tried(value=255.0), tried(value=256.0, error=1.0, zero=8, inner="inf"),
                         tried(value=256.0, way="under autocast", inner=None)],
    "precision_gradients": [{"hardware": "gpu", "autocast": "fp16", "loss": 2.004, "loss_fp32": 2.0, "error": 0.01,
                             "zero_share": 0.25, "not_finite": 0}],
}  # fmt: skip


@pytest.fixture
def made(tmp_path):
    def make(**frames):
        return write(tmp_path / "tables", {"precision": [probe()], **frames})

    return make


def pages(tables, tmp_path):
    for name in ("precision_accumulation", "precision_forced", "precision_speedup"):
        theme.write(lambda _: theme.empty("not drawn in this test"), tables, tmp_path / "figures", name)
    request = Request(["precision"], tables.folder, tmp_path / "figures", ROOT / "report", "Title", "c", False)
    return report(request)


def texts(rows):
    return [[cell.text for cell in row] for row in rows]


def test_sums_show_all_published_digits_their_error_and_where_they_stop(made):
    table = accumulation_table(Precision(made(**FULL)))
    assert texts(table.rows) == [
        ["bf16 += bf16", "0.01000000", "4.00000000", "−60", "addition 350"],
        ["fp32 += bf16 cast to fp32", "0.01000000", "10.00976562", "+0.098", "–"],
    ]
    assert "exactly it would be 10." in table.caption


def test_what_formats_and_operations_have_in_common_is_said_once(made):
    rows = [dtypes("layer_norm", "fp32", name=name) for name in ("fp16", "bf16")]
    lost = [tried(operation, value=value, error=1.0, zero=8, inner="inf")
            for operation in ("RMSNorm", "LayerNorm") for value in (256.0, 1024.0)]  # fmt: skip
    told = precision_findings.findings(Precision(made(precision_dtypes=rows, precision_forced=lost)))
    assert told == [
        "LayerNorm after a linear layer gives fp32 under fp16 and bf16 autocast on this device: autocast runs it in "
        "fp32.",
        "RMSNorm and LayerNorm in fp16 give nothing but zeros from |x| = 256 on, where squares overflow.",
    ]


def test_dtypes_come_in_the_order_of_a_forward_pass_and_name_the_device(made):
    rows = [dtypes("head", "bf16", "own"), dtypes("embedding", "fp32", "own", parameter=None, buffer="fp32")]
    rows.append(dtypes("unheard of", "fp32", "own"))
    precision = Precision(made(precision=[probe("autocast", device="cpu")], precision_dtypes=rows))
    table = dtypes_table(precision, "gpu", "own")
    assert [row[1].text for row in table.rows] == ["embedding", "LM head", "unheard of"]
    assert table.rows[0][3].text == "fp32 (buffers)"
    assert "(a CPU)" in table.caption and any("that of CUDA differs" in note for note in table.notes)
    assert dtypes_table(precision, "gpu", "toy") is None


def test_what_cannot_run_is_a_row_and_a_note(made):
    rows = [{"hardware": "gpu", "model": "toy", "autocast": "fp16", "status": "unsupported", "reason": "no kernel"}]
    table = dtypes_table(Precision(made(precision_dtypes=rows)), "gpu", "toy")
    assert table.rows[0][0].badges == ("unsupported",) and len(table.rows[0]) == len(table.columns)
    assert "fp16: not possible: no kernel" in table.notes


def test_gradients_are_shares_in_per_cent(made):
    table = gradients_table(Precision(made(**FULL)))
    assert texts(table.rows) == [["fp16", "2.004000", "+0.20", "+1.0", "+25", "0"]]


def test_a_lost_result_is_said_in_words():
    assert outcome(tried(nan=1, error=math.nan)) == "NaN"
    assert outcome(tried(infinite=1, error=math.nan)) == "Inf"
    assert outcome(tried(zero=8, error=1.0)) == "all zero"
    assert outcome(tried(zero=8, zero_exact=8, error=0.0)) == "0"
    assert outcome(tried(error=0.00284)) == "2.8e−3"


def test_a_table_a_case_with_the_intermediate_below(made):
    (table,) = forced_tables(Precision(made(**FULL)), "gpu")
    assert [column.group for column in table.columns] == ["", "all in the format", "under autocast"]
    assert texts(table.rows) == [["255", "1.0e−3", "–"], ["256", "all zero", "1.0e−3"]]
    assert [cell.below for cell in table.rows[1]] == ["", "Inf", ""]
    assert len(texts(table.rows)[0]) == len(table.columns)


def test_how_many_operators_ran_in_fp32(made):
    key = {"hardware": "gpu", "operation": "own softmax", "autocast": "bf16", "given": "bf16", "status": "ok"}
    rows = [("amax", "bf16", "bf16"), ("_to_copy", "bf16", "fp32"), ("exp_", "fp32", "fp32"),
            ("_to_copy", "fp32", "bf16")]  # fmt: skip
    rows = [key | {"order": i, "operator": a, "input_dtypes": b, "output_dtype": c} for i, (a, b, c) in enumerate(rows)]
    rows.append(key | {"operation": "torch LayerNorm", "status": "unsupported", "reason": "none"})
    table = summary_table(Precision(made(precision_operators=rows)), "gpu")
    assert (table.rows[0][1].text, table.rows[0][1].below) == ("bf16", "1 of 2 in fp32")
    assert table.rows[1][1].badges == ("unsupported",)


def test_numbers_far_from_one_have_a_power_of_ten():
    assert [scientific(value) for value in (0, 0.00284, 0.5, 3.0, 314.0, 57e33)] == [
        *("0", "2.8e−3", "0.50", "3.0", "310", "5.7e34"),
    ]
    assert [signed(value) for value in (0.0, 0.0013, -60.0)] == ["0", "+0.0013", "−60"]


def test_the_sentences_tell_the_numbers(made):
    assert precision_findings.findings(Precision(made(**FULL))) == [
        "0.01 added 1,000 times gives 4.0000 in bf16, which stops growing after 350 additions.",
        "LayerNorm after a linear layer gives fp32 under bf16 autocast on this device: autocast runs it in fp32.",
        "RMSNorm in fp16 gives nothing but zeros from |x| = 256 on, where squares overflow; not so under autocast.",
        "Gradients of the probed model differ from those in fp32 by 1.0 % in fp16 (25 % of them exactly zero).",
    ]


def test_which_format_stops_is_clear_among_several(made):
    sums = [summed("bf16 += bf16"), summed("fp16 += fp16", 9.953125, 1000)]
    (sentence,) = precision_findings.findings(Precision(made(precision_accumulation=sums)))
    assert sentence == (
        "0.01 added 1,000 times gives 4.0000 in bf16 and 9.9531 in fp16, of which bf16 stops growing after "
        "350 additions."
    )


def test_cancellation_and_slow_sums(made):
    way = "variance as mean(x²) − mean(x)²"
    rows = [
        tried("LayerNorm", "mean of x", 10.0, way=way, error=0.01),
        tried("LayerNorm", "mean of x", 100.0, way=way, error=314.0, inner=0.0),
        tried("softmax", "equal logits", 8192.0, way="sum one by one", inner=2048.0, inner_exact=8192.0, error=3.0),
    ]
    assert precision_findings.findings(Precision(made(precision_forced=rows))) == [
        "A variance as mean(x²) − mean(x)² becomes 0 in fp16 instead of 1.00 at a mean of 100.",
        "A softmax that adds equal exponentials one by one in the format itself stops at 2,048 in fp16.",
    ]  # fmt: skip


def test_what_machines_have_in_common_is_said_once(made):
    machines = ("a", "b")
    tables = made(precision=[probe(hardware=name) for name in machines],
                  precision_accumulation=[summed(hardware=name) for name in machines])  # fmt: skip
    (sentence,) = precision_findings.findings(Precision(tables))
    assert sentence.startswith("On a and b: 0.01 added")
    assert texts(accumulation_table(Precision(tables)).rows)[1][0] == "b"


def test_a_page_of_everything(made, tmp_path):
    mixed = [timing(), timing(precision="bf16", ms=5.0)]
    text, html = pages(made(**FULL, timing=mixed), tmp_path)
    assert "10.00976562" in text and "10.00976562" in html
    assert "nothing to compare" in text  # the timing study was not asked for


def test_a_page_of_nothing_and_of_a_probe_that_cannot_run(made, tmp_path):
    lost = [probe("autocast", status="unsupported", reason="no bf16"), probe("normalisation", status="missing")]
    text, html = pages(made(precision=lost), tmp_path)
    for page in (text, html):
        assert "No probe of precision finished." in page and "no bf16" in page
    assert section.findings(write(tmp_path / "empty", {})) == ["No probe of precision is in the tables."]
    assert section.context(write(tmp_path / "empty", {}))["slower"] is None
