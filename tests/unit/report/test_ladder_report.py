"""The ladder section: sentences and tables against numbers worked out from synthetic_ladder, and the whole report."""

import re

import pandas as pd
import pytest
import synthetic_ladder as made
from pages import Page, markdown_page
from report_maker import ROOT
from stepscope.figures import theme
from stepscope.report.data.ladder import ladders, times
from stepscope.report.page import Request, report
from stepscope.report.studies.ladder import findings as ladder_findings
from stepscope.report.studies.ladder import section as section_module
from stepscope.report.studies.ladder.beside import agreement_table, compiling_table
from stepscope.report.studies.ladder.checkpoint import checkpoint_table, in_forwards, recomputed, rule_table
from stepscope.report.studies.ladder.tables import gains_table, rungs_table
from stepscope.tables.reader import Tables

BAD = "<script>alert(1)</script> a|b `tick` \"q\" 'r' [x](y) *z* </details>"
FIGURES = ("ladder_steps", "ladder_rates", "ladder_checkpoint")


def tables_of(folder, cells) -> Tables:
    return Tables(made.write(folder / "tables", cells), ["ladder"])


def all_cells(size="small", context=128, scale=1.0, hardware="gpu"):
    place = (size, context, scale, hardware)
    return [*made.chain(*place), made.whole(*place), *made.checkpoints(*place)]


def pages(folder, cells):
    """(Markdown, HTML) of a report with these cells; every figure is an empty one."""
    tables = made.write(folder / "tables", cells)
    for name in FIGURES:
        theme.write(lambda _tables: theme.empty("not drawn in this test"), None, folder / "figures", name)
    return report(Request(["ladder"], tables, folder / "figures", ROOT / "report", "Title", "snakemake", False))


def section(text: str) -> str:
    return text[text.index("## The ladder: one change at a time") :]


def column(table, name: str, group: str = "", below: bool = False) -> list[str]:
    at = next(i for i, each in enumerate(table.columns) if each.label == name and group in each.group)
    return [row[at].below if below else row[at].text for row in table.rows]


# Sentences ------------------------------------------------------------------------------------------------------------


def test_all_findings_of_a_ladder(tmp_path):
    told = ladder_findings.findings(tables_of(tmp_path, all_cells()))
    assert told == [
        "The ladder, from its first to its fastest rung: small, context 128: 40.0 to 4.00 ms, × 10.0 (fp32, naive to "
        "fused AdamW).",
        "The single change that brings most: CUDA graphs, × 2.00 (small, context 128).",
        # 12 (4 × 768² + 3 × 768 × 3,072) + 768 × 10,000 weights of products, 6 operations for each and each of 512
        # tokens, and 12 × 12 × 4 × 128² × 768 in attention: 3.787e11; in 4 ms, of 989.4 TFLOP/s.
        # Forward and backward take 3 of the 4 ms.
        "The highest arithmetic rate: 94.7 TFLOP/s and an MFU of 9.57 % (small, context 128, fused AdamW); forward and "
        "backward alone: 126 TFLOP/s, an MFU of 12.8 %; the highest MFU, 14.2 % of the fp32 peak: small, context 128, "
        "fp32, naive.",
        "The whole model compiled instead of its blocks, times the speed: × 1.11, 60.0 s of compiling instead of 21.5 "
        "s (small, context 128).",
        # The rung with SDPA has 4 GiB × 0.9³ = 2.916 GiB and 16 ms, k = 1 has 1.5 GiB and 20 ms.
        "Checkpointing every k blocks: small, context 128, bf16, attention=sdpa: k = 1 takes the peak from 2.92 GiB to "
        "1.50 GiB (−49 %) for 1.25 times the time of a step.",
        # b is 4 × 128 × 768 × 4 B. Per token a block saves, in numbers of 4 B: the norms' inputs, x / rms and 1 / rms
        # 4 × 768 + 2, 12 log-sum-exps; of 2 B: 10 × 768 + 4 × 3,072; and copies of 9,437,184 weights.
        f"A block saves {made_ratio():.3g} times what is kept at a boundary, so the rule √(n b / a) gives a best k of "
        f"{(12 / made_ratio()) ** 0.5:.2g}, where √n, for equal a and b, would be 3.5; the k that the closed form "
        "chooses has the lowest peak measured.",
        "Loss and gradients agree with the first rung's, within the precision's tolerance, in all 11 other cells.",
    ]


