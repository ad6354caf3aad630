"""What the memory section's findings say: each number against the truth of synthetic_memory."""

import pytest
import synthetic_memory as made
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.memory import findings as memory_findings
from stepscope.report.studies.memory.findings_cell import facts, findings_of_cell
from test_memory_report_tables import memory_of

MIB = 2**20
INFERENCE = {"parameters": 100, "activations": 60}
PEAKS, CLOSED_FORM, SQUARED = (
    "how high does memory peak, and where",
    "how good is the closed form",
    "what grows with the context squared",
)
LIMITS, BF16, LOST = "which context does not fit", "what does bf16 save", "what has no result"


def findings(folder, cells, **more) -> dict[str, list[Finding]]:
    """Question -> its findings."""
    found: dict[str, list[Finding]] = {}
    for each in memory_findings.findings(memory_of(folder, cells, **more)):
        found.setdefault(each.question, []).append(each)
    return found


def values(finding: Finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}


def grid() -> list[dict]:
    """Step and inference in two precisions; the longer context fits in bf16 alone."""
    cells = [made.cell(), made.cell("bf16"), made.out_of_memory(made.cell(context=1024))]
    cells.append(made.cell("bf16", context=1024, peak_place=("optimizer", ""), predicted_first_context_too_long=1500))
    place = {"mode": "inference", "peak_place": ("inference", "blocks.0/attention/softmax")}
    cells.append(made.cell(held=INFERENCE, **place))
    return [*cells, made.cell("bf16", held=INFERENCE | {"cast weights": 50}, **place)]


@pytest.fixture
def of_grid(tmp_path):
    return findings(tmp_path, grid())


def test_where_the_peaks_of_each_mode_lie(of_grid):
    step, inference = map(values, of_grid[PEAKS])
    assert (step["least"], step["most"]) == (1.024 * 800 * MIB, 1.024 * 1000 * MIB)
    assert step["places"] == {"backward": {"loss": 2}, "optimizer": {"": 1}}
    assert (inference["least"], inference["most"]) == (1.024 * 160 * MIB, 1.024 * 210 * MIB)
    assert inference["places"] == {"inference": {"attention, softmax": 2}}
    assert "in backward (loss) in 2 and in the optimizer in 1 of 3 cells" in of_grid[PEAKS][0].text


def test_the_cells_that_a_number_comes_from(of_grid):
    numbers = of_grid[PEAKS][0].numbers
    assert numbers["most"].cells == ("gpu/memory/s/ctx128/fp32",) and len(numbers["places"].cells) == 3
    assert of_grid[BF16][1].cells == (
        "gpu/memory/s/ctx128/bf16/mode=inference",
        "gpu/memory/s/ctx128/fp32/mode=inference",
    )


def test_what_fills_the_largest_peak(of_grid):
    shares = {"activations": 0.6, "optimizer state": 0.2, "parameters": 0.1, "workspace": 0.096}
    assert values(of_grid["what fills the memory"][0])["shares"] == shares


def test_what_bf16_does_in_each_mode(of_grid):
    step, inference = of_grid[BF16]
    assert values(step) == {
        "least": pytest.approx(-0.2),
        "least_changes": {"activations": -250 * MIB, "cast weights": 50 * MIB},
    }
    assert step.text.endswith("; only bf16 fits at s, context 1,024.")
    assert values(inference) == {"least": pytest.approx(50 / 160), "least_changes": {"cast weights": 50 * MIB}}


def test_what_bf16_does_over_several_points(tmp_path):
    more = {"parameters": 100, "optimizer state": 200, "activations": 600, "cast weights": 200, "workspace": 100}
    same = {"parameters": 100, "optimizer state": 200, "activations": 605, "buffers": 4, "workspace": 96}
    cells = [made.cell(context=context) for context in (64, 128, 256)]
    cells += [made.cell("bf16", 64, held=more), made.cell("bf16", 128, held=same), made.cell("bf16", 256)]
    (found,) = findings(tmp_path, cells)[BF16]
    ends = {"least": pytest.approx(-0.2), "least_changes": {"activations": -250 * MIB, "cast weights": 50 * MIB}}
    ends |= {"most": pytest.approx(0.2), "most_changes": {"cast weights": 200 * MIB}}
    assert values(found) == ends | {"less": 1, "more": 1, "same": 1}


