"""Predicted peaks beside measured ones of setups that no study records, on a GPU: checkpoints in
compiled blocks, gradients accumulated or used at once, other optimizers, weights in 16 bits.

python benchmarks/unrecorded_peaks.py [--size medium] [--context 512] [--batch 4]

Printed are bytes that tensors ask for at the peak of the third step, with cuBLAS' workspaces.
"""

import argparse
import contextlib
import gc
import sys
from dataclasses import replace
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from stepscope.formulas import fits  # noqa: E402
from stepscope.formulas.footprint import Setup  # noqa: E402
from stepscope.measure.workload import Workload  # noqa: E402
from stepscope.yaml_files import read_yaml  # noqa: E402

STEPS = 3
CHANGES: list[dict] = [
    {},
    {"optimizer": "sgd"},
    {"optimizer": "momentum"},
    {"optimizer": "muon"},
    {"gradients": "accumulated"},
    {"gradients": "at-once"},
    {"gradients": "at-once", "checkpoint": 1},
    {"checkpoint": 1},
    {"checkpoint": 5},
    {"compile": "block", "checkpoint": 1},
    {"compile": "block", "precision": "fp32"},
    {"compile": "block", "attention": "naive"},
    {"compile": "block", "loss": "chunked"},
    {"loss": "compiled", "checkpoint": 1},
    {"precision": "fp32", "loss": "torch"},
    {"precision": "pure-bf16"},
    {"precision": "pure-bf16", "loss": "narrow"},
    {"precision": "pure-bf16", "checkpoint": 1, "loss": "narrow"},
]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--size", default="medium")
    flags.add_argument("--context", type=int, default=512)
    flags.add_argument("--batch", type=int, default=4)
    given = flags.parse_args()
    shape = fits.model(given.size, read_yaml(ROOT / "config.yaml")["sizes"])
    plain = Setup(shape, given.batch, given.context, "bf16", "sdpa", "fused", "torch")
    for change in CHANGES:
        setup = replace(plain, **change)
        moment = fits.peak_of(setup)
        try:
            size = measured(setup)
        except Exception as error:  # one setup that a version cannot run leaves the others
            print(change, type(error).__name__, str(error).splitlines()[0][:150])
            continue
        print(
            f"{change!s:70} {size / 2**20:10.1f} {moment.bytes / 2**20:10.1f} MiB"
            f" {moment.bytes / size - 1:+.3%} {moment.phase} {moment.part}",
            flush=True,
        )
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()


def measured(setup: Setup) -> int:
    """Bytes that tensors ask for at the peak of a step, its model and state among them."""
    before = torch.cuda.memory_stats().get("requested_bytes.all.current", 0)
    is_pure = setup.precision == "pure-bf16"
    work = Workload(
        {
            "d_model": setup.shape.d_model,
            "d_ff": setup.shape.d_ff,
            "num_layers": setup.shape.num_layers,
            "num_heads": setup.shape.num_heads,
            "vocab_size": setup.shape.vocab_size,
            "batch": setup.batch,
            "context": setup.context,
            "precision": "fp32" if is_pure else setup.precision,
            "attention": setup.attention,
            "compile": setup.compile,
            "checkpoint": setup.checkpoint,
            "loss": "torch" if setup.loss == "narrow" else setup.loss,
            "optimizer": "fused",
            "seed": 0,
            "device": "cuda",
        }
    )
    step = _step(work, setup, is_pure)
    for at in range(STEPS):
        if at == STEPS - 1:
            torch.cuda.reset_peak_memory_stats()
        step()
    return torch.cuda.memory_stats()["requested_bytes.all.peak"] - before


def _step(work: Workload, setup: Setup, is_pure: bool):
    """A whole step as the setup says."""
    if is_pure:
        work.model.module.to(torch.bfloat16)
        work.renew_optimizer()
    optimizers = _optimizers(work, setup)
    if setup.gradients == "at-once":
        for parameter in work.parameters:
            one = torch.optim.AdamW([parameter], fused=True)

            def use(given: torch.Tensor, one: torch.optim.Optimizer = one) -> None:
                one.step()
                one.zero_grad()

            parameter.register_post_accumulate_grad_hook(use)
        optimizers = []

    def step() -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        for _ in range(2 if setup.gradients == "accumulated" else 1):
            if is_pure:
                _pure_forward(work, setup)
            else:
                work._forward()
            work._backward()
            work.drop_graph()
        for optimizer in optimizers:
            optimizer.step()

    return step


def _pure_forward(work: Workload, setup: Setup) -> None:
    model = work.model
    tokens, targets = (model._tokens, model._targets)
    logits = model.module(tokens)
    wide = logits if setup.loss == "narrow" else logits.float()
    work._loss = torch.nn.functional.cross_entropy(wide.flatten(0, -2), targets.flatten())


def _optimizers(work: Workload, setup: Setup) -> list:
    if setup.optimizer == "sgd":
        return [torch.optim.SGD(work.parameters)]
    if setup.optimizer == "momentum":
        return [torch.optim.SGD(work.parameters, momentum=0.9)]
    if setup.optimizer == "muon":
        named = dict(work.model.named_parameters())
        matrices = [each for name, each in named.items() if "blocks" in name and each.ndim == 2]
        chosen = set(map(id, matrices))
        others = [each for each in work.parameters if id(each) not in chosen]
        return [torch.optim.Muon(matrices), torch.optim.AdamW(others, fused=True)]
    return [work.optimizer]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