def made_ratio() -> float:
    tokens, copies = 512, 2 * (4 * 768**2 + 3 * 768 * 3072)
    numbers = 4 * (4 * 768 + 2 + 12) + 2 * (3 * 768 + 2 * 768 + 768 + 3 * 768 + 4 * 3072)
    return (tokens * numbers + copies) / (tokens * 768 * 4)


def test_slower_changes_and_lost_cells_are_named(tmp_path):
    cells = made.chain()
    cells[2] = made.cell("small", 128, "bf16", step=30.0)
    cells[6] = made.without_step(cells[6])
    cells[7] = made.without_step(cells[7], "unsupported", "no such optimizer", both=True)
    told = ladder_findings.findings(tables_of(tmp_path, cells))
    (slower,) = [each for each in told if "slower" in each]
    assert slower == (
        "A change that makes it slower (single runs, disjoint 95 % intervals): bf16, × 0.83 (small, context 128)."
    )
    assert told[-1] == "Of 8 ladder cells: 1 out of memory (1 of them only in the step) and 1 unsupported."


def test_a_change_within_the_intervals_is_not_called_slower(tmp_path):
    cells = [made.cell("small", 128, "fp32", step=40.0), made.cell("small", 128, "tf32", step=40.1)]
    assert not any("slower" in each for each in ladder_findings.findings(tables_of(tmp_path, cells)))


def test_a_wrong_rung_is_told(tmp_path):
    cells = made.chain()
    cells[4].record["summary"]["ladder"]["loss"] = 12.0
    told = ladder_findings.findings(tables_of(tmp_path, cells))
    assert told[-1] == (
        "Loss or gradients differ from the first rung's beyond the tolerance in 1 of 7 other cells, which is no rung: "
        "Triton attention (small, context 128)."
    )


def test_a_rung_alone_agrees_with_nothing(tmp_path):
    told = ladder_findings.findings(tables_of(tmp_path, made.chain()[:1]))
    assert not any("agree" in each for each in told)


def test_several_changes_at_once_are_not_the_single_change_that_brings_most(tmp_path):
    cells = made.chain()
    cells[4], cells[5] = made.unmeasured(cells[4]), made.unmeasured(cells[5])
    tables = tables_of(tmp_path, cells)
    # CUDA graphs are 16 / 5 times as fast as SDPA, with Triton attention and compilation in it; TF32 is 40 / 25.
    assert "The single change that brings most: TF32, × 1.60 (small, context 128)." in ladder_findings.findings(tables)
    table = gains_table("gpu", ladders(tables))
    graphs = column(table, "change").index("CUDA graphs")
    assert column(table, "small 128")[graphs] == "× 3.20"
    assert column(table, "small 128", below=True)[graphs] == "5.00, against SDPA"


def test_forward_and_backward_where_no_step_ran(tmp_path):
    cells = [made.without_step(cell) for cell in made.chain()[:2]]
    told = ladder_findings.findings(tables_of(tmp_path, cells))
    assert told[0] == (
        "The ladder, from its first to its fastest rung: small, context 128: 36.0 to 21.0 ms of forward and backward, "
        "× 1.71 (fp32, naive to TF32)."
    )
    assert "TF32, × 1.71 of forward and backward (small" in told[1]


def test_checkpointing_where_nothing_else_ran(tmp_path):
    base = made.without_step(made.cell("small", 128, "bf16", made.SDPA), both=True)
    told = ladder_findings.findings(tables_of(tmp_path, [base, *made.checkpoints()]))
    (sentence,) = [each for each in told if each.startswith("Checkpointing")]
    assert sentence.endswith("k = 1 has the lowest peak, 1.50 GiB; without checkpointing the step ran out of memory.")


def test_no_cells_and_none_that_finished(tmp_path):
    assert ladder_findings.findings(tables_of(tmp_path, [])) == ["No ladder cell is in the tables."]
    lost = [made.unmeasured(cell) for cell in made.chain()]
    assert ladder_findings.findings(tables_of(tmp_path / "lost", lost)) == [
        "No rung of the ladder finished.", "Of 8 ladder cells: 8 missing."
    ]  # fmt: skip


