"""What the chapter on memory says, each number worked out by hand on small tables; both sides of each threshold.

By synthetic_memory, MiB: a step in fp32 peaks at 1,000, in bf16 at 800; it begins with 310, ends forward with 900 and
backward with 410; parameters 100, optimizer state 200, gradients 100, saved 440, of bf16 weights 40.
"""

from pathlib import Path

import page_one_maker
import pandas as pd
import pytest
import synthetic_ladder
import synthetic_memory
from chapter_checks import example
from stepscope.report.chapters import memory
from stepscope.report.chapters.memory import changes, course, fitting, parts, saving, tables
from stepscope.report.chapters.memory.cells import recorded
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.blocks import Picture, Table
from stepscope.report.kit.chapter import MOST_PICTURES, MOST_ROWS, MOST_TABLES, MOST_TAKEAWAY_WORDS, fitted, words
from stepscope.tables.reader import Tables
from synthetic_memory import MIB, cell

ROOT = Path(__file__).resolve().parents[3]


def machine(folder, *cells, timings=(), change=None) -> Machine:
    synthetic_memory.write(folder, list(cells) or [cell(), cell("bf16")], timings, change)
    return Machine(Tables(folder, page_one_maker.STUDIES))


def texts(findings) -> list[str]:
    return [each.text for each in findings]


def sized(table: str, where: dict, **values):
    """A change of a memory table: these columns (bytes in MiB where they end in `bytes`) of the rows at `where`."""

    def change(frames):
        frame = frames[table]
        here = pd.Series(True, index=frame.index)
        for name, value in where.items():
            here &= frame[name].eq(value)
        for name, value in values.items():
            frame[name] = frame[name].astype(object) if name in frame else None
            frame.loc[here.to_numpy(), name] = value * MIB if name.endswith("bytes") else value

    return change


def every(*changes_):
    def change(frames):
        for name, frame in frames.items():
            frames[name] = frame.reset_index(drop=True)
        for each in changes_:
            each(frames)

    return change


# The course of a step. ------------------------------------------------------------------------------------------------


def test_the_story_is_of_the_largest_step_in_bf16_that_fits(tmp_path):
    own = machine(tmp_path, cell(), cell("bf16"), cell("bf16", 256, held={"activations": 900}),
                  synthetic_memory.out_of_memory(cell("bf16", 512)))  # fmt: skip
    found = recorded(own)
    assert found.row["cell"] == "gpu/memory/s/ctx256/bf16"
    assert recorded(machine(tmp_path / "plain", cell())).row["precision"] == "fp32"


@pytest.mark.parametrize(("state", "named"), [(225.4, True), (225.6, False)])  # + 100 of 310: the mark is 5 %
def test_the_takeaway_names_what_is_there_before_the_step(tmp_path, state, named):
    change = every(sized("memory_accounting", {"item": "optimizer state"}, measured_bytes=state))
    said = texts(course.takeaway(recorded(machine(tmp_path, change=change))))
    what = ", parameters and optimizer state," if named else ""
    assert said == [
        f"A step of s at context 128 in bf16 peaks at 800 MiB; 310 of it{what} are there before it begins.",
        "Of all 2 peaks the closed form is farthest off in s at context 128 in bf16: −1.2 %.",  # 790 of 800
    ]


@pytest.mark.parametrize(("predicted", "good"), [(792.0, True), (791.9, False)])  # of 800: 1 %
def test_a_closed_form_within_a_hundredth_is_good(tmp_path, predicted, good):
    own = recorded(machine(tmp_path, cell("bf16", predicted_peak_bytes=predicted * MIB)))
    assert course.takeaway(own)[1].text.startswith("The closed form predicts the peak to within 1.0 %.") is good


def test_the_course_with_its_causes(tmp_path):
    # forward adds 900 − 310 = 590: 550 saved and 40 of weights; backward leaves 410 = 310 + 100
    change = every(
        sized("memory_accounting", {"item": "saved in all"}, measured_bytes=550),
        sized("memory_phases", {"phase": "backward"}, start_event=1000, end_event=2000, peak_event=1100),
        sized("memory_peak", {"category": "activations"}, bytes=500),
    )
    assert texts(course.course_findings(recorded(machine(tmp_path, change=change)))) == [
        "The forward pass adds 590 MiB: activations that backward needs (550) and 16-bit copies of weights (40.0).",
        "The peak lies at the start of backward (loss). There nearly all of that is alive.",
        "After backward 410 MiB remain: activations go, gradients of 100 come. "
        "The next step frees the gradients first.",
    ]


