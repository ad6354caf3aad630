"""What the ladder study finds, against numbers worked out from synthetic_ladder."""

import pandas as pd
import pytest
import synthetic_ladder as made
from stepscope.report.data.ladder import ladders, recomputed
from stepscope.report.studies.ladder import section
from stepscope.report.studies.ladder.tables_checkpoint import checkpoint_table
from stepscope.report.studies.ladder.tables_rungs import gains_table, rungs_table
from stepscope.tables.reader import Tables

TOTAL = "what does the whole ladder bring"
AGAIN = "do runs at another time agree"
GREATEST = "which single change brings most"
SLOWER = "which change makes it slower"
RATE = "how near is it to the machine's peak"
WHOLE = "what does compiling the whole model bring"
CHECKPOINTING = "what does checkpointing save and cost"
RULE = "which k is best"
SAME = "do all rungs compute the same step"
LOST = "what is missing or to be read with care"
NONE = "what has no verdict"


@pytest.fixture
def tables_of(tmp_path):
    """Tables of these cells; of several calls in a test, each in a folder of its own."""
    folders = iter(range(9))
    return lambda cells: Tables(made.write(tmp_path / f"{next(folders)}", cells), ["ladder"])


@pytest.fixture
def told(tables_of):
    """Question -> finding, of one machine's cells."""
    return lambda cells: by_question(tables_of(cells))


def by_question(tables) -> dict:
    found = section.findings(tables)
    assert len({each.question for each in found}) == len(found)
    return {each.question: each for each in found}


def values(finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}


def column(table, name: str, below: bool = False) -> list[str]:
    at = [each.label for each in table.columns].index(name)
    return [row[at].below if below else row[at].text for row in table.rows]


def test_every_finding_of_a_ladder(told):
    found = told([*made.chain(), made.whole(), *made.checkpoints()])
    assert list(found) == [TOTAL, GREATEST, RATE, WHOLE, CHECKPOINTING, RULE, SAME]
    assert values(found[TOTAL]) == pytest.approx({"start_1": 40, "top_1": 4, "gain_1": 10})
    assert values(found[GREATEST]) == pytest.approx({"gain_1": 2}) and "CUDA graphs" in found[GREATEST].text
    # 12 (4 × 768² + 3 × 768 × 3,072) + 768 × 10,000 weights of products, 6 operations for each and each of 512
    # tokens, and 12 × 12 × 4 × 128² × 768 in attention: 3.787e11; in 4 ms, of 989.4 TFLOP/s.
    # Forward and backward take 3 of the 4 ms; fp32 has 9.47 of 66.9 TFLOP/s.
    rates = {"tflops": 94.7, "mfu": 0.0957, "both_tflops": 126.2, "both_mfu": 0.1276, "highest_mfu": 0.1415}
    assert values(found[RATE]) == pytest.approx(rates, rel=1e-3)
    assert values(found[WHOLE]) == pytest.approx({"gain_1": 10 / 9, "whole_1": 60, "blocks_1": 21.5})
    # The rung with SDPA has 4 GiB × 0.9³ = 2.916 GiB and 16 ms, k = 1 has 1.5 GiB and 20 ms.
    saving = {"k_1": 1, "peak_1": 1.5 * made.GIB, "base_1": 2.916 * made.GIB, "saved_1": 1.5 / 2.916 - 1}
    assert values(found[CHECKPOINTING]) == pytest.approx(saving | {"longer_1": 1.25})
    # b is 4 × 128 × 768 × 4 B. Per token a block saves, in numbers of 4 B: the norms' inputs, x / rms and 1 / rms
    # 4 × 768 + 2, 12 log-sum-exps; of 2 B: 10 × 768 + 4 × 3,072; and copies of 9,437,184 weights.
    tokens, copies = 512, 2 * (4 * 768**2 + 3 * 768 * 3072)
    numbers = 4 * (4 * 768 + 2 + 12) + 2 * (3 * 768 + 2 * 768 + 768 + 3 * 768 + 4 * 3072)
    ratio = (tokens * numbers + copies) / (tokens * 768 * 4)
    rule = values(found[RULE])
    assert rule["ratio"] == pytest.approx([ratio]) and rule["k"] == pytest.approx([(12 / ratio) ** 0.5])
    assert rule["root"] == pytest.approx([12**0.5]) and (rule["confirmed"], rule["tried"]) == (1, 1)
    assert values(found[SAME]) == {"checked": 11, "wrong": 0}


