"""Models of one's own in the report: what is said of them, what is left out, and that they stand beside sizes."""

import re

import own_models_maker as own
import page_one_maker as made
import pandas as pd
import pytest
import synthetic
import synthetic_profile
from chapter_checks import check, told, values
from golden import page_of
from pages import undrawn_pages
from report_maker import STUDIES
from stepscope.report.chapters.kernels.launching import launch_findings
from stepscope.report.chapters.setup import chapter
from stepscope.report.chapters.time.growth import with_context, with_parameters
from stepscope.report.data.own_models import own_models
from stepscope.report.data.profile_parts import parts_of_forward, product_flops
from stepscope.report.data.published_partners import Partners
from stepscope.report.data.roofline import model_points
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import every_step
from stepscope.report.data.timing_grid import timing_grid
from stepscope.report.kit.captions import fixed_parameters
from stepscope.report.kit.order import with_order
from stepscope.report.studies.models import section
from stepscope.report.studies.page_one import section as page_one
from stepscope.tables.models import TABLE
from stepscope.tables.reader import Tables

FORWARD = synthetic_profile.FORWARD_FLOPS
APART = {"flops_formula": 1.25e9, "flops_disagree": True, "flops_why": "a kernel that it cannot see."}


def table_of(part, name):
    return next(each for each in part.shows if each.name == name)


def cells(table) -> list[dict]:
    names = [column.label for column in table.columns]
    return [dict(zip(names, line, strict=True)) for line in table.rows]


# The table of models, and what is said of it --------------------------------------------------------------------------


def test_a_report_of_own_models_alone_says_what_was_built(tmp_path):
    found = chapter(Machine(own.write(tmp_path, [own.own_row()], [own.about()])))
    check(found)
    (first,) = found.takeaway
    assert first.text == "A model of one's own is trained as it is built: mine (Stack, 216 parameters)."
    assert "models" in found.data and "where are the parameters" not in told(found)
    (part,) = [each for each in found.parts if each.shows]
    (row,) = cells(table_of(part, "chapter-setup-models"))
    assert (row["built"].text, row["built"].below) == (own.MODEL, "Stack, layers=2")
    assert (row["blocks"].text, row["blocks"].below) == ("2 × Linear", "layers")
    assert (row["inputs"].text, row["loss"].text) == ("token ids of 11", "cross-entropy")
    assert (row["counted"].text, row["counted"].below) == ("1.00 GFLOP", "used")
    assert (row["by formula"].text, row["by formula"].below) == ("1.00 GFLOP", "")
    assert (row["size"].text, row["size"].below) == ("mine", f"at {own.own_row()['context']}")
    assert "dropout" not in row


def test_a_model_of_transformers_has_their_version_and_the_attention_that_they_chose(tmp_path):
    chosen = own.about("llama", attention="sdpa", packages="transformers 5.0.1")
    found = section.context(own.write(tmp_path / "one", [own.own_row()], [chosen, own.about()]))["models"]
    rows = cells(found)
    assert [(row["built"].below, row["attention"].text) for row in rows] == [
        ("Stack, layers=2, transformers 5.0.1", "sdpa"),
        ("Stack, layers=2", "–"),
    ]
    assert [note for note in found.notes if note.startswith("Attention:")]
    none = section.context(own.write(tmp_path / "none", [own.own_row()], [own.about()]))["models"]
    assert "attention" not in cells(none)[0] and not none.notes


def test_beside_sizes_a_model_has_a_table_of_its_own(tmp_path):
    found = chapter(Machine(own.write(tmp_path, [own.size_row(), own.own_row()], [own.about()])))
    check(found)
    assert found.takeaway[0].text.startswith(
        "2 models are trained, batch 4: one size of a decoder-only Transformer, 257 k parameters, on random tokens, "
        "and 1 of one's own. The Transformer is written plainly"
    )
    assert told(found)["what is a block"].text.startswith("s has 2 blocks. Each of these is RMSNorm")
    assert told(found)["what is a block"].text.endswith(" mine, of one's own, has 2 blocks.")
    assert "one size or model, context" in told(found)["what are a cell and a process"].text
    assert values(told(found)["does the formula count the parameters"]) == {"right": 0}  # of the one size
    assert values(told(found)["which own models ran"]) == {"n_0": 216}
    sizes, models = (each for part in found.parts for each in part.shows)
    assert [row["size"].text for row in cells(sizes)] == ["s"]
    assert [row["size"].text for row in cells(models)] == ["mine"]


