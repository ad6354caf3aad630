"""What the memory section says in sentences: each against the truth of synthetic_memory."""

import pytest
import synthetic_memory as made
from stepscope.report.studies.memory import findings as memory_findings
from stepscope.report.studies.memory import sentences as memory_sentences
from test_memory_report_tables import memory_of

MIB = 2**20
INFERENCE = {"parameters": 100, "activations": 60}


def findings(folder, cells, **more) -> list[str]:
    return memory_findings.findings(memory_of(folder, cells, **more))


def beginning(sentences: list[str], words: str) -> list[str]:
    return [sentence for sentence in sentences if sentence.startswith(words)]


def grid() -> list[dict]:
    """Step and inference in two precisions; the longer context fits in bf16 alone."""
    cells = [made.cell(), made.cell("bf16"), made.out_of_memory(made.cell(context=1024))]
    cells.append(made.cell("bf16", context=1024, peak_place=("optimizer", ""), predicted_first_context_too_long=1500))
    place = {"mode": "inference", "peak_place": ("inference", "blocks.0/attention/softmax")}
    cells.append(made.cell(held=INFERENCE, **place))
    return [*cells, made.cell("bf16", held=INFERENCE | {"cast weights": 50}, **place)]


def test_all_findings_of_a_grid(tmp_path):
    assert findings(tmp_path, grid()) == [
        "Memory of a training step peaks from 819 MiB (s, context 128, bf16) to 1.00 GiB (s, context 128, fp32), "
        "in backward (loss) in 2 and in the optimizer in 1 of 3 cells.",
        "Memory of inference peaks from 164 MiB (s, context 128, fp32) to 215 MiB (s, context 128, bf16), in inference "
        "(attention, softmax) in all 2 cells.",
        "The largest peak that fits (s, context 128, fp32, step) consists of activations 60 %, optimizer state 20 %, "
        "parameters 10 % and workspace 9.6 %.",
        "bf16 against fp32, the peak of a training step: −20 % (s, context 128: activations −250 MiB, cast weights "
        "+50.0 MiB); only bf16 fits at s, context 1,024.",
        "bf16 against fp32, the peak of inference: +31 % (s, context 128: cast weights +50.0 MiB).",
        "Of what a block saves for backward, tensors of context × context make up 48 % (s, context 128, fp32) to 48 % "
        "(s, context 1,024, bf16); the largest there is one of 64.0 MiB (attention, softmax).",
        "The first context predicted not to fit, beside the grid: s, fp32, step: 700 (128 fits and 1,024 does not).",
        "The closed form predicts the peak within 1 % in 1 of 5 cells; it is farthest off by −6.2 % (s, context 128, "
        "fp32, inference: activations −10.0 MiB).",
        "Of 6 memory cells: 1 out of memory (s, context 1,024, fp32, step).",
    ]


def test_what_bf16_does_over_several_points(tmp_path):
    more = {"parameters": 100, "optimizer state": 200, "activations": 600, "cast weights": 200, "workspace": 100}
    same = {"parameters": 100, "optimizer state": 200, "activations": 605, "buffers": 4, "workspace": 96}
    cells = [made.cell(context=context) for context in (64, 128, 256)]
    cells += [made.cell("bf16", 64, held=more), made.cell("bf16", 128, held=same), made.cell("bf16", 256)]
    (sentence,) = beginning(findings(tmp_path, cells), "bf16")
    assert sentence == (
        "bf16 against fp32, the peak of a training step: −20 % (s, context 256: activations −250 MiB, cast weights "
        "+50.0 MiB) to +20 % (s, context 64: cast weights +200 MiB); less in 1, more in 1 and the same within 1 % in 1 "
        "of 3 points."
    )


def test_one_precision_has_no_comparison(tmp_path):
    assert not beginning(findings(tmp_path, [made.cell("bf16")]), "bf16")


