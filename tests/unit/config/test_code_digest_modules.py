"""Which modules count for a cell's code digest."""

import importlib
import subprocess
import sys

import pytest
from common import SCRIPTS
from stepscope.config.code_digest import (
    WITH_EFFECT,
    WITHOUT_EFFECT,
    Sources,
    counts,
    modules_of,
)
from stepscope.config.studies import STUDIES
from stepscope.model.chosen import PACKAGES, names

MEASURING = [f"{study.program}.py" for study in STUDIES]
CHAIN = {
    "program": "import stepscope.config.first",
    "config/first": "import stepscope.config.second",
    "config/second": (
        "import stepscope.measure.fourth\ndef late():\n    from stepscope.measure.third import"
        " value"
    ),
    "measure/third": "value = 1",
    "measure/fourth": "import stepscope.config.first",
    "measure/unrelated": "value = 1",
    "config/__init__": "",
}


class Scripts:
    """A scripts/ folder of a test's own, whose program.py is looked at."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, sources):
        """Write programs and modules: {"program": …} is program.py, {"a/b": …} is
        stepscope/a/b.py."""
        for name, source in sources.items():
            path = self.folder / ("stepscope" if "/" in name else "") / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)

    def digest(self, **how):
        """As a new process computes it; measured: of what can change a measured number."""
        return Sources(self.folder).digest("program.py", (), **how)

    def modules(self):
        """Those that it may load."""
        return Sources(self.folder).modules("program.py", ())


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


@pytest.mark.parametrize(
    "edit, is_counted",
    [
        ({"measure/third": "value = 1  # the same"}, False),
        ({"measure/third": "value = 2"}, True),
        ({"config/__init__": "import os; os.environ['X'] = '1'"}, True),
        (
            {"measure/third": CHAIN["measure/fourth"], "measure/fourth": CHAIN["measure/third"]},
            True,
        ),
        ({"measure/unrelated": "value = 2", "measure/new": "value = 3"}, False),
    ],
)
def test_modules_and_packages_that_are_imported_on_the_way_count_and_no_other(
    scripts, edit, is_counted
):
    scripts.write(CHAIN)
    before, modules = scripts.digest(), scripts.modules()
    names = ("config", "config.first", "config.second", "measure.third", "measure.fourth")
    assert set(modules) == {"program.py", *(f"stepscope.{name}" for name in names)}
    scripts.write(edit)
    assert (scripts.digest() != before) == is_counted
    assert scripts.modules() == modules


def test_what_cannot_change_a_number_does_not_count_for_a_measurement(scripts):
    scripts.write(
        {
            "program": "from stepscope.measure import record, summary",
            "measure/record": "import stepscope.measure.clock",
            "measure/summary": "x = 1",
            "measure/clock": "x = 1",
        }
    )
    measured, whole = scripts.digest(measured=True), scripts.digest()
    scripts.write({"measure/record": "import stepscope.measure.clock; x = 1"})
    assert scripts.digest(measured=True) == measured
    assert scripts.digest() != whole
    scripts.write({"measure/clock": "x = 2"})  # whoever imports it: it is loaded
    assert scripts.digest(measured=True) != measured


def test_each_module_that_a_measurement_loads_is_declared():
    loaded = set()
    for program in MEASURING:
        every = [f"{PACKAGES[option]}.{name}" for option in PACKAGES for name in names(option)]
        every += ["stepscope.measure.models.transformer", "stepscope.measure.models.own"]
        loaded |= set(Sources().modules(program, every)) - {program, "stepscope"}
    assert [
        name
        for name in sorted(loaded)
        if not any(f"{name}.".startswith(f"{each}.") for each in (*WITHOUT_EFFECT, *WITH_EFFECT))
    ] == []


def test_a_missing_program_raises():
    with pytest.raises(FileNotFoundError):
        Sources().digest("nothing.py")


def test_a_neighbour_that_is_imported_by_a_dot_is_followed(tmp_path):
    (tmp_path / "parts").mkdir()
    for name, text in {"first": "from .second import x", "second": "from . import third"}.items():
        (tmp_path / f"parts/{name}.py").write_text(text)
    for name in ("__init__", "third"):
        (tmp_path / f"parts/{name}.py").write_text("")
    (tmp_path / "main.py").write_text("from parts.first import x")
    found = Sources(tmp_path, package=None).modules("main.py")
    assert {*found} >= {"parts.first", "parts.second", "parts.third"}


MODEL = {"num_layers": 2, "d_model": 8}
PLAIN = ("attention.naive", "compilation.none", "losses.own", "optimizers.own", "precisions.fp32")
FORMATS = [f"precisions.{name}" for name in names("precision")]
FIRST, SECOND = {"name": "a"}, {"name": "b", "optimizer": "fused", "precision": "fp8"}


def changed(**values):
    """The plain step's modules with others of some packages."""
    own = dict(each.split(".") for each in PLAIN) | values
    return [f"{package}.{name}" for package, name in own.items() if name]


