"""Models as users write them, in files of their own, and ranges that are kept instead of shown."""

import sys
from collections import namedtuple
from textwrap import dedent

import pytest
import torch
from stepscope.model.own import adapting, assembled

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
Step = namedtuple("Step", "loss gradients")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a user's file; returns its reference. What imports torch needs no import of its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text, name="mine.py", head=HEAD):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + dedent(text))
        return f"{path}:build"

    return write


@pytest.fixture
def gpt(project_root):
    """The example of a model with tied weights and dropout."""
    return f"{project_root / 'models/gpt.py'}:build"


@pytest.fixture
def vit(project_root):
    """The example of a model with a batch of its own."""
    return f"{project_root / 'models/vit.py'}:build"


@pytest.fixture
def make(gpt, vit):
    """A small model of a reference or of an example's name, adapted to a spec's options."""
    llama = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 50}
    llama |= {"num_attention_heads": 4, "num_key_value_heads": 2}

    def make(reference, keys=None, context=16, batch=2, seed=0, **options):
        reference = {"gpt": gpt, "vit": vit}.get(reference, reference)
        keys = (llama if reference.startswith("hf:") else {}) | (keys or {})
        model = assembled.build(reference, keys, context, batch, "cpu", seed)
        adapting.adapt(model, options)
        return model

    return make


@pytest.fixture
def step():
    """Loss and gradients by name of one forward and backward pass, with the same dropout each
    time."""

    def step(model):
        batch = model.make_batch()
        torch.manual_seed(1)
        loss = model.loss(batch)
        loss.backward()
        gradients = {name: each.grad for name, each in model.module.named_parameters()}
        return Step(loss.detach(), gradients)

    return step