def test_each_machine_has_its_own_findings(tmp_path):
    told = ladder_findings.findings(tables_of(tmp_path, made.chain() + made.chain(hardware="other")))
    assert sum(each.startswith("On gpu: The ladder,") for each in told) == 1
    assert sum(each.startswith("On other: The ladder,") for each in told) == 1


def test_an_unknown_gpu(tmp_path):
    cells = made.chain()
    for cell in cells:
        cell.record["provenance"]["hardware"] = made.GPU | {"gpu": "GPU of tomorrow"}
    (rate,) = [each for each in ladder_findings.findings(tables_of(tmp_path, cells)) if "rate" in each]
    assert rate.endswith(
        "fused AdamW); the GPU's peak is in no table, so no MFU; forward and backward alone: 126 TFLOP/s."
    )


def with_timing(folder, cells, runs) -> Tables:
    """runs: (precision, ms of a step, ms of forward and backward) of the timing study at small, context 128."""
    tables = made.write(folder / "tables", cells)
    place = {"hardware": "gpu", "size": "small", "context": 128, "batch": 4, "mode": "step", "checkpoint": 0}
    rows = [place | {"cell": str(at), "precision": precision, "step_median_ms": step,
                     "forward_backward_median_ms": both}
            for at, (precision, step, both) in enumerate(runs)]  # fmt: skip
    rows.append(place | {"cell": "other", "precision": "fp32", "attention": "sdpa", "step_median_ms": 1.0})
    pd.DataFrame(rows).to_csv(tables / "timing.csv", index=False)
    return Tables(tables, ["ladder", "timing"])


def test_noisy_gains_count_where_they_are_larger_than_what_runs_differ_by(tmp_path):
    cells = [made.cell("small", 128, "fp32", step=40.0, half=0.02),
             made.cell("small", 128, "tf32", step=25.0, half=0.02),
             made.cell("small", 128, "bf16", step=8.0)]  # fmt: skip
    tables = with_timing(tmp_path, cells, [("fp32", 20.0, 18.0), ("fp32", 20.4, 18.0), ("bf16", 8.08, 4.0)])
    (ladder,) = ladders(tables)
    # 40 ms here, 20.2 ms there; bf16 8 and 8.08 ms. TF32 is × 1.60, bf16 × 3.13 over it.
    assert ladder.doubt == pytest.approx(40 / 20.2) and len(ladder.again) == 2
    assert column(rungs_table(ladder), "rung before") == ["–", "(× 1.60)", "× 3.12"]
    note = (
        "The timing study's runs of the same cells: fp32, naive, 20.2 ms (here × 1.98) and bf16, 8.08 ms (here × 0.99)."
    )
    assert note in rungs_table(ladder).notes
    told = ladder_findings.findings(tables)
    assert told[0].endswith("40.0 to 8.00 ms, × 5.00, or × 2.52 from the timing study's 20.2 ms (fp32, naive to bf16).")
    assert told[1] == (
        "Of 2 rungs that the timing study measured too, 1 differs in time by more than 5 %: small, context 128 (fp32, "
        "naive: 40.0 instead of 20.2 ms). Gains of noisy rungs, and over them, count as faster or slower only where "
        "they are larger."
    )
    assert told[2] == "The single change that brings most: bf16, × 3.12 (small, context 128)."


def test_quiet_gains_count_whatever_other_runs_took(tmp_path):
    tables = with_timing(tmp_path, made.chain()[:2], [("fp32", 400.0, 360.0)])
    assert column(rungs_table(ladders(tables)[0]), "rung before") == ["–", "× 1.60"]
    assert ladder_findings.findings(tables)[1].startswith("The one rung that the timing study measured too differs in")


def test_runs_that_agree_are_not_told(tmp_path):
    tables = with_timing(tmp_path, made.chain()[:2], [("fp32", 40.4, 36.0)])
    assert not any("timing study" in each for each in ladder_findings.findings(tables))


def test_forward_and_backward_of_both_studies_where_no_step_ran(tmp_path):
    cells = [made.without_step(cell) for cell in made.chain()[:2]]
    (ladder,) = ladders(with_timing(tmp_path, cells, [("fp32", None, 18.0)]))
    assert ladder.again == {cells[0].entry["cell"]: ("forward_backward", 18.0)} and ladder.doubt == pytest.approx(2)