@pytest.mark.parametrize(("gradients", "told"), [(0, False), (1, True)])
def test_gradients_at_the_peak_are_told_only_if_they_are_there(tmp_path, gradients, told):
    change = every(
        sized("memory_accounting", {"item": "saved in all"}, measured_bytes=550),
        sized("memory_phases", {"phase": "backward"}, start_event=1000, end_event=2000, peak_event=1000),
        sized("memory_peak", {"category": "activations"}, bytes=500),
    )
    held = {"activations": 500, "cast weights": 50, "gradients": gradients}
    said = texts(course.course_findings(recorded(machine(tmp_path, cell("bf16", held=held), change=change))))[1]
    assert ("and first gradients" in said) is told


@pytest.mark.parametrize(("saved", "told"), [(520.6, True), (520.4, False)])  # + 40 of 590: the mark is 5 %
def test_what_forward_adds_is_named_where_it_adds_up(tmp_path, saved, told):
    change = every(sized("memory_accounting", {"item": "saved in all"}, measured_bytes=saved))
    said = texts(course.course_findings(recorded(machine(tmp_path, change=change))))[0]
    assert ("activations" in said) is told


@pytest.mark.parametrize(("event", "early"), [(1100, True), (1101, False)])  # the first tenth of 1,000 events
def test_the_start_of_backward_is_its_first_tenth(tmp_path, event, early):
    change = every(
        sized("memory_phases", {"phase": "backward"}, start_event=1000, end_event=2000, peak_event=event),
    )
    said = texts(course.course_findings(recorded(machine(tmp_path, change=change))))[1]
    assert said.startswith(f"The peak lies {'at the start of' if early else 'in'} backward (loss).")


@pytest.mark.parametrize(("activations", "alive"), [(490, True), (480, False)])  # + 50 of 590: the mark is 90 %
def test_nearly_all_is_alive_only_if_it_is(tmp_path, activations, alive):
    change = every(
        sized("memory_accounting", {"item": "saved in all"}, measured_bytes=550),
        sized("memory_phases", {"phase": "backward"}, start_event=1000, end_event=2000, peak_event=1000),
        sized("memory_peak", {"category": "activations"}, bytes=activations),
    )
    said = texts(course.course_findings(recorded(machine(tmp_path, change=change))))[1]
    assert ("nearly all" in said) is alive


@pytest.mark.parametrize(("activations", "gone"), [(7.9, True), (8.1, False)])  # of 800: 1 %
def test_a_peak_in_the_optimizer_is_told_with_its_cause(tmp_path, activations, gone):
    change = every(sized("memory_peak", {"category": "activations"}, bytes=activations))
    own = recorded(machine(tmp_path, cell("bf16", peak_place=("optimizer", "")), change=change))
    said = texts(course.course_findings(own))[1]
    assert said.startswith("The peak lies in the optimizer.") and ("activations are gone" in said) is gone


@pytest.mark.parametrize(("gradients", "told"), [(79.6, True), (79.4, False)])  # + 310 of 410: the mark is 5 %
def test_what_remains_is_explained_where_it_adds_up(tmp_path, gradients, told):
    change = every(sized("memory_accounting", {"item": "gradients"}, measured_bytes=gradients))
    said = texts(course.course_findings(recorded(machine(tmp_path, change=change))))[2]
    assert ("gradients of" in said) is told


def test_more_may_remain_than_the_forward_pass_left(tmp_path):
    change = every(sized("memory_phases", {"phase": "forward"}, end_bytes=400))
    said = texts(course.course_findings(recorded(machine(tmp_path, change=change))))[2]
    assert said.startswith("After backward 410 MiB remain, more than before it: ")


def test_the_optimizers_state_appears_in_the_first_step(tmp_path):
    assert texts(course.state_findings(recorded(machine(tmp_path)))) == [
        "It appears in the first step's optimizer: what stays allocated grows from 110 to 310 MiB, by 200. "
        "Two fp32 moments a parameter are predicted to take 200."
    ]


@pytest.mark.parametrize(("after", "as_predicted"), [(319.9, True), (320.1, False)])  # 209.9, 210.1
def test_a_state_of_another_size_is_told(tmp_path, after, as_predicted):
    own = recorded(machine(tmp_path, cell("bf16", baseline_first_step_bytes=after * MIB)))
    assert ("would be 200" in texts(course.state_findings(own))[0]) is not as_predicted