def test_categories_of_two_moments_are_not_compared(tmp_path):
    """In bf16 the peak lies before the gradients: that they are not there then saves nothing."""
    late = made.cell(held={"parameters": 400, "gradients": 400, "activations": 200})
    early = made.cell("bf16", held={"parameters": 400, "activations": 500}, peak_place=("forward", "LM head"))
    (found,) = findings(tmp_path, [late, early])[BF16]
    assert values(found) == {"least": pytest.approx(-0.1)} and "gradients" not in found.text
    assert "−10.0 % (s, context 128: the peak moves from backward (loss) to forward (LM head))" in found.text


def test_inference_keeps_nothing_from_part_to_part(tmp_path):
    one = made.cell(mode="inference", held=INFERENCE, peak_place=("inference", "blocks.0/FFN"))
    held = INFERENCE | {"cast weights": 50}
    other = made.cell("bf16", mode="inference", held=held, peak_place=("inference", "LM head"))
    (found,) = findings(tmp_path, [one, other])[BF16]
    assert values(found)["least_changes"] == {"cast weights": 50 * MIB} and "moves" not in found.text


def test_causes_are_not_looked_for_where_the_predicted_peak_is_another(tmp_path):
    row = made.cell(predicted_phase="optimizer", predicted_peak_bytes=800 * MIB)
    assert "causes" not in values(findings(tmp_path, [row])[CLOSED_FORM][0])


def test_peaks_say_of_which_sizes_they_are_and_what_else_was_timed(tmp_path):
    recorded = [made.cell(), made.cell(size="m", held={"parameters": 2000})]
    peaks = {"s": 1000, "m": 2048, "tiny": 10, "huge": 70 * 1024, "lost": 80 * 1024}
    timings = [
        made.timing(
            made.cell(size=size),
            step_peak_allocated_bytes=peak * MIB,
            step_status="oom" if size == "lost" else "ok",
        )
        for size, peak in peaks.items()
    ]
    found = findings(tmp_path, recorded, timings=timings)
    told = values(found[PEAKS][0])
    assert (told["timed_least"], told["timed_most"]) == (10 * MIB, 70 * 1024 * MIB)
    assert "(sizes m and s) peaks" in found[PEAKS][0].text and "70.0 GiB (huge," in found[PEAKS][0].text
    assert "The largest recorded peak that fits (m, context 128, fp32, step; of sizes m and s)" in (
        found["what fills the memory"][0].text
    )
    same = findings(tmp_path / "same", recorded[:1], timings=timings[:1])
    assert "timed_most" not in values(same[PEAKS][0])


def test_one_precision_has_no_comparison(tmp_path):
    assert BF16 not in findings(tmp_path, [made.cell("bf16")])


def test_tensors_of_context_squared(of_grid):
    assert values(of_grid[SQUARED][0]) == {"least": 0.48, "most": 0.48, "tensor": 64 * MIB}


def test_a_block_without_tensors_of_context_squared(tmp_path):
    def fused(frames):
        frames["memory_saved"]["formula"] = "batch × context × d_model × 4 B"

    (found,) = findings(tmp_path, [made.cell()], change=fused)[SQUARED]
    assert values(found)["most"] == 0 and found.text.startswith("Nothing")


def test_the_first_context_that_does_not_fit(of_grid):
    (found,) = of_grid[LIMITS]
    assert values(found) == {"predicted_0": (700, 700), "fits_0": 128, "fails_0": 1024}


@pytest.mark.parametrize(
    ("context", "status", "contradiction"),
    [(800, "ok", "more fits than predicted"), (512, "oom", "less fits than predicted")],
)
def test_a_grid_that_contradicts_the_prediction(tmp_path, context, status, contradiction):
    row = made.cell(context=context)
    (found,) = findings(tmp_path, [row if status == "ok" else made.out_of_memory(row)])[LIMITS]
    assert values(found)["fits_0" if status == "ok" else "fails_0"] == context and contradiction in found.text