def test_checkpointing_where_only_forward_and_backward_ran_without_it(tmp_path):
    base = made.without_step(made.cell("small", 128, "bf16", made.SDPA, step=16.0))
    tables = tables_of(tmp_path, [base, *made.checkpoints(every=(1,))])
    (sentence,) = [each for each in ladder_findings.findings(tables) if each.startswith("Checkpointing")]
    # Forward and backward: 16 ms instead of 12; its own forward pass takes 1.05 × 16 / 4 ms.
    assert sentence.endswith(
        "k = 1 has the lowest peak, 1.50 GiB, for 1.33 times the time of forward and backward; without checkpointing "
        "the step ran out of memory."
    )
    (one,) = recomputed(ladders(tables))
    table = checkpoint_table("gpu", [one])
    assert in_forwards(one.rows[0], one.base) == pytest.approx(4 / 4.2)
    assert (table.rows[1][7].text, table.rows[1][7].below) == ("× 1.33", "f+b") and "f+b: of forward" in table.notes[0]


def test_noisy_and_throttled_cells_are_told(tmp_path):
    cells = [*made.chain()[2:4], *made.checkpoints(every=(1,))]
    cells[1] = made.cell("small", 128, "bf16", made.SDPA, step=16.0, half=0.05, peak=2**32, throttle=["power cap"])
    told = ladder_findings.findings(tables_of(tmp_path, cells))
    assert told[-1] == "Of 3 ladder cells: 1 noisy and 1 throttled."
    assert any(each.endswith("for 1.25 times the time of a step (noisy).") for each in told)


# Tables ---------------------------------------------------------------------------------------------------------------


def test_rungs_in_the_plans_order(tmp_path):
    (ladder,) = ladders(tables_of(tmp_path, all_cells()))
    table = rungs_table(ladder)
    assert column(table, "rung")[::4] == ["fp32, naive", "Triton attention", "whole model compiled"]
    assert column(table, "step")[:2] == ["40.0", "25.0"] and column(table, "step", below=True)[0] == "[39.8, 40.2]"
    assert column(table, "rung before")[:3] == ["–", "× 1.60", "× 1.25"]
    assert column(table, "rung before", below=True)[-1] == "against blocks compiled"
    assert column(table, "first rung")[-2:] == ["× 10.0", "× 4.44"]
    assert column(table, "peak memory")[0] == "4.00" and column(table, "launches")[7] == "14"
    assert column(table, "compiling")[4:6] == ["–", "21.5"] and column(table, "MFU")[-2] == "9.57"
    assert "forward+backward" not in [each.label for each in table.columns]


def test_what_has_no_step_is_visible(tmp_path):
    cells = made.chain()
    cells[0] = made.without_step(cells[0])
    cells[1] = made.without_step(cells[1], "unsupported", "no TF32 here", both=True)
    cells[2] = made.unmeasured(cells[2], "failed", "it broke")
    (ladder,) = ladders(tables_of(tmp_path, cells))
    table = rungs_table(ladder)
    at = [each.label for each in table.columns].index("step")
    assert [row[at].badges for row in table.rows[:3]] == [("oom",), ("unsupported",), ("failed",)]
    assert column(table, "forward+backward")[0] == "36.0"
    # SDPA against fp32, naive: forward and backward, 12 of 36 ms.
    assert (column(table, "rung before")[3], column(table, "rung before", below=True)[3]) == (
        "× 3.00", "f+b against fp32, naive",
    )  # fmt: skip
    assert "n/a (TF32): no TF32 here." in table.notes and "failed (bf16): it broke." in table.notes


def test_gains_side_by_side(tmp_path):
    cells = all_cells() + made.chain("medium", 512, 2.0)
    cells[2] = made.cell("small", 128, "bf16", step=24.9, half=0.1)
    found = ladders(tables_of(tmp_path, cells))
    table = gains_table("gpu", found)
    assert [each.label for each in table.columns] == ["change", "small 128", "medium 512"]
    assert column(table, "small 128")[:3] == ["40.0", "× 1.60", "(× 1.00)"]
    assert column(table, "medium 512")[-2:] == ["–", "× 10.0"] and column(table, "change")[-1].startswith("fastest")
    assert gains_table("gpu", ladders(tables_of(tmp_path / "one", [made.unmeasured(made.whole())]))) is None


