"""Which modules count for a cell's code digest."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from stepscope.plan.code_digest import BOOKKEEPING, chosen_modules, code_digest, modules

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
CHAIN = {
    "program": "import stepscope.plan.first",
    "plan/first": "import stepscope.plan.second",
    "plan/second": "def late():\n    from stepscope.measure.third import value",
    "measure/third": "value = 1",
    "measure/unrelated": "value = 1",
    "plan/__init__": "",
}


def test_a_module_three_imports_away_counts(scripts):
    scripts.write(CHAIN)
    before = scripts.digest()
    scripts.write({"measure/third": "value = 1  # the same"})
    assert scripts.digest() == before
    scripts.write({"measure/third": "value = 2"})
    assert scripts.digest() != before


def test_packages_on_the_way_count(scripts):
    scripts.write(CHAIN)
    before = scripts.digest()
    scripts.write({"plan/__init__": "import os; os.environ['X'] = '1'"})
    assert scripts.digest() != before


def test_an_unrelated_module_does_not_count(scripts):
    scripts.write(CHAIN)
    before = scripts.digest()
    scripts.write({"measure/unrelated": "value = 2", "measure/new": "value = 3"})
    assert scripts.digest() == before
    assert scripts.modules() == {
        "program.py",
        "stepscope.plan",
        "stepscope.plan.first",
        "stepscope.plan.second",
        "stepscope.measure.third",
    }


def test_two_modules_that_swap_their_code_count(scripts):
    scripts.write({"program": "import stepscope.a.b, stepscope.a.c", "a/b": "x = 1", "a/c": "x = 2"})
    before = scripts.digest()
    scripts.write({"a/b": "x = 2", "a/c": "x = 1"})
    assert scripts.digest() != before


def test_modules_that_import_each_other_are_read_once(scripts):
    scripts.write({"program": "import stepscope.a.b", "a/b": "import stepscope.a.c", "a/c": "import stepscope.a.b"})
    assert scripts.modules() == {"program.py", "stepscope.a.b", "stepscope.a.c"}


def test_bookkeeping_and_what_only_it_imports_do_not_count(scripts):
    scripts.write(
        {
            "program": "from stepscope.measure import record, summary",
            "measure/record": "import stepscope.measure.writing",
            "measure/writing": "x = 1",
            "measure/summary": "x = 1",
        }
    )
    before = scripts.digest()
    scripts.write({"measure/record": "import stepscope.measure.writing; x = 1", "measure/writing": "x = 2"})
    assert scripts.digest() == before
    scripts.write({"measure/summary": "import stepscope.measure.writing; x = 1"})
    assert "stepscope.measure.writing" in scripts.modules()


def test_bookkeeping_is_what_we_declare_here():
    """To add a module is to say that it cannot change a measured number: think twice."""
    assert {
        "stepscope.measure.arguments",
        "stepscope.measure.printing",
        "stepscope.measure.provenance",
        "stepscope.measure.record",
        "stepscope.measure.training",
        "stepscope.plan.code_digest",
        "stepscope.plan.config",
        "stepscope.plan.grid",
        "stepscope.machine.gpus",
        "stepscope.machine.identity",
    } == BOOKKEEPING
    for name in BOOKKEEPING:
        assert SCRIPTS.joinpath(*name.split(".")).with_suffix(".py").is_file(), name


def test_an_implementation_counts_only_for_the_cells_that_choose_it(scripts):
    scripts.write(
        {
            "program": "import stepscope.model.chosen",
            "model/chosen": "",
            "model/attention/naive": "import stepscope.model.softmax",
            "model/attention/sdpa": "x = 1",
            "model/softmax": "x = 1",
        }
    )
    naive, sdpa = chosen_modules({"attention": "naive"}), chosen_modules({"attention": "sdpa"})
    before = scripts.digest(naive), scripts.digest(sdpa)
    assert before[0] != before[1]
    scripts.write({"model/softmax": "x = 2"})
    assert scripts.digest(naive) != before[0]
    assert scripts.digest(sdpa) == before[1]


def test_chosen_modules_by_option():
    assert chosen_modules({"optimizer": "fused", "attention": "sdpa"}) == [
        "stepscope.model.attention.sdpa",
        "stepscope.model.optimizers.fused",
    ]


def test_a_missing_module_or_program_raises(scripts):
    scripts.write({"program": ""})
    with pytest.raises(FileNotFoundError, match=r"stepscope\.model\.attention\.flash"):
        scripts.digest(["stepscope.model.attention.flash"])
    with pytest.raises(FileNotFoundError):
        code_digest("nothing.py")


def test_the_library_is_imported_by_absolute_names_only():
    """A relative import would not be followed."""
    for path in SCRIPTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path


@pytest.mark.parametrize(
    "program, size, chosen, not_run",
    [
        (
            "time_step.py",
            "--d-model 8 --d-ff 8 --num-layers 1 --num-heads 2 --vocab-size 9 --context 4 --max-seconds 0",
            {"attention": "naive", "optimizer": "own"},
            ["stepscope.model.attention"],  # a package that holds a docstring only
        ),
        (
            "profile_step.py",
            "--d-model 8 --d-ff 8 --num-layers 1 --num-heads 2 --vocab-size 9 --context 4 --profiler none",
            {"attention": "naive", "optimizer": "own"},
            ["stepscope.model.attention"],
        ),
        (
            "snapshot_memory.py",
            "--d-model 8 --d-ff 8 --num-layers 1 --num-heads 2 --vocab-size 9 --context 4",
            {"attention": "naive", "optimizer": "own"},
            ["stepscope.model.attention"],
        ),
        (
            "time_attention.py",
            "--implementation naive --lengths 4 --d-head 8 --batch 1",
            {"attention": "naive"},
            ["stepscope.model.attention"],
        ),
        (
            "time_warmup.py",
            "--d-model 8 --d-ff 8 --num-layers 1 --num-heads 2 --vocab-size 9 --context 4",
            {"attention": "naive", "optimizer": "own"},
            ["stepscope.model.attention"],
        ),
        (
            "time_ladder.py",
            "--d-model 8 --d-ff 8 --num-layers 1 --num-heads 2 --vocab-size 9 --context 4 --max-seconds 0",
            {"attention": "naive", "optimizer": "own"},
            ["stepscope.model.attention"],
        ),
        # Only code_digest, which is bookkeeping, imports these.
        ("measure_ceilings.py", "--order 16 --max-seconds 0", {}, ["stepscope.model", "stepscope.model.chosen"]),
    ],
)
def test_what_a_program_loads_is_what_its_digest_counts(program, size, chosen, not_run, tmp_path, monkeypatch):
    """Against Python's own record of the modules that it imported."""
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path))
    run = (
        f"import runpy, sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        f"runpy.run_path({str(SCRIPTS / program)!r}, run_name='__main__')\n"
        "print('LOADED', *(name for name in sys.modules if name.startswith('stepscope')))"
    )
    command = [sys.executable, "-c", run, *f"{size} --device cpu --warmup 0 --steps 2".split()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    loaded = set(shown.stdout.rpartition("LOADED")[2].split())
    assert loaded - BOOKKEEPING - set(not_run) == modules(program, chosen_modules(chosen)) - {program}
