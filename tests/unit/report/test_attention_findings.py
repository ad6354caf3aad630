"""What the attention section says in sentences, and its closed form: against synthetic_attention, and against torch."""

import math

import pytest
import synthetic_attention as made
from stepscope.report.studies.attention import findings as attention_findings
from stepscope.report.studies.attention import memory as attention_memory
from test_attention_tables import attention_of, texts

GIB = 2**30


def findings(folder, rows, limits=()) -> list[str]:
    return attention_findings.findings(attention_of(folder, rows, limits))


def beginning(sentences: list[str], words: str) -> str:
    (found,) = [sentence for sentence in sentences if sentence.startswith(words)]
    return found


def test_all_findings_of_a_grid(tmp_path):
    rows = made.grid(names=("naive", "compiled", "sdpa-flash", "flex", "triton"))
    rows[0] |= {"noisy": True}
    assert findings(tmp_path, rows, made.ceilings()) == [
        "Between lengths 1,024 and 16,384 (bf16, batch 8, no heads, not causal) the time of naive attention grows as "
        "the length to the power of 2.00 forward and 2.00 backward, over d.",
        "Memory before backward grows as the length to the power of 2.00 (naive and compiled); 1.00 (sdpa-flash, flex "
        "and triton); at length 16,384 and d = 128 naive holds 24.0 GiB, sdpa-flash 128 MiB.",
        "d = 128 instead of 16, 8 times the arithmetic, takes this many times as long at length 16,384 (bf16): naive "
        "1.00 forward and 1.00 backward; triton 8.00 forward and 8.00 backward; sdpa-flash 8.00 forward and 8.00 "
        "backward.",
        "compiled against naive, times the speed: fp32: 2.00 forward (faster in all 9 points) and 2.00 backward "
        "(faster in all 9 points); tf32: 2.00 forward (faster in all 9 points) and 2.00 backward (faster in all 9 "
        "points); bf16: 2.00 forward (faster in all 9 points) and 2.00 backward (faster in all 9 points). Single runs, "
        "here and below: only points with disjoint 95 % intervals count as faster or slower.",
        "triton, this project's kernel, in bf16 (batch × length = 16,384 tokens, heads × d = 2,048, causal), times the "
        "speed of others: sdpa-flash 1.25 forward (faster in all 6 points) and 1.25 backward (faster in all 6 points); "
        "flex 1.00 forward (unclear in all 6 points) and 1.00 backward (unclear in all 6 points).",
        "The highest arithmetic rate of attention (batch × length = 16,384 tokens, heads × d = 2,048, causal): forward "
        "400 TFLOP/s (flex, bf16, d = 64, length 1,024; 50 % of the matrix product's); backward 200 TFLOP/s (flex, "
        "bf16, d = 64, length 1,024; 25 % of the matrix product's).",
        "tf32 against fp32, time at length 16,384, over d: naive forward −25 %; naive backward −25 %; compiled forward "
        "−25 %; compiled backward −25 %. With disjoint intervals faster in 36 and slower in 0 of 36 points; single "
        "runs.",
        # 128 length² + 8 × 16 × 2 × 7 length is more than 80 × 2³⁰ from 25,898.4 on.
        "Naive attention ran out of memory nowhere; in closed form its backward pass does from length 25,899 on (bf16, "
        "d = 16, batch 8, no heads, not causal), on a card with 80.0 GiB.",
        "Of 240 attention results (a length and direction of a cell): 1 noisy.",
    ]


def test_slower_points_are_counted(tmp_path):
    theirs = made.cell("sdpa-flash", 16)
    theirs[0] |= made.timed(0.02)  # ours takes 0.04
    theirs[2] |= made.timed(0.64)  # and so does theirs
    told = beginning(findings(tmp_path, [*theirs, *made.cell("triton", 16)]), "triton, this")
    assert "sdpa-flash 0.500 to 1.25 forward (faster in 1, slower in 1 of 3 points) and 1.25 backward" in told
    assert told.endswith("Single runs, here and below: only points with disjoint 95 % intervals count as faster or "
                         "slower.")  # fmt: skip