def test_numbers_name_the_cells_that_they_are_from(told):
    found = told([*made.chain(), *made.checkpoints()])
    first, last = "gpu/ladder/small/ctx128/fp32", found[TOTAL].numbers["top_1"].cells[0]
    assert last.endswith("attention=triton/compile=graphs/optimizer=fused")
    assert found[TOTAL].cells == (first, last)
    base = "gpu/ladder/small/ctx128/bf16/attention=sdpa"
    assert found[CHECKPOINTING].cells == (f"{base}/checkpoint=1", base)


def test_slower_changes_and_lost_cells_are_counted(told):
    cells = made.chain()
    cells[2] = made.cell("small", 128, "bf16", step=30.0)
    cells[6] = made.without_step(cells[6])
    cells[7] = made.without_step(cells[7], "unsupported", "no such optimizer", both=True)
    found = told(cells)
    assert values(found[SLOWER]) == pytest.approx({"gain_1": 25 / 30})
    assert values(found[LOST]) == {"oom": 1, "unsupported": 1, "partly": 1}


def test_a_change_within_the_intervals_is_not_called_slower(told):
    cells = [made.cell("small", 128, "fp32", step=40.0), made.cell("small", 128, "tf32", step=40.1)]
    assert SLOWER not in told(cells)


def test_no_single_run_is_called_slower_or_the_best(told):
    cells = [made.cell("small", 128, "fp32", step=40.0, processes=1), made.cell("small", 128, "tf32", step=60.0),
             made.cell("small", 128, "bf16", step=20.0)]  # fmt: skip
    found = told(cells)
    # tf32 over fp32 has a single process; bf16 over tf32 has three of both.
    assert SLOWER not in found and values(found[GREATEST]) == pytest.approx({"gain_1": 3})
    assert found[NONE].text == "Single process, or two that disagree: no verdict in 1 of 2 comparisons."


def test_all_changes_of_a_machine_are_judged_together(tables_of):
    # With a spread of 0.5 % of 14 degrees of freedom or fewer, 2.9 % is 2.1 standard errors above 2 %.
    rung = made.cell("small", 128, "tf32", step=41.18)
    same = [made.cell("small", 128 + at, name, step=40.0) for at in range(1, 13) for name in ("fp32", "tf32")]
    for others, word in (([], "slower"), (same, "unclear")):
        found = ladders(tables_of([made.cell("small", 128, "fp32", step=40.0), rung, *others]))
        assert found[0].over_before[rung.entry["cell"]].verdict == word


def test_a_noisy_rung_is_not_called_slower(told):
    cells = [made.cell("nano", 128, "fp32", step=10.0, hardware="cpu", scatter=0.2),
             made.cell("nano", 128, "bf16", step=11.0, hardware="cpu", scatter=0.2)]  # fmt: skip
    found = told(cells)
    assert SLOWER not in found and NONE not in found


def test_what_checkpointing_adds_is_told_where_the_step_is_surely_slower(tables_of):
    # A rung of 10 ms whose forward pass takes 1.05 × 6 / 4 ms, once within the scatter and once beyond it.
    for scatter, forwards in ((0.2, None), (0.001, 1.0 / 1.575)):
        cells = [made.cell("small", 128, "bf16", made.SDPA, step=10.0, scatter=scatter),
                 made.cell("small", 128, "bf16", made.SDPA | {"checkpoint": 1}, 11.0, scatter=scatter)]  # fmt: skip
        (one,) = recomputed(ladders(tables_of(cells)))
        added = one.added_over_forward(one.rows[0])
        assert added is None if forwards is None else added == pytest.approx(forwards)


def test_rates_are_those_of_the_ladders_rungs(told):
    text = told(made.chain())[RATE].text
    assert text.startswith("The highest arithmetic rate of 8 rungs: ")
    assert "the highest MFU of a rung's step: 14.2 % of the fp32 peak (small, context 128, fp32, naive)" in text


def test_a_wrong_rung_is_counted_and_named(told):
    cells = made.chain()
    cells[4].record["summary"]["ladder"]["loss"] = 12.0
    found = told(cells)[SAME]
    assert values(found) == {"checked": 7, "wrong": 1} and "Triton attention (small" in found.text


