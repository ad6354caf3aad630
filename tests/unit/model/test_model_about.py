"""What values of options say of themselves, read without running their modules."""

import pytest
from stepscope.formulas import footprint_peak
from stepscope.formulas.footprint import Setup
from stepscope.model import chosen
from stepscope.model.formats import FORMATS, PRECISIONS
from stepscope.model.shape import ModelShape

SILENT = '''"""An optimizer that does not say what it keeps."""

from stepscope.model.about import Optimizer

ABOUT = Optimizer(label="Silent", state=None, workspace=None)
'''


SHAPE = ModelShape(64, 128, 2, 4)


@pytest.fixture
def optimizers(tmp_path, monkeypatch):
    """A folder that is looked into for optimizers instead of the package's."""
    others = chosen._folder
    own = {"optimizer": tmp_path}
    monkeypatch.setattr(chosen, "_folder", lambda option: own.get(option) or others(option))
    chosen._tree.cache_clear()
    yield tmp_path
    chosen._tree.cache_clear()


def test_what_is_read_is_what_the_module_has():
    for option in chosen.PACKAGES:
        for name in set(chosen.names(option)) - {"flex", "triton"}:  # which are for a GPU
            assert chosen.about(option, name) == chosen.load(option, name).ABOUT
    for name, one in FORMATS.items():
        assert one == chosen.load("precision", name).FORMAT


def test_reading_imports_neither_torch_nor_a_value(run_python):
    read = (
        "from stepscope.model import chosen, formats\n"
        "print([chosen.about(o, n).label for o in chosen.PACKAGES for n in chosen.names(o)])\n"
        "values = [f'{chosen.PACKAGES[o]}.{n}' for o in chosen.PACKAGES for n in chosen.names(o)]\n"
        "assert not {'torch', *values} & set(sys.modules)"
    )
    code, _, errors = run_python(read)
    assert code == 0, errors


def test_the_widest_precision_comes_first():
    assert (
        list(FORMATS) == list(PRECISIONS) == ["fp32", "tf32", "bf16", "fp16", "fp8", "fp8_rowwise"]
    )


@pytest.mark.parametrize(
    "text, complaint",
    {
        "x = 1\n": r"mine.py: there is no ABOUT = Optimizer\(...\) at its top level; add it",
        "ABOUT = Loss(label='a')\n": r"mine.py: there is no ABOUT = Optimizer\(...\)",
        "ABOUT = Optimizer(label='a', state=2)\n": r"mine.py: ABOUT: .*'workspace'",
        "ABOUT = Optimizer(label=name)\n": r"mine.py: ABOUT takes literals alone",
    }.items(),
)
def test_a_module_that_says_it_wrongly_is_named(text, complaint, optimizers):
    (optimizers / "mine.py").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        chosen.about("optimizer", "mine")


def test_an_optimizer_that_the_closed_form_does_not_know_is_an_error(optimizers):
    (optimizers / "silent.py").write_text(SILENT)
    assert not Setup(SHAPE, 1, 32, optimizer="silent").is_known
    told = {"magic": "no optimizer 'magic'", "silent": "optimizer silent: its state is not known"}
    for name, said in told.items():
        with pytest.raises(ValueError, match=said):
            footprint_peak.peak(Setup(SHAPE, 1, 32, optimizer=name), "step")


def test_what_the_closed_form_knows():
    assert all(Setup(SHAPE, 1, 32, optimizer=name).is_known for name in ("own", "torch", "fused"))
    assert [name for name in FORMATS if not Setup(SHAPE, 1, 32, name).is_known] == [
        "fp8",
        "fp8_rowwise",
    ]