def test_one_cell(tmp_path):
    sentences = findings(tmp_path, [made.cell(predicted_first_context_too_long=5000)])
    assert sentences[0] == "Memory of a training step peaks at 1.00 GiB (s, context 128, fp32), in backward (loss)."
    assert "The closed form predicts the peak of s, context 128, fp32, step with −1.0 % error." in sentences
    assert sentences[2].endswith(
        "make up 48 % (s, context 128, fp32); the largest is one of 64.0 MiB (attention, softmax)."
    )
    assert (
        "The shortest context predicted not to fit is 5,000 tokens (s, fp32, step); the grid has none so long."
        in sentences
    )


def test_a_block_without_tensors_of_context_squared(tmp_path):
    def fused(frames):
        frames["memory_saved"]["formula"] = "batch × context × d_model × 4 B"

    told = "Nothing of what a block saves for backward is of context × context."
    assert told in findings(tmp_path, [made.cell()], change=fused)


def test_a_prediction_to_the_byte(tmp_path):
    cells = [made.cell(context=context, predicted_peak_bytes=1000 * MIB + 8) for context in (128, 256)]
    told = "The closed form predicts the peak of all 2 cells to within 0.001 %."
    assert told in findings(tmp_path, cells)


@pytest.mark.parametrize(
    ("context", "status", "told"),
    [
        (800, "ok", "700 (800 fits, more fits than predicted)"),
        (512, "oom", "700 (512 does not, less fits than predicted)"),
    ],
)
def test_a_grid_that_contradicts_the_prediction(tmp_path, context, status, told):
    row = made.cell(context=context)
    cells = [row if status == "ok" else made.out_of_memory(row)]
    assert beginning(findings(tmp_path, cells), "The first context")[0].endswith(f"s, fp32, step: {told}.")


def test_each_machine_has_its_own_findings(tmp_path):
    sentences = findings(tmp_path, [made.cell(), made.cell(hardware="other", held={"parameters": 50})])
    assert sentences[0].startswith("On gpu: Memory of a training step peaks at 1.00 GiB (s, context 128, fp32), in")
    assert beginning(sentences, "On other: Memory")[0].split(", in")[0].endswith("51.2 MiB (s, context 128, fp32)")


def test_on_a_cpu(tmp_path):
    sentences = findings(tmp_path, [made.cpu(made.cell())])
    assert sentences[0] == "Memory of a training step peaks at 1,000 MiB (s, context 128, fp32), in backward (loss)."
    assert not beginning(sentences, "The first context") and not beginning(sentences, "The shortest")
    (opening, _) = memory_findings.opening(memory_of(tmp_path, [made.cpu(made.cell())]))
    assert opening == "torch.profiler, on the CPU, recorded 1 step of one cell after the warm-up."


def test_repeated_cells_count_once(tmp_path):
    again = made.cell(repeat=2, held={"parameters": 5000})
    assert findings(tmp_path, [made.cell(), again]) == findings(tmp_path / "alone", [made.cell()])


def test_cells_without_a_result(tmp_path):
    cells = [made.cell(status="failed", reason="exit code 3"), made.cell("bf16", status="missing", reason="not run")]
    sentences = findings(tmp_path, cells)
    told = "Of 2 memory cells: 1 failed (s, context 128, fp32, step) and 1 missing (s, context 128, bf16, step)."
    assert sentences == [told]
    assert findings(tmp_path / "none", []) == ["No memory cell is in the tables."]


def test_only_out_of_memory(tmp_path):
    sentences = findings(tmp_path, [made.out_of_memory(made.cell(context=1024))])
    assert sentences == [
        "The first context predicted not to fit, beside the grid: s, fp32, step: 700 (1,024 does not).",
        "Of 1 memory cell: 1 out of memory (s, context 1,024, fp32, step).",
    ]


def test_the_opening_counts_what_recorded(tmp_path):
    cells = [made.cell(), made.cell("bf16"), made.out_of_memory(made.cell(context=1024))]
    assert memory_findings.opening(memory_of(tmp_path, cells)) == [
        "The history of PyTorch's allocator recorded 1 step of 2 cells after the warm-up, and the warm-up itself of "
        "one cell, which ran out of memory in it.",
        "Every byte at every peak is of a known category.",
    ]


