"""The attention study's findings and its closed form: against synthetic_attention, and against torch."""

import math

import pytest
import synthetic_attention as made
from stepscope.report.data import attention_memory
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.attention import findings as attention_findings
from stepscope.report.studies.attention.tables_series import accounting_table, limits_table
from test_attention_tables import attention_of, texts

GIB = 2**30


def findings(folder, rows, limits=()) -> list[Finding]:
    return attention_findings.findings(attention_of(folder, rows, limits))


def values(found: list[Finding], question: str) -> dict:
    """The numbers of the last finding that answers a question, by their names."""
    (*_, finding) = [each for each in found if each.question.startswith(question)]
    return {name: number.value for name, number in finding.numbers.items()}


def test_all_findings_of_a_grid(tmp_path):
    rows = made.grid(names=("naive", "compiled", "sdpa-flash", "flex", "triton"))
    rows[0] |= {"noisy": True}
    found = findings(tmp_path, rows, made.ceilings())
    # From 4,096 to 16,384, four times the length.
    assert values(found, "how does time") == {way: pytest.approx([16] * 3) for way in ("forward", "backward")}
    assert values(found, "how does memory") == {
        "naive": pytest.approx([16] * 6),  # with compiled
        "sdpa_flash": pytest.approx([4] * 9),  # with flex and triton
        "most": 24 * GIB,
        "least": GIB / 8,
    }
    factors = {"naive": 1, "triton": 8, "sdpa_flash": 8}
    assert values(found, "what does a larger d") == {
        f"{name}_{way}": pytest.approx(factor) for name, factor in factors.items() for way in ("forward", "backward")
    }
    (compiled, triton, *_) = [each for each in found if each.question.startswith("which implementation")]
    assert {name: number.value for name, number in compiled.numbers.items()} == {
        f"{precision}_{way}{end}": value
        for precision in ("fp32", "tf32", "bf16")
        for way in ("forward", "backward")
        for end, value in (("", [2.0] * 9), ("_faster", 9))
    }
    assert len(compiled.cells) == 2 * 9
    # In fp32 it takes as much longer than in bf16 as naive attention does; d = 64 is 4 times slower than d = 16.
    speeds = [25.0] * 3 + [6.25] * 3 + [3.125] * 3
    assert triton.numbers["fp32_forward"].value == pytest.approx(speeds) == triton.numbers["bf16_backward"].value
    ours = values(found, "which implementation")
    assert ours["sdpa_flash_forward"] == pytest.approx([1.25] * 6) and ours["sdpa_flash_forward_faster"] == 6
    assert ours["flex_backward"] == [1.0] * 6 and ours["flex_backward_same"] == 6
    assert values(found, "how near") == {
        "forward": 400, "forward_share": 0.5, "backward": 200, "backward_share": 0.25,
    }  # fmt: skip
    series = [f"{name}_{way}" for name in made.WITH_SCORES for way in ("forward", "backward")]
    tf32 = {name: pytest.approx([4 / 3] * 9) for name in series} | {f"{name}_faster": 9 for name in series}
    assert values(found, "what does tf32") == tf32
    # 128 length² + 8 × 16 × 2 × 7 length is more than 80 × 2³⁰ from 25,898.4 on.
    assert values(found, "where does") == {"length": 25899, "capacity": 80 * GIB}
    assert values(found, "what is missing") == {"noisy": 1}
    assert {each.hardware for each in found} == {"gpu"}


def test_slower_points_are_counted(tmp_path):
    theirs = made.cell("sdpa-flash", 16)
    theirs[0] |= made.timed(0.02)  # ours takes 0.04
    theirs[2] |= made.timed(0.64)  # and so does theirs
    (found,) = [
        each for each in findings(tmp_path, [*theirs, *made.cell("triton", 16)]) if each.question.startswith("which")
    ]
    told = {name: number.value for name, number in found.numbers.items()}
    assert told["sdpa_flash_forward"] == pytest.approx([0.5, 1.0, 1.25])
    verdicts = [told[f"sdpa_flash_forward_{word}"] for word in ("faster", "same", "slower")]
    assert verdicts == [1, 1, 1]


