"""What an edit makes stale: the cells that run the code, and what was made of them."""

import os
import re

TRANSFORMER = "scripts/stepscope/model/transformer.py"
NOTHING = (set(), set())


def found(project):
    plan = project.planned()
    return plan.cells, plan.others


def test_touching_every_file_of_the_project_does_nothing(project):
    for path in project.folder.rglob("*"):
        if ".snakemake" not in path.parts and "results" not in path.parts:
            os.utime(path)
    assert found(project) == NOTHING


def test_touching_every_result_measures_nothing(project):
    for path in sorted(project.folder.glob("results/**/*"), reverse=True):
        os.utime(path)
    cells, others = found(project)
    assert cells == set()
    assert others <= project.REPORTING


def test_comments_docstrings_and_layout_do_nothing(project):
    project.edit(TRANSFORMER, "from collections.abc import Callable\n", "from collections.abc import Callable  # why\n")
    project.edit(TRANSFORMER, '"""x W^T, no bias.', '"""Another sentence.')
    project.edit(TRANSFORMER, "F.silu(self.gate(x)) * self.up(x)", "\n            F.silu(self.gate(x))*self.up(x)")
    assert found(project) == NOTHING


def test_the_model_is_run_by_the_cells_of_training_steps_and_no_other(project):
    project.edit(TRANSFORMER, "F.silu(self.gate(x)) * self.up(x)", "self.up(x) * F.silu(self.gate(x))")
    plan = project.planned()
    assert plan.cells == project.RUN_THE_MODEL | project.PROBES  # whose program looks into the model, too
    assert plan.others == project.REPORTING
    assert plan.analyses == 2


def test_an_attention_counts_for_the_cells_that_name_it(project):
    project.edit("scripts/stepscope/model/attention/sdpa.py", "is_causal=is_causal", "is_causal=bool(is_causal)")
    assert found(project)[0] == {project.SDPA}


def test_the_naive_attention_counts_for_the_attention_study_too(project):
    project.edit("scripts/stepscope/model/attention/naive.py", "return weights @ v", "return torch.matmul(weights, v)")
    stale = found(project)[0]
    assert stale > project.ATTENTIONS
    assert project.SDPA not in stale


def test_a_new_implementation_counts_for_no_cell(project):
    folder = project.folder / "scripts/stepscope/model/attention"
    (folder / "other.py").write_text((folder / "sdpa.py").read_text())
    assert found(project) == NOTHING


def test_a_program_counts_for_its_study(project):
    project.edit("scripts/measure_ceilings.py", 'default="fp32"', 'default="bf16"')
    assert found(project)[0] == project.CEILINGS


def test_the_analysis_of_traces_measures_nothing_again(project):
    with open(project.folder / "scripts/stepscope/trace/categories.py", "a") as file:
        file.write("\nEDITED = True\n")
    plan = project.planned()
    assert plan.cells == set()
    assert plan.analyses == 1
    assert plan.others == {"aggregate_profile", "profile_figures", "page_one_figures", "write_report"}


def test_the_analysis_of_snapshots_measures_nothing_again(project):
    with open(project.folder / "scripts/stepscope/snapshot/tables.py", "a") as file:
        file.write("\nEDITED = True\n")
    plan = project.planned()
    assert plan.cells == set()
    assert plan.analyses == 1
    assert plan.others == {"aggregate_memory", "memory_figures", "write_report"}


def test_what_is_declared_as_changing_no_number_counts_for_no_cell(project):
    text = (project.folder / "scripts/stepscope/config/code_digest.py").read_text()
    declared = dict(re.findall(r'^ +Declared\("(stepscope\.[\w.]+)", (True|False)', text, re.MULTILINE))
    assert (declared["stepscope.measure.record"], declared["stepscope.config.profilers"]) == ("False", "True")
    scripts = project.folder / "scripts"
    files = {name: scripts.joinpath(*name.split(".")) for name in declared}
    counted = {path.with_suffix(".py") for name, path in files.items() if declared[name] == "True"}
    for name, place in files.items():
        if declared[name] == "False":
            for path in place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
                if path not in counted:
                    with open(path, "a") as file:
                        file.write("\nEDITED = True\n")
    assert found(project)[0] == set()


def test_a_template_rewrites_the_report_only(project):
    with open(project.folder / "report/foot.md.j2", "a") as file:
        file.write("\nOne sentence more.\n")
    assert found(project) == (set(), {"write_report"})


def test_a_figures_code_redraws_that_studys_figures(project):
    with open(project.folder / "scripts/stepscope/figures/ceilings.py", "a") as file:
        file.write("\nEDITED = True\n")
    assert found(project) == (set(), {"ceilings_figures", "write_report"})


def test_the_reports_code_rewrites_the_report_only(project):
    with open(project.folder / "scripts/stepscope/report/page.py", "a") as file:
        file.write("\nEDITED = True\n")
    assert found(project) == (set(), {"write_report"})


def test_wording_of_rules_and_environments_measures_nothing(project):
    project.edit("rules/studies.smk", "--time-limit {resources.minutes}", "--time-limit  {resources.minutes}")
    with open(project.folder / "envs/measure.yaml", "a") as file:
        file.write("# a comment\n")
    assert found(project) == NOTHING