def test_a_rung_alone_agrees_with_nothing(told):
    assert SAME not in told(made.chain()[:1])


def test_several_changes_at_once_are_not_the_single_change_that_brings_most(tables_of):
    cells = made.chain()
    cells[4], cells[5] = made.unmeasured(cells[4]), made.unmeasured(cells[5])
    tables = tables_of(cells)
    # CUDA graphs are 16 / 5 times as fast as SDPA, with Triton attention and compilation in it; TF32 is 40 / 25.
    assert values(by_question(tables)[GREATEST]) == pytest.approx({"gain_1": 1.6})
    table = gains_table("gpu", ladders(tables))
    graphs = column(table, "change").index("CUDA graphs")
    assert column(table, "small 128")[graphs] == "× 3.20"
    assert column(table, "small 128", below=True)[graphs] == "[3.17, 3.23], 5.00, against SDPA"


def test_forward_and_backward_where_no_step_ran(told):
    found = told([made.without_step(cell) for cell in made.chain()[:2]])
    assert values(found[TOTAL]) == pytest.approx({"start_1": 36, "top_1": 21, "gain_1": 36 / 21})
    for question in (TOTAL, GREATEST):
        assert " of forward and backward" in found[question].text


def test_checkpointing_where_nothing_else_ran(told):
    base = made.without_step(made.cell("small", 128, "bf16", made.SDPA), both=True)
    found = told([base, *made.checkpoints()])[CHECKPOINTING]
    assert values(found) == pytest.approx({"k_1": 1, "peak_1": 1.5 * made.GIB})
    assert found.text.endswith("without checkpointing the step ran out of memory.")


def test_checkpointing_where_only_forward_and_backward_ran_without_it(tables_of):
    base = made.without_step(made.cell("small", 128, "bf16", made.SDPA, step=16.0))
    tables = tables_of([base, *made.checkpoints(every=(1,))])
    # Forward and backward: 16 ms instead of 12; its own forward pass takes 1.05 × 16 / 4 ms.
    found = by_question(tables)[CHECKPOINTING]
    assert values(found) == pytest.approx({"k_1": 1, "peak_1": 1.5 * made.GIB, "longer_1": 16 / 12})
    (one,) = recomputed(ladders(tables))
    table = checkpoint_table("gpu", [one])
    assert one.added_over_forward(one.rows[0]) == pytest.approx(4 / 4.2)
    assert table.rows[1][7].text == "× 1.33" and table.rows[1][7].below.startswith("f+b [1.3")
    assert "f+b: of forward" in table.notes[0]


def test_noisy_and_throttled_cells_are_counted(told):
    # Their pooled spread is 5 %: ± 2.8 of that over √3 is wider than the mark of 2 %.
    cells = [
        made.cell("small", 128, "bf16", made.SDPA, step=16.0, scatter=0.05, peak=2**32, throttle=["power cap"]),
        made.cell("small", 128, "bf16", made.SDPA | {"checkpoint": 1}, 20.0, peak=2**31, scatter=0.05),
    ]
    found = told(cells)
    assert values(found[LOST]) == {"noisy": 2, "throttled": 1}
    assert "times the time of a step (noisy)" in found[CHECKPOINTING].text


def test_the_closed_forms_k_is_confirmed_or_not(told, tables_of):
    cells = [*made.chain(), *made.checkpoints()]
    (one,) = recomputed(ladders(tables_of(cells)))
    assert one.rows[0]["predicted_best_checkpoint"] == 1 and one.is_confirmed is True
    cells[8].record["summary"]["modes"]["step"]["peak_allocated_bytes"] = 2 * 2**30  # k = 2 has 1.8 GiB
    found = told(cells)[RULE]
    assert (values(found)["confirmed"], values(found)["tried"]) == (0, 1) and "does not have" in found.text
    found = told([*cells, *made.chain("medium"), *made.checkpoints("medium")])[RULE]
    assert (values(found)["confirmed"], values(found)["tried"]) == (1, 2)
    assert "confirmed" not in values(told([*made.chain(), *made.checkpoints(every=(2,))])[RULE])