def test_our_kernel_is_told_in_each_precision_and_where_it_was_throttled(tmp_path):
    # In fp32 it takes 8 ms where naive attention takes 4, in bf16 0.04 instead of 1, at lengths that scale alike.
    slow = [row | made.timed(2 * row["median_ms"]) for row in made.cell(precision="fp32")]
    slow = [row | {"implementation": "triton", "cell": "triton/fp32", "throttle": "power cap"} for row in slow]
    rows = [*made.cell(), *made.cell("triton"), *made.cell(precision="fp32"), *slow]
    told = [each.text for each in findings(tmp_path, rows)]
    (ours,) = [text for text in told if text.startswith("triton, this project's kernel, against naive")]
    assert "fp32: 0.500 forward (slower in all 3 points) and 0.500 backward (slower in all 3 points)" in ours
    assert "bf16: 25.0 forward (faster in all 3 points)" in ours
    assert "1 of 2 cells of triton ran on a throttled GPU." in told


def test_single_processes_have_no_verdict_and_that_is_said_once(tmp_path):
    rows = [row | made.timed(row["median_ms"], processes=1) for row in [*made.cell(), *made.cell("compiled")]]
    told = " ".join(each.text for each in findings(tmp_path, rows))
    assert (
        told.count("Single process, or two that disagree: no verdict.") == 1
        and "times the speed: bf16: 2.00 forward (3 points)" in told
    )
    assert "faster" not in told and "slower" not in told


def test_growth_is_not_fitted(tmp_path):
    # A line through 64, 1,024 and 4,096 would give a power that no two lengths show.
    rows = made.cell(lengths=[64, 1024, 4096])
    rows = [row | made.timed(0.9) if row["length"] == 64 else row for row in rows]
    (told,) = [each for each in findings(tmp_path, rows) if each.question.startswith("how does time")]
    assert "power" not in told.text
    assert told.text.startswith("From length 1,024 to 4,096 (bf16, batch 8, no heads, not causal), which is 4 times")
    assert "naive attention takes 16.00 times as long forward" in told.text


def test_an_implementation_that_grows_otherwise_is_named(tmp_path):
    steep = [row | made.timed(row["length"] ** 2.5 / 1e6) for row in made.cell("flex", 64)]
    told = values(findings(tmp_path, [*made.cell(), *made.cell(d_head=64), *steep]), "how does time")
    assert told["least"] == pytest.approx([16]) and told["most"] == pytest.approx([32])


def test_one_implementation_on_a_cpu(tmp_path):
    rows = made.cpu(made.cell("sdpa-flash", precision="fp32", lengths=[128, 512], hardware="cpu"))
    growth, rate = findings(tmp_path, rows)
    assert growth.text.startswith("From length 128 to 512 (fp32,") and "attention takes 16.00 times" in growth.text
    assert {name: number.value for name, number in rate.numbers.items()} == {"forward": 320, "backward": 160}


def test_nothing_that_finished(tmp_path):
    rows = made.without_result(made.cell(), "unsupported", "none") + made.without_result(
        made.cell("flex"), "missing", ""
    )
    none, lost = findings(tmp_path, rows)
    assert none.answer == "No pass of attention finished."
    assert {name: number.value for name, number in lost.numbers.items()} == {"unsupported": 6, "missing": 6}
    assert [each.answer for each in findings(tmp_path / "none", [])] == ["No attention cell is in the tables."]


def test_each_machine_has_its_own_findings(tmp_path):
    found = findings(tmp_path, [*made.cell(), *made.cell(hardware="other")])
    assert [each.hardware for each in found if each.question.startswith("how does time")] == ["gpu", "other"]
    assert {cell.split("/")[0] for each in found if each.hardware == "other" for cell in each.cells} == {"other"}


def test_passes_that_did_not_fit_in_the_time(tmp_path):
    rows = made.cell()
    (all_there,) = attention_findings.opening(attention_of(tmp_path, rows))
    assert all_there.text == "All 6 series have the 100 passes that were asked for."
    rows[-1] |= {"samples": 7}
    rows[-2] |= {"samples": 30}
    told = values(attention_findings.opening(attention_of(tmp_path, rows)), "how many passes")
    assert told == {"fewer": 2, "least": 7}


def out_of_memory() -> list[dict]:
    """Naive attention in the papers' shapes: the longest length is too long with 32 heads, not with 16."""
    rows = made.without_result(made.cell(d_head=64, **made.PAPERS), "oom", "CUDA out of memory", (16384,))
    return rows + made.cell(d_head=128, **made.PAPERS)