def test_one_cell(tmp_path):
    found = findings(tmp_path, [made.cell(predicted_first_context_too_long=5000)])
    assert values(found[LIMITS][0]) == {"tokens": 5000}
    assert values(found[CLOSED_FORM][0]) == {"worst": -0.01, "allocated": pytest.approx(990 / 1024 - 1)}
    assert "(size s) peaks at 1.00 GiB (s, context 128, fp32), in backward (loss)." in found[PEAKS][0].text


def test_how_far_the_closed_form_is_off(of_grid):
    (found,) = of_grid[CLOSED_FORM]
    of_allocated = pytest.approx(150 / (1.024 * 160) - 1)  # the same cell, of what the allocator counts
    expected = {"near": 1, "worst": -10 / 160, "causes": {"activations": -10 * MIB}, "allocated": of_allocated}
    assert values(found) == expected
    assert found.numbers["worst"].cells == ("gpu/memory/s/ctx128/fp32/mode=inference",)
    assert "the bytes that tensors ask for at the peak" in found.text and "of the peak as allocated" in found.text


def test_a_prediction_to_the_byte(tmp_path):
    cells = [made.cell(context=context, predicted_peak_bytes=1000 * MIB + 8) for context in (128, 256)]
    (found,) = findings(tmp_path, cells)[CLOSED_FORM]
    assert values(found)["worst"] == pytest.approx(8 / (1000 * MIB))
    start = "The closed form predicts the bytes that tensors ask for at the peak of all 2 cells to within 0.001 %; "
    assert found.text.startswith(start) and values(found)["allocated"] == pytest.approx(1 / 1.024 - 1, abs=1e-6)


def test_each_machine_has_its_own_findings(tmp_path):
    found = findings(tmp_path, [made.cell(), made.cell(hardware="other", held={"parameters": 50})])
    assert {each.hardware: values(each)["least"] for each in found[PEAKS]} == {
        "gpu": 1.024 * 1000 * MIB,
        "other": 1.024 * 50 * MIB,
    }


def test_on_a_cpu(tmp_path):
    found = findings(tmp_path, [made.cpu(made.cell())])
    assert values(found[PEAKS][0])["least"] == 1000 * MIB and LIMITS not in found


def test_repeated_cells_count_once(tmp_path):
    again = made.cell(repeat=2, held={"parameters": 5000})
    several, one = findings(tmp_path, [made.cell(), again]), findings(tmp_path / "alone", [made.cell()])
    assert [each.text for own in several.values() for each in own] == [
        each.text for own in one.values() for each in own
    ]


def test_cells_without_a_result(tmp_path):
    cells = [made.cell(status="failed", reason="exit code 3"), made.cell("bf16", status="missing", reason="not run")]
    found = findings(tmp_path, cells)
    assert list(found) == [LOST] and values(found[LOST][0]) == {"failed": 1, "missing": 1}
    assert [len(own) for own in findings(tmp_path / "none", []).values()] == [1]


def test_only_out_of_memory(tmp_path):
    found = findings(tmp_path, [made.out_of_memory(made.cell(context=1024))])
    assert list(found) == [LIMITS, LOST] and values(found[LOST][0]) == {"oom": 1}
    assert values(found[LIMITS][0]) == {"predicted_0": (700, 700), "fails_0": 1024}


def test_the_opening_counts_what_recorded(tmp_path):
    cells = [made.cell(), made.cell("bf16"), made.out_of_memory(made.cell(context=1024))]
    recorded, unknown = memory_findings.opening(memory_of(tmp_path, cells))
    assert values(recorded) == {"whole_0": 2, "cold_0": 0, "early_0": 1} and values(unknown) == {"unknown": 0}