def test_a_second_step_that_does_not_fit(tmp_path):
    lost = synthetic_memory.out_of_memory(cell("bf16", 256))
    rows = [{"cell": lost["cell"], "device": 0, "step": step, "phase": phase, "start_bytes": 0, "end_bytes": 0,
             "peak_bytes": size * MIB} for step, phase, size in (
                 (0, "forward", 600), (0, "backward", 700), (1, "forward", 900))]  # fmt: skip

    def change(frames):
        phases = frames["memory_phases"]
        frames["memory_phases"] = pd.concat([phases[phases["cell"] != lost["cell"]], pd.DataFrame(rows)])

    said = texts(course.state_findings(recorded(machine(tmp_path, cell("bf16"), lost, change=change))))
    assert said[1] == (
        "So the first step of s at context 256 in bf16 fits, with 700 MiB; a later one runs out of memory at 900."
    )
    rows.pop()
    assert len(course.state_findings(recorded(machine(tmp_path / "first", cell("bf16"), lost, change=change)))) == 1


# What is alive, and what changes. -------------------------------------------------------------------------------------


def test_what_is_alive_at_the_peak_and_what_is_predicted_worst(tmp_path):
    # of 800: state 200, activations 350, parameters 100, workspace 100, weights 50; predicted 340 of 350
    assert texts(parts.part_findings(recorded(machine(tmp_path)))) == [
        "The peak of s at context 128 in bf16 consists of activations 44 %, optimizer state 25 %, parameters 12 %, "
        "workspace 12 % and cast weights 6.2 %.",
        "Of these, activations are predicted worst: −2.9 %.",
    ]


@pytest.mark.parametrize(("predicted", "told"), [(346.6, False), (346.4, True)])  # of 350: the mark is 1 %
def test_a_part_within_a_hundredth_needs_no_sentence(tmp_path, predicted, told):
    change = every(sized("memory_predicted", {"name": "activations"}, bytes=predicted))
    assert (len(parts.part_findings(recorded(machine(tmp_path, change=change)))) == 2) is told


def test_a_prediction_of_another_phase_has_no_parts(tmp_path):
    own = recorded(machine(tmp_path, cell("bf16", predicted_phase="optimizer")))
    assert parts.predicted_parts(own) == {} and len(parts.part_findings(own)) == 1
    assert [column.label for column in tables.parts_table(own).columns] == ["alive at the peak", "measured"]


def test_the_table_of_parts_has_predicted_measured_and_gap(tmp_path):
    found = tables.parts_table(recorded(machine(tmp_path)))
    lines = {row[0].text: [each.text for each in row[1:]] for row in found.rows}
    assert lines["activations"] == ["340.0", "350.0", "−2.9"] and lines["all"] == ["790.0", "800.0", "−1.2"]
    assert "gradients" not in lines


@pytest.mark.parametrize(
    ("activations", "needs", "kept"),  # of 350 in the step: the mark is a tenth
    [(34, "134 MiB, 17 %", ", moments or activations of earlier blocks"), (36, "136 MiB, 17 %", " or moments")],
)
def test_inference_stands_beside_the_step(tmp_path, activations, needs, kept):
    held = {"parameters": 100, "activations": activations}
    own = recorded(machine(tmp_path, cell("bf16"), cell("bf16", mode="inference", held=held)))
    assert texts(changes.change_findings(own)) == [
        f"Inference of s at context 128 needs {needs} of the step's. It keeps no gradients{kept}."
    ]


def test_mixed_precision_saves_activations_and_no_gradients(tmp_path):
    change = every(
        sized("memory_accounting", {"item": "saved in all", "precision": "bf16"}, measured_bytes=300),
        sized("memory_summary", {"precision": "bf16"}, peak_module="blocks.0/FFN"),
    )
    assert texts(changes.change_findings(recorded(machine(tmp_path, change=change)))) == [
        "bf16 keeps 300 MiB of activations for backward, fp32 440; bf16's copies of weights add 40.0.",
        "Parameters, moments and gradients stay in fp32: in both a step begins with 310 MiB and makes 100 of "
        "gradients.",
        "In bf16 the step's peak changes by −20 %, in bytes that tensors asked for (1 point).",
    ]


@pytest.mark.parametrize(("gradients", "same"), [(99.1, True), (98.9, False)])  # of 100: 1 %
def test_smaller_gradients_contradict_the_usual_story(tmp_path, gradients, same):
    change = every(sized("memory_accounting", {"item": "gradients", "precision": "bf16"}, measured_bytes=gradients))
    said = texts(changes.change_findings(recorded(machine(tmp_path, change=change))))[1]
    assert ("stay in fp32" in said) is same and ("instead of 100" in said) is not same