@pytest.mark.parametrize(
    "spec, kind, modules",
    [
        (
            {"study": "profile", "attention": "sdpa", "compile": "graphs", "loss": "torch"} | MODEL,
            "transformer",
            changed(attention="sdpa", compilation="graphs", losses="torch"),
        ),
        (
            {"study": "ladder", "variants": [FIRST, SECOND]} | MODEL,
            "transformer",
            [*PLAIN, "optimizers.fused", "precisions.fp8"],
        ),
        # of a cell whose variants change a part alone: what they share, too
        (
            {
                "study": "learning",
                "precision": "fp32",
                "attention": "sdpa",
                "variants": [{"name": "fp32", "precision": "fp32"}, SECOND],
            }
            | MODEL,
            "transformer",
            [*changed(attention="sdpa"), "optimizers.fused", "precisions.fp8"],
        ),
        (
            {
                "study": "parallel",
                "precision": "bf16",
                "optimizer": "fused",
                "variants": [{"name": "ddp", "strategy": "ddp"}],
            }
            | MODEL,
            "transformer",
            changed(optimizers="fused", precisions="bf16"),
        ),
        # which brings its own attention and loss
        ({"study": "timing", "model": "a.py:f"}, "own", changed(attention="", losses="")),
        (
            {"study": "timing", "model": "a.py:f", "attention": "sdpa"},
            "own",
            changed(attention="sdpa", losses=""),
        ),
        (
            {
                "study": "attention",
                "precision": "fp16",
                "variants": [{"name": "compiled"}, {"name": "sdpa-flash"}],
            },
            "",
            ["attention.naive", "attention.sdpa", "precisions.fp16"],
        ),
        ({"study": "precision", "probe": "accumulation"}, "", FORMATS),
    ],
)
def test_a_cell_depends_on_the_modules_that_it_names(spec, kind, modules):
    own = {f"stepscope.measure.models.{kind}"} if kind else set()
    assert set(modules_of(spec)) == own | {f"stepscope.model.{name}" for name in modules}


SHAPE = "--d-model 8 --d-ff 8 --num-layers 1 --num-heads 2 --vocab-size 9 --context 4"


@pytest.mark.parametrize(
    "program, words",
    [
        ("time_step", f"{SHAPE} --max-seconds 0 --processes 1"),
        ("profile_step", f"{SHAPE} --profiler none"),
        ("snapshot_memory", SHAPE),
        ("measure_ceilings", "--order 16 --max-seconds 0 --processes 1"),
        (
            "time_step",
            (
                f"--model {SCRIPTS.parent}/models/gpt.py:build --context 4 --max-seconds 0"
                " --processes 1"
            ),
        ),
    ],
)
def test_what_a_program_loads_is_what_its_digest_counts(program, words, tmp_path, monkeypatch):
    """Against Python's own record of the modules that it imported, in this process instead of
    forked ones."""
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path))
    run = (
        f"import runpy, sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from stepscope.machine import process\n"
        "from stepscope.measure import processes\n"
        "processes.each = lambda count, measure: [measure(1)]\n"
        "process.leave = lambda: None\n"
        f"runpy.run_path({str(SCRIPTS / program)!r} + '.py', run_name='__main__')\n"
        "print('LOADED', *(name for name in sys.modules if name.startswith('stepscope')))"
    )
    flags = f"{words} --device cpu --warmup 0 --steps 2".split()
    shown = subprocess.run(
        [sys.executable, "-c", run, *flags], capture_output=True, text=True, timeout=240
    )
    assert shown.returncode == 0, shown.stderr
    loaded = {name for name in shown.stdout.rpartition("LOADED")[2].split() if counts(name)}
    spec = importlib.import_module(program).parse(flags)[0]
    counted = {
        name for name in Sources().modules(f"{program}.py", modules_of(spec)) if counts(name)
    }
    # Packages that flags are made from, and formats, which are read as text.
    lists_of_names = set(PACKAGES.values())
    read = {name for name in counted if name.startswith(f"{PACKAGES['precision']}.")}
    assert loaded - lists_of_names == counted - {f"{program}.py"} - lists_of_names - read