def test_parameters_say_what_is_tied_and_what_is_trained(tmp_path):
    models = [own.about(trainable=200, tied="head.weight", dropout="0.0 0.1"), own.about("b", dropout="0.2")]
    found = told(chapter(Machine(own.write(tmp_path, [own.own_row(), own.own_row("b")], models))))
    assert found["which own models ran"].text.endswith("mine (Stack, 216 parameters), tied weights counted once.")
    assert found["is there dropout"].text.startswith("b and mine train with dropout (p = 0.1 to 0.2)")
    table = section.context(Tables(tmp_path, STUDIES))["models"]
    last = cells(table)[-1]
    assert (last["parameters"].below, last["dropout"].text) == ("200 trained, tied once", "0.1")
    assert table.notes == ["Tied in mine: head.weight."]


def test_flop_that_disagree_are_shown_with_the_reason_and_what_rates_are_of(tmp_path):
    models = [own.about(), own.about(context=256, flops_from="formula", **APART)]
    tables = own.write(tmp_path, [own.own_row(), own.own_row(context=256)], models)
    found = {each.question: each for each in section.findings(tables)}["how many FLOP is a step of an own model"]
    assert values(found) == {"counted": 1e9, "formula": 1.25e9, "far": 1}
    assert "rates are of the formula. They are more than 5.0 % apart in {far} of 2 points" in found.answer
    table = section.context(tables)["models"]
    row = cells(table)[1]
    assert (row["by formula"].below, row["counted"].below) == ("used, counted −20 %", "")  # 1 / 1.25 - 1
    assert table.notes == ["FLOP of mine: a kernel that it cannot see."]


def test_flop_that_agree_are_said_to(tmp_path):
    models = [own.about(), own.about(context=256, flops_formula=1.04e9)]
    tables = own.write(tmp_path, [own.own_row()], models)
    found = {each.question: each for each in section.findings(tables)}["how many FLOP is a step of an own model"]
    assert values(found) == {"gap": pytest.approx(0.04 / 1.04)}


def test_what_could_not_be_found_out_is_said_once_for_models_alike(tmp_path):
    lines = "blocks: none; range of FFN: no module is called so"
    models = [own.about(unknown=lines), own.about("b", unknown=lines), own.about("c")]
    tables = own.write(tmp_path, [own.own_row(each) for each in ("mine", "b", "c")], models)
    found = {each.question: each for each in section.findings(tables)}["what is not known of own models"]
    assert values(found) == {"lines": 4} and found.text.startswith("Not found out: 4 things of b and mine;")
    assert section.context(tables)["models"].notes == [f"Not found out of b and mine: {lines}."]


def test_what_is_not_known_is_a_dash(tmp_path):
    nothing = dict.fromkeys(("parameters", "trainable", "keys", "class", "blocks", "flops_counter", "flops_formula"))
    models = [own.about(**nothing, flops_from=None, inputs=None, loss=None, vocab_size=None)]
    tables = own.write(tmp_path, [own.own_row(flop=None, parameters=None)], models)
    assert section.findings(tables) == []
    (row,) = cells(section.context(tables)["models"])
    dashes = ("parameters", "blocks", "inputs", "loss", "counted", "by formula")
    assert {name: row[name].text for name in dashes} == dict.fromkeys(dashes, "–")
    assert chapter(Machine(tables)) is None  # nothing to say of the model


def test_page_one_says_why_cells_of_own_models_have_no_result(tmp_path):
    why = "Net has no sdpa: torch knows none yet. Please ask for it at https://example.org."
    lost = {"status": "unsupported", "step_status": "unsupported", "options": "attention=sdpa"}
    rows = [own.own_row(), own.size_row(context=256, **lost, reason="a reason of a size")]
    rows += [own.own_row(context=at, **lost, reason=why) for at in (32, 64)]
    rows += [own.own_row("b", **lost, reason="no blocks")]
    tables = own.write(tmp_path, rows, [own.about(), own.about("b")])
    found = page_one.context(tables)
    assert dict(found["strip"])["Cells"] == "1 measured, 4 not possible"
    (told,) = [each for each in found["doubts"] if each.startswith("Not possible")]
    assert told == (
        "Not possible with models of one's own: mine (2 cells): Net has no sdpa: torch knows none yet; b (1 cell): "
        "no blocks."
    )


def test_without_own_models_there_is_no_section(tmp_path):
    assert not section.applies(own.write(tmp_path / "none", [own.size_row()]))
    tables = own.write(tmp_path / "one", [own.own_row()], [own.about(size="a_b|c", unknown="x_y")])
    assert section.applies(tables)
    page = page_of("models", tables)
    assert page.startswith("## Models of one's own") and "a\\_b\\|c" in page and "models.csv" in page


# Where a shape was taken for granted ----------------------------------------------------------------------------------