def test_changes_of_the_peak_are_those_of_the_table(tmp_path):
    # tensors asked for 1,000 and 800 MiB; the allocator's counter, which is rounded up to blocks, says otherwise
    cells = [cell(peak_allocated_bytes=1000 * MIB), cell("bf16", peak_allocated_bytes=1016 * MIB)]
    own = recorded(machine(tmp_path, *cells))
    assert (
        texts(changes.change_findings(own))[-1]
        == "In bf16 the step's peak changes by −20 %, in bytes that tensors asked for (1 point)."
    )
    assert [each.text for each in tables.peaks_table(own).rows[0]][-2:] == ["1,000", "800.0"]


def test_inference_needs_more_for_the_copies_of_weights(tmp_path):
    plain = cell(mode="inference", held={"parameters": 100})
    low = cell("bf16", mode="inference", held={"parameters": 100, "cast weights": 50})
    own = recorded(machine(tmp_path / "a", cell(), cell("bf16"), plain, low))
    assert texts(changes.change_findings(own))[-1] == (
        "In bf16 that of inference changes by +50 %. Autocast keeps 16-bit copies beside the fp32 weights."
    )
    less = cell("bf16", mode="inference", held={"parameters": 80, "cast weights": 10})
    own = recorded(machine(tmp_path / "b", cell(), cell("bf16"), plain, less))
    assert texts(changes.change_findings(own))[-1] == "In bf16 that of inference changes by −10 %."


# What does not fit, and the largest. ----------------------------------------------------------------------------------


def timed(precision, context, status) -> dict:
    return synthetic_memory.timing(cell(precision, context), step_status=status)


def test_steps_that_do_not_fit_are_named_with_their_precisions(tmp_path):
    rows = [timed("fp32", 128, "ok"), timed("bf16", 128, "ok"), timed("bf16", 256, "oom"), timed("fp32", 256, "oom")]
    own = machine(tmp_path, timings=rows)
    assert fitting.fitting_findings(own, recorded(own))[0].text == (
        "Of 4 timed steps 2 ran out of memory: s at context 256 (fp32, bf16)."
    )


def test_where_all_fit_that_is_said(tmp_path):
    own = machine(tmp_path / "a", timings=[timed("fp32", 128, "ok")])
    assert fitting.fitting_findings(own, recorded(own))[0].text == "All 1 steps that were timed fit."
    own = machine(tmp_path / "b")
    assert fitting.fitting_findings(own, recorded(own)) == ()


@pytest.mark.parametrize(("capacity", "wrong"), [(790, True), (789, False)])  # MiB, beside the 790 that are predicted
def test_what_was_predicted_of_a_step_that_does_not_fit(tmp_path, capacity, wrong):
    lost = synthetic_memory.out_of_memory(cell("bf16", 256, capacity_total_bytes=capacity * MIB))
    own = machine(tmp_path, cell("bf16"), lost)
    said = fitting.fitting_findings(own, recorded(own))[0].text
    assert said.startswith(f"s at context 256 in bf16 is predicted to need 790 MiB of {capacity}")
    assert said.endswith(": it should have fitted." if wrong else ", 340 of it for activations.")


def test_the_share_of_context_by_context_over_the_contexts(tmp_path):
    # 96 of 200 MiB; at 256 the feed-forward's 48 MiB less: 96 of 136 (its 16 of silu are left)
    change = every(
        sized("memory_saved", {"context": 256, "op": "mm", "part": "block"}, bytes=0),
        sized("memory_saved", {"context": 256, "op": "silu", "part": "block"}, bytes=0),
    )
    own = machine(tmp_path / "a", cell("bf16"), cell("bf16", 256), change=change)
    assert texts(fitting.fitting_findings(own, recorded(own))) == [
        "Twice the context makes context × context tensors four times as large: they are 48 % of the activations that "
        "a block of s saves at 128, 63 % at 256."  # 96 of 152
    ]
    same = machine(tmp_path / "b", cell("bf16"), cell("bf16", 256))
    assert fitting.fitting_findings(same, recorded(same)) == ()


def test_the_largest_activation_and_the_residual_stream(tmp_path):
    assert texts(fitting.largest_findings(recorded(machine(tmp_path)))) == [
        "The largest activation of s at context 128 takes 64.0 MiB (batch × heads × context × context × 4 B). It comes "
        "from attention, softmax; 1 such is alive at the peak.",
        "A tensor of the residual stream takes 128 KiB.",  # 4 × 128 × 64 × 4 B
    ]