def test_an_implementation_that_grows_otherwise_is_named(tmp_path):
    steep = [row | made.timed(row["length"] ** 2.5 / 1e6) for row in made.cell("flex", 64)]
    told = beginning(findings(tmp_path, [*made.cell(), *made.cell(d_head=64), *steep]), "Between")
    assert "over d; of all implementations 2.00 (naive, d = " in told and "to 2.50 (flex, d = 64, " in told


def test_one_implementation_on_a_cpu(tmp_path):
    rows = made.cpu(made.cell("sdpa-flash", precision="fp32", lengths=[128, 512], hardware="cpu"))
    assert findings(tmp_path, rows) == [
        "Between lengths 128 and 512 (fp32, batch 8, no heads, not causal) the time grows as the length to the power "
        "of 2.00 forward and 2.00 backward, over d.",
        "The highest arithmetic rate of attention (batch 8, no heads, not causal): forward 320 TFLOP/s (sdpa-flash, "
        "fp32, d = 16, length 128); backward 160 TFLOP/s (sdpa-flash, fp32, d = 16, length 128).",
    ]


def test_nothing_that_finished(tmp_path):
    rows = made.without_result(made.cell(), "unsupported", "none") + made.without_result(
        made.cell("flex"), "missing", ""
    )
    assert findings(tmp_path, rows) == [
        "No pass of attention finished.",
        "Of 12 attention results (a length and direction of a cell): 6 unsupported and 6 missing.",
    ]
    assert findings(tmp_path / "none", []) == ["No attention cell is in the tables."]


def test_each_machine_has_its_own_findings(tmp_path):
    told = findings(tmp_path, [*made.cell(), *made.cell(hardware="other")])
    assert sum(text.startswith("On gpu: Between lengths") for text in told) == 1
    assert sum(text.startswith("On other: Between lengths") for text in told) == 1


def out_of_memory() -> list[dict]:
    """Naive attention in the papers' shapes: the longest length is too long with 32 heads, not with 16."""
    rows = made.without_result(made.cell(d_head=64, **made.PAPERS), "oom", "CUDA out of memory", (16384,))
    return rows + made.cell(d_head=128, **made.PAPERS)


def test_the_smallest_that_ran_out_of_memory_in_closed_form(tmp_path):
    attention = attention_of(tmp_path, out_of_memory())
    table = attention_memory.accounting_table(attention, "gpu")
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
    assert attention_memory.told(attention, "gpu") == (
        "The smallest configuration of naive attention that ran out of memory (batch 1, 32 heads, length 16,384, "
        "d = 64, causal, bf16, forward) needs 96.8 GiB; the card has 80.0 GiB."
    )


def test_the_first_length_out_of_memory(tmp_path):
    flash = made.without_result(made.cell("sdpa-flash", 64, **made.PAPERS), "oom", "", (4096, 16384), ("backward",))
    (group,) = attention_of(tmp_path, [*out_of_memory(), *flash, *made.cell("flex", 64, **made.PAPERS)]).groups
    table = attention_memory.limits_table(group)
    assert texts(table, "implementation") == ["naive", "sdpa-flash"]
    assert texts(table, "d = 64") == ["16,384 / 16,384", "– / 4,096"] and texts(table, "d = 128") == ["–", "–"]
    (safe,) = attention_of(tmp_path / "safe", made.cell()).groups
    assert attention_memory.limits_table(safe) is None


def test_where_nothing_ran_out_the_largest_is_accounted_for(tmp_path):
    rows = made.cell(d_head=64)
    rows[-1] |= {"peak_bytes": 32 * GIB}
    table = attention_memory.accounting_table(attention_of(tmp_path, rows), "gpu")
    assert table.caption.startswith("Naive attention never ran out of memory: its largest configuration, in closed")
    # 8 × 16,384² numbers are 8 GiB in fp32, four of them at backward's peak, and 7 of 8 × 16,384 × 64 × 2 B = 16 MiB.
    assert texts(table, "backward")[-3:] == ["32.1", "32.0", "80.0"]
    assert texts(table, "backward", below=False)[0] == "0.0469"
    at = texts(table, "tensors").index("measured")
    assert table.rows[at][4].below == "+0.34 %"  # 7 × 16 MiB of 32 GiB
    none = attention_memory.accounting_table(attention_of(tmp_path / "cpu", made.cpu(made.cell())), "gpu")
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
