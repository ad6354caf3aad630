"""The project's examples and architectures of transformers, small; and a step of a model."""

from collections import namedtuple

import torch
from common import ROOT
from stepscope.model.own import adapting, assembled

GPT_FILE = f"{ROOT}/models/gpt.py:build"  # with tied weights and dropout
VIT_FILE = f"{ROOT}/models/vit.py:build"  # with a batch of its own
LLAMA = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 50}
LLAMA |= {"num_attention_heads": 4, "num_key_value_heads": 2}
Step = namedtuple("Step", "loss gradients")


def make(reference, keys=None, context=16, batch=2, seed=0, **options):
    """A small model of a reference or of an example's name, adapted to a spec's options."""
    reference = {"gpt": GPT_FILE, "vit": VIT_FILE}.get(reference, reference)
    keys = (LLAMA if reference.startswith("hf:") else {}) | (keys or {})
    model = assembled.build(reference, keys, context, batch, "cpu", seed)
    adapting.adapt(model, options)
    return model


def step(model):
    """Loss and gradients by name of one forward and backward pass, with the same dropout each
    time."""
    batch = model.make_batch()
    torch.manual_seed(1)
    loss = model.loss(batch)
    loss.backward()
    gradients = {name: each.grad for name, each in model.module.named_parameters()}
    return Step(loss.detach(), gradients)