def test_no_cells_and_none_that_finished(tables_of, told):
    (found,) = section.findings(tables_of([]))
    assert found.text == "No ladder cell is in the tables."
    found = told([made.unmeasured(cell) for cell in made.chain()])
    assert list(found) == ["what does the ladder bring", LOST] and values(found[LOST]) == {"missing": 8}


def test_each_machine_has_its_own_findings(tables_of):
    found = section.findings(tables_of(made.chain() + made.chain(scale=2.0, hardware="other")))
    starts = {each.hardware: values(each)["start_1"] for each in found if each.question == TOTAL}
    assert starts == pytest.approx({"gpu": 40, "other": 80})


def test_an_unknown_gpu_has_no_mfu(told):
    cells = made.chain()
    for cell in cells:
        cell.record["provenance"]["hardware"] = made.GPU | {"gpu": "GPU of tomorrow"}
    found = told(cells)[RATE]
    assert values(found) == pytest.approx({"tflops": 94.7, "both_tflops": 126.2}, rel=1e-3)
    assert "the GPU's peak is in no table" in found.text


# Beside the timing study ----------------------------------------------------------------------------------------------


@pytest.fixture
def with_timing(tmp_path):
    """runs: (precision, ms of a step, ms of forward and backward) of the timing study at small, context 128."""

    def write(cells, runs) -> Tables:
        folder = made.write(tmp_path / "timed", cells)
        place = {"hardware": "gpu", "size": "small", "context": 128, "batch": 4, "mode": "step", "checkpoint": 0}
        rows = [place | {"cell": str(at), "precision": precision, "step_median_ms": step, "attention": "naive",
                         "compile": "none", "optimizer": "own", "forward_backward_median_ms": both,
                         "step_limited_by": "gpu", "repeat": 1 + [run[0] for run in runs[:at]].count(precision)}
                for at, (precision, step, both) in enumerate(runs)]  # fmt: skip
        rows.append(place | {"cell": "other", "precision": "fp32", "attention": "sdpa", "step_median_ms": 1.0})
        pd.DataFrame(rows).to_csv(folder / "timing.csv", index=False)
        return Tables(folder, ["ladder", "timing"])

    return write


def test_a_rung_that_took_another_time_in_the_timing_study_is_told(with_timing):
    cells = [made.cell("small", 128, "fp32", step=40.0), made.cell("small", 128, "bf16", step=8.0)]
    tables = with_timing(cells, [("fp32", 20.0, 18.0), ("fp32", 20.2, 18.0), ("bf16", 8.08, 4.0)])
    (ladder,) = ladders(tables)
    # 40 ms here, 20 ms there by its first run; bf16 8 and 8.08 ms, which is within 2 %.
    assert len(ladder.again) == 2
    found = by_question(tables)
    others = {"other_gain_1": 20 / 8, "other_start_1": 20}
    assert values(found[TOTAL]) == pytest.approx({"start_1": 40, "top_1": 8, "gain_1": 5} | others)
    assert found[TOTAL].numbers["other_start_1"].cells == ("0",)
    assert values(found[AGAIN]) == pytest.approx({"here_1": 40, "there_1": 20, "shared": 2, "differing": 1})


def test_gains_count_beyond_what_unchanged_cells_of_the_run_differ_by(with_timing):
    # Of the timing study's two runs of the same cell, one took 1.7 times as long: × 1.60 is no difference.
    tables = with_timing(made.chain()[:2], [("fp32", 40.0, 36.0), ("fp32", 68.0, 36.0)])
    (ladder,) = ladders(tables)
    (gain,) = ladder.over_before.values()
    assert (gain.verdict, gain.margin) == ("unclear", pytest.approx(1.7)) and GREATEST not in by_question(tables)
    assert column(rungs_table(ladder), "rung before")[1] == "(× 1.60)"


def test_runs_that_agree_are_not_told(with_timing):
    assert AGAIN not in by_question(with_timing(made.chain()[:2], [("fp32", 40.4, 36.0)]))


def test_forward_and_backward_of_both_studies_where_no_step_ran(with_timing):
    cells = [made.without_step(cell) for cell in made.chain()[:2]]
    (ladder,) = ladders(with_timing(cells, [("fp32", None, 18.0)]))
    ((cell, again),) = ladder.again.items()
    assert cell == cells[0].entry["cell"] and (again.phase, again.median, again.cell) == ("forward_backward", 18, "0")
    assert again.speed.ratio == pytest.approx(18 / 36)