@pytest.mark.parametrize(("weight", "larger"), [(64, False), (65, True)])
def test_larger_tensors_than_activations_are_told(tmp_path, weight, larger):
    change = every(sized("memory_largest", {"category": "parameters"}, bytes=weight))
    said = texts(fitting.largest_findings(recorded(machine(tmp_path, change=change))))[0]
    assert ("Larger are parameters: 65.0 MiB." in said) is larger


# What saves memory. ---------------------------------------------------------------------------------------------------


def test_recomputation_beside_the_step_without(tmp_path):
    # the rung with SDPA has 4 × 0.9³ = 2.916 GiB, with a checkpoint each block 1.5 GiB
    own = page_one_maker.write(tmp_path, rungs=[*synthetic_ladder.chain(), *synthetic_ladder.checkpoints()])
    said = texts(saving.saving_findings(Machine(own)))
    assert len(said) == 1
    assert said[0].startswith(
        "With a checkpoint at every block, the peak of small at 128 in bf16 falls from 2.92 to 1.50 GiB"
    )


def test_a_peak_that_checkpoints_do_not_lower_is_told(tmp_path):
    rungs = [*synthetic_ladder.chain(), *synthetic_ladder.checkpoints(peak=6 * 2**30, every=(1,))]
    said = texts(saving.saving_findings(Machine(page_one_maker.write(tmp_path, rungs=rungs))))
    assert "the peak of small at 128 in bf16 does not fall, but goes from 2.92 to 3.00 GiB" in said[0]


def test_a_step_that_fits_with_checkpoints_alone(tmp_path):
    chain = synthetic_ladder.chain()
    chain[3] = synthetic_ladder.without_step(chain[3])
    rungs = [*chain, *synthetic_ladder.checkpoints(every=(1,))]
    said = texts(saving.saving_findings(Machine(page_one_maker.write(tmp_path, rungs=rungs))))
    assert said[0].startswith("With a checkpoint at every block, small at 128 in bf16 fits, in 1.50 GiB")


# The chapter as a whole. ----------------------------------------------------------------------------------------------


def test_the_chapter_of_the_example_keeps_its_budgets():
    found = memory.chapter(example())
    assert found.takeaway[-1].text.startswith("With the libraries' recorded buffers the closed form predicts all 32")
    assert found.words <= 450 and fitted(found).parts == tuple(part for part in found.parts if part.findings)
    assert sum(words(each.text) for each in found.takeaway) <= MOST_TAKEAWAY_WORDS
    shown = [each for part in found.parts for each in part.shows]
    tables_shown = [each for each in shown if isinstance(each, Table)]
    assert sum(isinstance(each, Picture) for each in shown) <= MOST_PICTURES
    assert len(tables_shown) <= MOST_TABLES and all(len(each.rows) <= MOST_ROWS for each in tables_shown)
    sentences = [one for each in found.findings for one in each.text.split(". ")]
    assert max(map(words, sentences)) <= 30


def test_nothing_recorded_gives_no_chapter(tmp_path):
    assert memory.chapter(Machine(Tables(tmp_path, page_one_maker.STUDIES))) is None
    alone = machine(tmp_path, cell(mode="inference"))
    assert memory.chapter(alone) is None


def test_a_cpu_has_no_baselines_and_says_nothing_of_them(tmp_path):
    own = machine(tmp_path, synthetic_memory.cpu(cell()))
    found = fitted(memory.chapter(own))
    assert "When does the optimizer's state appear?" not in [part.question for part in found.parts]
    assert found.takeaway[0].text.startswith("A step of s at context 128 in fp32 peaks at 1,000 MiB")


def test_the_table_of_peaks_marks_what_ran_out_of_memory(tmp_path):
    own = recorded(machine(tmp_path, cell("bf16"), cell("bf16", mode="inference", held={"parameters": 100}),
                           synthetic_memory.out_of_memory(cell("bf16", 256))))  # fmt: skip
    first, second = tables.peaks_table(own).rows
    assert [each.text for each in first] == ["s", "128", "100.0", "800.0"]
    assert second[3].badges == ("oom",) and second[3].below == "790.0"


@pytest.mark.parametrize(("share", "text"), [(1.5064e-4, "0.016 %"), (1.5e-4, "0.015 %"), (9.91e-5, "0.010 %")])
def test_a_bound_is_rounded_up(share, text):
    assert course._at_most(share) == text