def test_only_the_first_rung_with_a_time_is_called_the_first(tmp_path):
    cells = [*made.chain(), made.whole()]
    cells[0], cells[5] = made.unmeasured(cells[0]), made.unmeasured(cells[5])
    table = gains_table("gpu", ladders(tables_of(tmp_path, cells)))
    first = [name for name, below in zip(column(table, "change"), column(table, "small 128", below=True), strict=True)
             if below == "first"]  # fmt: skip
    assert first == ["TF32"]


def test_compiled_as_a_whole(tmp_path):
    table = compiling_table("gpu", ladders(tables_of(tmp_path, all_cells())))
    assert [cell.text for cell in table.rows[0]][2:6] == ["21.5", "60.0", "10.00", "9.00"]
    assert table.rows[0][-1].text == "× 1.11"
    assert compiling_table("gpu", ladders(tables_of(tmp_path / "none", made.chain()))) is None


def test_agreement_of_every_cell(tmp_path):
    cells = all_cells()
    cells[3].record["summary"]["ladder"]["gradient_norm"] = 5.0
    table = agreement_table("gpu", ladders(tables_of(tmp_path, cells)))
    assert column(table, "agrees") == ["yes"] * 3 + ["no"] + ["yes"] * 8
    assert column(table, "gradients")[:3] == ["0", "1.0e−03", "1.0e−02"] and column(table, "tolerance")[0] == "1.0e−04"


def test_checkpoints_by_k_and_what_they_cost(tmp_path):
    (one,) = recomputed(ladders(tables_of(tmp_path, all_cells())))
    table = checkpoint_table("gpu", [one])
    assert column(table, "k") == ["none", "1", "2", "4"] and column(table, "k", below=True)[1] == "best"
    # 3 GiB × (0.4 + 0.1 k) against 2.916 GiB.
    assert column(table, "± %") == ["–", "−49", "−38", "−18"]
    assert column(table, "step") == ["16.0", "20.0", "20.0", "20.0"]
    # 4 ms more; the phased forward pass of the rung takes 1.05 × 12 / 4 ms.
    assert in_forwards(one.rows[0], one.base) == pytest.approx(4 / 3.15)
    (rule,) = rule_table("gpu", [one]).rows
    assert [cell.text for cell in rule][1:3] == ["12", "1.50 MiB"] and rule[6].text == "3.46"
    assert (rule[-1].text, rule[-1].below) == ("1", "of 1, 2 and 4")


def test_a_k_without_a_result_was_not_tried(tmp_path):
    cells = [*made.chain(), *made.checkpoints()]
    cells[-1] = made.unmeasured(cells[-1])
    (rule,) = rule_table("gpu", recomputed(ladders(tables_of(tmp_path, cells)))).rows
    assert (rule[-1].text, rule[-1].below) == ("1", "of 1 and 2")


def test_the_best_k_is_the_fastest_of_those_alike(tmp_path):
    cells = made.checkpoints(every=(1,)) + made.checkpoints(scale=0.9, every=(2,))
    cells[1].record["summary"]["modes"]["step"]["peak_allocated_bytes"] = 1.505 * 2**30  # 1.5 GiB is k = 1
    (one,) = recomputed(ladders(tables_of(tmp_path, [*made.chain(), *cells])))
    assert one.best["checkpoint"] == "2"


def test_the_closed_forms_k_is_confirmed_or_not(tmp_path):
    cells = [*made.chain(), *made.checkpoints()]
    (one,) = recomputed(ladders(tables_of(tmp_path, cells)))
    assert one.rows[0]["predicted_best_checkpoint"] == 1 and one.is_confirmed is True
    cells[8].record["summary"]["modes"]["step"]["peak_allocated_bytes"] = 2 * 2**30  # k = 2 has 1.8 GiB
    (one,) = recomputed(ladders(tables_of(tmp_path / "higher", cells)))
    assert one.is_confirmed is False
    (told,) = [text for text in ladder_findings.findings(tables_of(tmp_path / "told", cells)) if "boundary" in text]
    assert told.endswith("the k that the closed form chooses does not have the lowest peak measured.")
    both = [*cells, *made.chain("medium"), *made.checkpoints("medium")]
    (told,) = [text for text in ladder_findings.findings(tables_of(tmp_path / "both", both)) if "boundary" in text]
    assert told.endswith("the k that the closed form chooses has the lowest peak measured in 1 of 2 cases.")
    (one,) = recomputed(ladders(tables_of(tmp_path / "untried", [*made.chain(), *made.checkpoints(every=(2,))])))
    assert one.is_confirmed is None