def test_bytes_without_a_category_are_said(tmp_path):
    def unknown(frames):
        frames["memory_summary"]["unknown_share_at_peak"] = 0.03

    memory = memory_of(tmp_path, [made.cell()], change=unknown)
    assert memory_findings.opening(memory)[1] == "Of the bytes at a peak at most 3.0 % are of no known category."
    assert "3.0 % are of no known category" in memory_sentences.cut_sentence(memory, memory.measured[0])


def sentences_of(folder, row, **more):
    memory = memory_of(folder, [row], **more)
    own = memory.recorded[0]
    return [getattr(memory_sentences, f"{name}_sentence")(memory, own) for name in ("peak", "course", "churn")] + [
        memory_sentences.facts(memory, own)
    ]


def test_sentences_of_a_step(tmp_path):
    assert sentences_of(tmp_path, made.cell()) == [
        "The peak, 1,000 MiB asked for (1.00 GiB allocated), lies in the backward pass (loss): activations 60 %, "
        "optimizer state 20 %, parameters 10 % and workspace 9.6 %.",
        "The step begins with 310 MiB and holds 900 MiB after forward, 410 MiB after backward and 310 MiB after the "
        "optimizer.",
        "A step allocates 2.93 GiB, 3.0 times its peak, in 1,500 allocations. At the peak 250 MiB of the 1.22 GiB "
        "reserved at that moment are not active (20 %).",
        "peak 1.00 GiB in backward; reserved 1.22 GiB; predicted −1.0 %",
    ]


def test_sentences_of_inference_with_several_steps(tmp_path):
    row = made.cell(mode="inference", held=INFERENCE, peak_place=("inference", "LM head"), steps=2)
    told = sentences_of(tmp_path, row)
    assert told[0] == (
        "The peak, 160 MiB asked for (164 MiB allocated), lies in inference (LM head): parameters 62 % and activations "
        "38 %."
    )
    assert told[2].startswith("A step of inference allocates 240 MiB, 1.5 times its peak, in 750 allocations.")


def test_sentences_of_what_ran_out_of_memory(tmp_path):
    told = sentences_of(tmp_path, made.out_of_memory(made.cell()))
    assert told[0] == (
        "Memory ran out in the warm-up, in the forward pass, at scripts/stepscope/model/transformer.py:225 forward: "
        "158 MiB more were asked for when 48.0 MiB of the device were free. The most that tensors held until then was "
        "1,000 MiB asked for (1.00 GiB allocated): activations 60 %, optimizer state 20 %, parameters 10 % and "
        "workspace 9.6 %."
    )
    assert told[1] == "" and "times its peak" not in told[2]
    assert told[3] == "out of memory at 1.00 GiB; reserved 1.22 GiB"


def as_recorded_on_a_cpu(frames):
    """Without an allocator the replay takes what is active for reserved."""
    summary = frames["memory_summary"]
    frames["memory_summary"] = summary.assign(reserved_at_peak_bytes=summary["peak_bytes"], unused_at_peak_bytes=0)


@pytest.mark.parametrize("reserved", [0, None])
def test_sentences_on_a_cpu(tmp_path, reserved):
    row = made.cpu(made.cell()) | {"peak_reserved_bytes": reserved}
    told = sentences_of(tmp_path, row, change=as_recorded_on_a_cpu)
    assert told[0].startswith("The peak, 1,000 MiB, lies in the backward pass (loss): ")
    assert told[2] == "A step allocates 2.93 GiB, 3.0 times its peak, in 1,500 allocations."
    assert told[3] == "peak 1,000 MiB in backward; predicted −1.0 %"


def test_a_history_without_its_beginning_is_said_aloud(tmp_path):
    def cut(frames):
        frames["memory_summary"]["cut"] = True

    memory = memory_of(tmp_path, [made.cell()], change=cut)
    assert "lacks its beginning" in memory_sentences.cut_sentence(memory, memory.measured[0])
    memory = memory_of(tmp_path / "whole", [made.cell()])
    assert memory_sentences.cut_sentence(memory, memory.measured[0]) == ""
