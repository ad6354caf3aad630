"""Models that cannot be built or run: one line each, with the file, the function and the reason."""

import sys

import pytest
import torch
from common import one_line
from stepscope.model.own import assembled, loading
from stepscope.model.own.reference import ModelError, parse

NO_LOSS = "the loss has to be a scalar that requires a gradient, not "
RETURN = "def build(context): return"
RUN = (
    "class Net(nn.Embedding):\n    def forward(self, tokens{}): return {}\ndef build(context):"
    " return Net(10, 4)"
)
OWN_LOSS = """
def build(context): return nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10)), make_batch, loss
def make_batch(batch, context, device, generator):
    return torch.randint(10, (batch, context), generator=generator, device=device)
def loss(outputs, batch): return """
FINE = "nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))"


def run(reference, keys=None):
    model = assembled.build(reference, keys or {}, 8, 2, "cpu", 0)
    model.loss(model.make_batch())


@pytest.fixture
def complaint(write):
    """What is said of a user's file, from building to the loss."""

    def complaint(text, keys=None, name="mine.py"):
        reference = write(text, name)
        said = one_line(ModelError, run, reference, keys)
        assert said.startswith(f"{reference}: ")
        return said.removeprefix(f"{reference}: ")

    return complaint


# Text of a file → what is said. The user's begins in line 5.
BAD = {
    "import absent_package": "line 5: ModuleNotFoundError: No module named 'absent_package'",
    "def build(:": "does not import: SyntaxError: invalid syntax (mine.py, line 5)",
    "x = 1 / 0": "does not import: line 5: ZeroDivisionError: division by zero",
    "raise SystemExit(3)": "does not import: line 5: SystemExit: 3",
    "raise GeneratorExit": "does not import: line 5: GeneratorExit",
    "def other(): pass": "has no function build",
    "build = 3": "has no function build",
    "def build(context):\n    raise KeyError('x')": "build() fails: line 6: KeyError: 'x'",
    f"{RETURN} 3": "returns int; return a module",
    f"{RETURN} None": "returns NoneType",
    f"{RETURN} nn.Identity(), None": "returns 2 values; return (module, make_batch, loss)",
    f"{RETURN} nn.Linear(1, 1), 3, None": "TypeError: 'int' object is not callable",
    f"{RETURN} {FINE}, None, print": "returns a loss without make_batch",
    f"{RETURN} {FINE}, lambda batch, context, device, generator: 1 / 0, None": (
        "make_batch() fails: line 5: ZeroDivisionError"
    ),
    f"{RETURN} nn.ReLU()": "ReLU has no parameters",
    f"{RETURN} nn.Linear(4, 10)": "no size of a vocabulary found",
    f"{RETURN} nn.Sequential(nn.Embedding(10, 4), nn.Linear(5, 10))": (
        "forward fails: RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x4 and 5x10)"
    ),
    f"{RETURN} nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(32, 10))": (
        "wrong output: (2, 10) instead of logits (2, 8, 10)"
    ),
    RUN.format("", "'x'"): "wrong output: str instead of logits (2, 8, 10)",
    RUN.format("", "self.weight @ tokens.nothing"): "forward fails: line 6: AttributeError: ",
    RUN.format(", segment", "0"): "1 required positional argument: 'segment'",
    f"{OWN_LOSS}outputs": f"{NO_LOSS}torch.Size([2, 8, 10])",
    f"{OWN_LOSS}outputs.detach().sum()": f"{NO_LOSS}torch.Size([])",
    f"{OWN_LOSS}outputs.sum().item()": f"{NO_LOSS}float",
    f"{OWN_LOSS}outputs.missing": "loss fails: line 9: AttributeError: 'Tensor' object has no",
}


@pytest.mark.parametrize("text", BAD)
def test_one_line_says_what_is_wrong(complaint, text):
    assert BAD[text] in complaint(text)


def test_keys_that_build_does_not_take(complaint):
    said = complaint(f"def build(context, layers=2): return {FINE}", {"layer": 3})
    assert said.startswith("build(context, layers=2) does not take the keys layer")
    assert "unexpected keyword argument 'layer'" in said
    said = complaint(f"def build(): return {FINE}", name="other.py")
    assert said.startswith("build() takes no context: too many positional arguments")


@pytest.mark.parametrize("keys", [{}, {"layers": 2}])
def test_what_build_asks_for_and_nothing_gives(complaint, keys):
    said = complaint(f"def build(context, width, layers=2): return {FINE}", keys)
    assert said.startswith("build(context, width, layers=2) asks for what nothing gives: ")
    assert "'width'" in said


@pytest.mark.parametrize(
    "text, kind",
    {
        "def build(context): raise MemoryError()": MemoryError,
        "def build(context): raise torch.OutOfMemoryError('x')": torch.OutOfMemoryError,
        (
            "def build(context): raise RuntimeError('DefaultCPUAllocator: can\\'t allocate memory')"
        ): RuntimeError,
        RUN.format(
            "", "(_ for _ in ()).throw(torch.OutOfMemoryError('CUDA'))"
        ): torch.OutOfMemoryError,
    }.items(),
)
def test_running_out_of_memory_passes_unchanged(write, text, kind):
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        run(write(text))
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "name, keys, said",
    [
        ("no/such-repository", {}, "there is no folder no/such-repository with a config.json"),
        (
            "llama",
            {"hiden_size": 3},
            "LlamaConfig has no key 'hiden_size'; did you mean 'hidden_size'?",
        ),
        (
            "llama",
            {"max_position_embeddings": 4},
            "max_position_embeddings is 4, less than the context of 8",
        ),
        ("vit", {}, "transformers has no causal language model of vit"),
        (
            "llama",
            {"hidden_size": 30, "num_attention_heads": 4},
            "StrictDataclassClassValidationError: ",
        ),
    ],
)
def test_an_architecture_that_cannot_be_had(name, keys, said):
    assert said in one_line(ModelError, run, f"hf:{name}", keys)


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    loading._module.cache_clear()
    with pytest.raises(ModelError, match=r"hf:llama: .*ModuleNotFoundError: .*transformers"):
        run("hf:llama")


def test_names_of_ranges_are_text(write):
    assert "the key ranges has to map patterns" in one_line(
        ModelError, run, write(f"def build(context): return {FINE}"), {"ranges": ["x"]}
    )


@pytest.mark.parametrize(
    "text", ["", "mine.py", "mine:build", "mine.py:", "mine.py:1x", "hf:", "hf: llama"]
)
def test_what_names_no_model_is_one_line(text):
    assert repr(text) in one_line(ModelError, parse, text)