def test_a_process_is_not_compared_with_tensors(tmp_path):
    cells = [made.cell("nano", 64, "fp32", hardware="cpu", peak=2**29)]
    cells += [made.cell("nano", 64, "fp32", {"checkpoint": k}, hardware="cpu", peak=2**29 - k) for k in (1, 2)]
    found = recomputed(ladders(tables_of(tmp_path, cells)))
    table = checkpoint_table("cpu", found)
    assert column(table, "off by %") == ["–"] * 3 and column(table, "measured")[0] == "512 MiB"
    assert any("the whole process's memory" in note for note in table.notes) and found[0].is_confirmed is None


def test_compiled_cells_have_their_note(tmp_path):
    cells = [made.cell("small", 128, "bf16", made.BLOCK | {"checkpoint": 2}, peak=2**30)]
    table = checkpoint_table("gpu", recomputed(ladders(tables_of(tmp_path, cells))))
    assert any("compiled blocks keep what the compiler chooses" in note for note in table.notes)


@pytest.mark.parametrize("ratio, text", [(0.632, "× 0.63"), (1.0, "× 1.00"), (12.34, "× 12.3"), (None, "")])
def test_ratios_as_text(ratio, text):
    assert times(ratio) == text


# The report -----------------------------------------------------------------------------------------------------------


def test_sections_figures_and_tables(tmp_path):
    text, html = pages(tmp_path, all_cells())
    assert re.findall(r"^### (.+)$", section(text), re.MULTILINE) == [
        "Step by step", "Arithmetic rate over the rungs", "Compiled block by block, or as a whole",
        "Memory for time: checkpointing", "The same step on every rung", "Commands of the ladder cells",
    ]  # fmt: skip
    for name in FIGURES:
        assert text.count(f"figures/{name}.svg") == 1
    assert not re.search(r"[{}]|\bnan\b|\bNone\b", section(text)) and "None" not in section(text)
    for table in markdown_page(text).tables:
        assert all(len(row) == len(table[0]) for row in table)
    assert "16 unit roundoffs" in re.sub(r"\s+", " ", html)


def test_only_what_ran_has_its_part(tmp_path):
    text, _ = pages(tmp_path, made.chain())
    assert (
        "### Memory for time" not in text and "ladder_checkpoint.svg" not in text and "as a whole" not in section(text)
    )


@pytest.mark.parametrize("status", ["unsupported", "failed", "missing"])
def test_only_lost_cells(tmp_path, status):
    cells = [
        made.without_step(cell, status, "a reason", both=True)
        if status == "unsupported"
        else made.unmeasured(cell, status, "a reason")
        for cell in all_cells()
    ]
    text, html = pages(tmp_path, cells)
    assert "No rung of the ladder was measured." in text and "ladder_steps.svg" not in text
    assert not re.search(r"\bnan\b|\bNone\b", section(text)) and "fused AdamW" in html


def test_without_any_cell(tmp_path):
    text, _ = pages(tmp_path, [])
    assert "No rung of the ladder was measured." in text and "No ladder cell is in the tables." in text


def test_what_comes_from_outside_stays_text(tmp_path):
    cells = [*made.chain(), made.unmeasured(made.whole(), "failed", BAD)]
    cells[1].record["telemetry"]["throttle"] = [BAD]
    text, html = pages(tmp_path, cells)
    rich, plain = Page(html), markdown_page(text)
    assert sum(tag == "script" for tag, _ in rich.elements) == 1
    assert not any(tag == "script" for tag, _ in plain.elements)
    assert html.count("<details") == html.count("</details>")
    assert all(len(row) == len(table[0]) for table in plain.tables for row in table)


def test_many_ladders_are_for_the_page_alone(tmp_path):
    cells = [cell for context in range(100, 110) for cell in all_cells("small", context)]
    context = section_module.context(tables_of(tmp_path, cells))
    assert [table.page_only for table in context["rungs"]] == [False] * 6 + [True] * 4
    assert context["agreement"][0].page_only and "2 more" in " ".join(context["gains"][0].notes)
    assert len(section(pages(tmp_path / "all", cells)[0]).encode()) < 60_000