def test_both_passes_have_the_models_own_flop_and_no_phase_has(tmp_path):
    rows = [own.own_row(), own.own_row(flop=None), own.own_row(mode="forward"), own.size_row()]
    found = {phase: [product_flops(row, phase) for row in rows] for phase in ("step", "forward", "backward")}
    assert found["step"] == [1e9, None, None, 3 * FORWARD]
    assert found["forward"] == [None, None, None, FORWARD] and found["backward"] == [None, None, None, 2 * FORWARD]
    assert parts_of_forward(own.own_row()) == {}


def test_the_law_over_parameters_is_of_sizes_the_growth_with_context_of_all(tmp_path):
    rows = [own.size_row(), own.size_row("t", step=40.0, parameters=2 * 257_344), own.own_row(step=1.0)]
    rows += [own.size_row(context=256, step=30.0), own.own_row(context=256, step=4.0, flop=3e9)]
    machine = Machine(own.write(tmp_path, rows, [own.about()]))
    grid = timing_grid(machine)
    law = with_parameters(grid)
    assert values(law)["larger"] == 2 and values(law)["fp32"] == 2 and "mine" not in law.text
    growth = with_context(machine, grid)
    assert sorted(values(growth)["fp32_0"]) == [1.5, 4] and "(2 models)" in growth.text
    assert max(values(growth)["flop_0"]) == 3


def test_kernels_for_each_block_are_of_sizes(tmp_path):
    nothing = dict.fromkeys(own.SHAPE) | {"model": own.MODEL}
    size, mine = synthetic_profile.cell(), synthetic_profile.cell("fp32", size="mine", **nothing)
    mine["cell"] = mine["cell"].replace("/s/", "/mine/")
    rows = [made.timed(size, 20.0), made.timed(mine, 20.0, **nothing, model_flop=1e9)]
    both = Machine(own.write(tmp_path / "both", rows, [own.about()], cells=[size, mine]))
    (found,) = [each for each in launch_findings(both, size) if "kernels a block" in each.answer]
    assert values(found) == {"blocks": [500]}  # 1,000 kernels, 2 blocks, of the size alone
    alone = Machine(own.write(tmp_path / "alone", rows[1:], [own.about()], cells=[mine]))
    assert not [each for each in launch_findings(alone, mine) if "kernels a block" in each.answer]
    (step,) = every_step(alone.profile)
    assert step.attention == 0 and step.total == pytest.approx(20)  # its kernels stay among the others


def test_no_published_figure_and_no_roof_is_of_an_own_model(tmp_path):
    tables = own.write(tmp_path, [own.own_row()], [own.about()])
    assert model_points(tables["timing"]) == []
    figure = {"statistic": "mean", "quantity": "time", "study": "timing", "name": None, "precision": "fp32"}
    figure |= {"phase": "step", "context": 128, "batch": 4, "status": "ok"} | dict.fromkeys(own.SHAPE, float("nan"))
    assert Partners(tables, "gpu").of(figure) is None


def test_captions_say_whose_vocabulary_it_is():
    sizes = pd.DataFrame([own.size_row()]).assign(options="")
    assert fixed_parameters(sizes) == "gpu; batch 4; vocabulary 1,000."
    both = pd.concat([sizes, pd.DataFrame([own.own_row()]).assign(options="")])
    assert fixed_parameters(both) == "gpu; batch 4; vocabulary of sizes 1,000."


def test_models_stand_among_sizes_by_their_parameters(tmp_path):
    rows = [
        own.size_row(),
        own.own_row("small"),
        own.own_row("large", parameters=10**9),
        own.own_row("?", parameters=None),
    ]
    tables = own.write(tmp_path, rows, [own.about(each) for each in ("small", "large", "?")])
    assert list(with_order(tables["timing"])["size"]) == ["small", "s", "large", "?"]
    assert [each.name for each in own_models(tables)] == ["?", "large", "small"]  # all of 216 parameters: by name


# Whole reports --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [{"tiny"}, set()], ids=["beside-sizes", "alone"])
def test_a_whole_report_holds_no_hole(sizes, tmp_path):
    folder = synthetic.write("cpu", tmp_path / "tables", lambda frames: own.as_own(frames, sizes))
    names = sizes or {"nano", "tiny"}
    models = [own.about(name, hardware="cpu", unknown="heads: none") for name in sorted(names)]
    pd.DataFrame(models, columns=TABLE.columns).to_csv(folder / "models.csv", index=False)
    figures = [
        "timing_by_size",
        "timing_by_context",
        "timing_phases",
        "timing_samples",
        "timing_distribution",
        "ceilings",
    ]
    markdown, page = undrawn_pages(tmp_path, folder, STUDIES, figures)
    assert not re.search(r"\bnan\b|\bNone\b(?! of)|\binf\b", markdown)
    assert all(f"| {name} |" in markdown for name in names) and len(page) > len(markdown)