def test_bytes_without_a_category_are_said(tmp_path):
    def unknown(frames):
        frames["memory_summary"]["unknown_share_at_peak"] = 0.03

    memory = memory_of(tmp_path, [made.cell()], change=unknown)
    assert values(memory_findings.opening(memory)[1]) == {"unknown": 0.03}
    assert values(findings_of_cell(memory, memory.measured[0])[-1]) == {"unknown": 0.03}


def of_cell(folder, row, **more) -> dict[str, Finding]:
    """Question -> the finding on this cell; that of its line is `facts`."""
    memory = memory_of(folder, [row], **more)
    own = memory.recorded[0]
    return {each.question: each for each in findings_of_cell(memory, own)} | {"facts": facts(memory, own)}


def test_a_step(tmp_path):
    found = of_cell(tmp_path, made.cell())
    shares = {"activations": 0.6, "optimizer state": 0.2, "parameters": 0.1, "workspace": 0.096}
    peak = {"asked": 1000 * MIB, "allocated": 1024 * MIB, "shares": shares}
    assert values(found["where is the peak"]) == peak
    ends = {"start": 310 * MIB, "end_0": 900 * MIB, "end_1": 410 * MIB, "end_2": 310 * MIB}
    assert values(found["how does a step go"]) == ends
    churn = {"bytes": 3000 * MIB, "times": 3.0, "allocations": 1500}
    assert values(found["how much does a step allocate"]) == churn
    unused = {"unused": 250 * MIB, "reserved": 1250 * MIB, "share": 0.2}
    assert values(found["how much does the allocator hold in vain"]) == unused
    assert values(found["facts"]) == {
        "peak": 1024 * MIB,
        "reserved": 1250 * MIB,
        "error": pytest.approx(990 / 1024 - 1),
    }


def test_inference_with_several_steps(tmp_path):
    row = made.cell(mode="inference", held=INFERENCE, peak_place=("inference", "LM head"), steps=2)
    found = of_cell(tmp_path, row)
    assert values(found["where is the peak"])["shares"] == {"parameters": 0.625, "activations": 0.375}
    churn = found["how much does a step allocate"]
    assert values(churn) == {"bytes": 240 * MIB, "times": 1.5, "allocations": 750}
    assert churn.text.startswith("A step of inference")


def test_a_peak_between_two_steps(tmp_path):
    found = of_cell(tmp_path, made.cell(peak_place=("", "")))
    assert "lies in no phase, between two steps: " in found["where is the peak"].text


def test_what_ran_out_of_memory(tmp_path):
    found = of_cell(tmp_path, made.out_of_memory(made.cell()))
    numbers = values(found["where did memory run out"])
    assert (numbers["wanted"], numbers["free"], numbers["asked"]) == (158 * MIB, 48 * MIB, 1000 * MIB)
    told = "in the warm-up, in the forward pass, at scripts/stepscope/model/transformer.py:225 forward: "
    assert told in found["where did memory run out"].text
    assert not {"how does a step go", "how much does a step allocate"} & set(found)
    assert values(found["facts"]) == {"peak": 1024 * MIB, "reserved": 1250 * MIB}


def as_recorded_on_a_cpu(frames):
    """Without an allocator the replay takes what is active for reserved."""
    summary = frames["memory_summary"]
    frames["memory_summary"] = summary.assign(reserved_at_peak_bytes=summary["peak_bytes"], unused_at_peak_bytes=0)


@pytest.mark.parametrize("reserved", [0, None])
def test_a_step_on_a_cpu(tmp_path, reserved):
    row = made.cpu(made.cell()) | {"peak_reserved_bytes": reserved}
    found = of_cell(tmp_path, row, change=as_recorded_on_a_cpu)
    assert set(values(found["where is the peak"])) == {"asked", "shares"}
    assert "how much does the allocator hold in vain" not in found
    assert values(found["facts"]) == {"peak": 1000 * MIB, "error": -0.01}


def test_a_history_without_its_beginning_is_said_aloud(tmp_path):
    def cut(frames):
        frames["memory_summary"]["cut"] = True

    assert "lacks its beginning" in of_cell(tmp_path, made.cell(), change=cut)["what is not known"].text
    assert "what is not known" not in of_cell(tmp_path / "whole", made.cell())