def test_the_smallest_that_ran_out_of_memory_in_closed_form(tmp_path):
    attention = attention_of(tmp_path, out_of_memory())
    table = accounting_table(attention, "gpu")
    assert table.caption == (
        "The smallest configuration of naive attention that ran out of memory, in closed form: batch 1, 32 heads, "
        "length 16,384, d = 64, causal, bf16, forward, on gpu."
    )
    # 32 × 16,384² numbers: 16 GiB in bf16, 32 GiB in fp32; the mask 16,384² × 2 B; 32 × 16,384 × 64 × 2 B = 64 MiB.
    forward = dict(zip(texts(table, "tensors"), texts(table, "forward"), strict=True))
    assert forward == {
        "Q, K, V": "0.188", "Q, scaled": "0.0625", "causal mask": "0.500", "scores": "16.0", "exponentials": "32.0",
        "weights in fp32": "32.0", "weights": "16.0", "output": "–", "gradients of output and V": "–",
        "gradients in the softmax": "–", "sum": "96.8", "measured": "48.0", "the card's memory": "80.0",
    }  # fmt: skip
    assert "OOM: out of memory." in table.notes
    told = values(attention_findings.findings(attention), "where does")
    assert told == {"need": pytest.approx(96.75 * GIB), "capacity": 80 * GIB}


def test_the_first_length_out_of_memory(tmp_path):
    flash = made.without_result(made.cell("sdpa-flash", 64, **made.PAPERS), "oom", "", (4096, 16384), ("backward",))
    (group,) = attention_of(tmp_path, [*out_of_memory(), *flash, *made.cell("flex", 64, **made.PAPERS)]).groups
    table = limits_table(group)
    assert texts(table, "implementation") == ["naive", "sdpa-flash"]
    assert texts(table, "d = 64") == ["16,384 / 16,384", "– / 4,096"] and texts(table, "d = 128") == ["–", "–"]
    (safe,) = attention_of(tmp_path / "safe", made.cell()).groups
    assert limits_table(safe) is None


def test_where_nothing_ran_out_the_largest_is_accounted_for(tmp_path):
    rows = made.cell(d_head=64)
    rows[-1] |= {"peak_bytes": 32 * GIB}
    table = accounting_table(attention_of(tmp_path, rows), "gpu")
    assert table.caption.startswith("Naive attention never ran out of memory: its largest configuration, in closed")
    # 8 × 16,384² numbers are 8 GiB in fp32, four of them at backward's peak, and 7 of 8 × 16,384 × 64 × 2 B = 16 MiB.
    assert texts(table, "backward")[-3:] == ["32.1", "32.0", "80.0"]
    assert texts(table, "backward", below=False)[0] == "0.0469"
    at = texts(table, "tensors").index("measured")
    assert table.rows[at][4].below == "+0.34 %"  # 7 × 16 MiB of 32 GiB
    none = accounting_table(attention_of(tmp_path / "cpu", made.cpu(made.cell())), "gpu")
    assert none is None


def test_the_length_that_is_too_long_is_the_first_one():
    row = made.cell(d_head=64)[-1]
    length = attention_memory.first_too_long(row, "backward")
    needs = [attention_memory.needed(row, "backward", each) for each in (length - 1, length)]
    assert needs[0] <= 80 * GIB < needs[1] and math.isclose(length, (80 * GIB / 128) ** 0.5, rel_tol=0.01)
    assert attention_memory.first_too_long(row | {"device": "cpu"}, "backward") is None


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("heads", [0, 4])
def test_the_closed_form_is_what_the_code_keeps_alive(precision, heads):
    """Against every allocation of torch on the CPU; the closed form leaves out sums of rows."""
    torch = pytest.importorskip("torch")
    from stepscope.model.attention import naive

    def allocated(call):
        """(result, bytes kept, peak bytes) of a call."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
            result = call()
        events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
        now = peak = 0
        for event in sorted(events, key=lambda event: event.start_ns()):
            now += event.nbytes()
            peak = max(peak, now)
        return result, now, peak

    naive.kept_causal_mask.cache_clear()
    shape = (2, *([heads] if heads else []), 512, 32)
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    q, k, v = (torch.randn(shape).to(dtype).requires_grad_() for _ in range(3))
    output, kept, forward = allocated(lambda: naive.attention(q, k, v, heads > 0))
    gradient, inputs = torch.randn_like(output), 3 * q.nbytes
    _, _, backward = allocated(lambda: output.backward(gradient))
    naive.kept_causal_mask.cache_clear()
    row = {"length": 512, "precision": precision, "heads": heads, "batch": 2, "d_head": 32, "tokens": None}
    row |= {"causal": "yes" if heads else "no"}
    measured = [inputs + forward, inputs + kept, inputs + kept + gradient.nbytes + backward]
    closed = [attention_memory.needed(row, moment) for moment in attention_memory.MOMENTS]
    assert closed == pytest.approx(measured, rel=0.002)
