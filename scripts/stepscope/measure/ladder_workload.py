"""The training step, made cheaper: compiled, replayed from CUDA graphs, or with activations recomputed.

The model, the batch and the phases are those of `stepscope.measure.steps.Workload`.
"""

import shutil
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from stepscope.measure.steps import Workload
from stepscope.model.chosen import load

BEFORE_CAPTURE = 3  # passes on a stream of their own, as torch.cuda.graph's documentation asks


def unsupported(spec: dict) -> str | None:
    """Why this machine cannot run the spec's options, in one line; None if it can."""
    if spec.get("attention") == "triton":
        kernels = load("attention", "triton").fused  # by name: a cell that runs others does not depend on it
        if reason := kernels.unsupported(torch.device(spec["device"])):
            return reason
    if spec["device"] == "cuda":
        return None
    if spec.get("compile") == "graphs":
        return "CUDA graphs need a GPU"
    if spec.get("attention") == "flex":
        return "flex trains on a GPU only"
    if spec.get("compile", "none") != "none" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        return "torch.compile needs a C++ compiler on a CPU; install g++"
    return None


class OptimisedWorkload(Workload):
    """A workload with the spec's `compile` (none, block, model, graphs) and `checkpoint` (every k blocks, 0: none)."""

    def __init__(self, spec: dict):
        super().__init__(spec)
        if "model" not in spec:  # one's own is made with its options
            self._optimise(self._model, spec.get("compile", "none"), spec.get("checkpoint", 0))
        self.parameters = self._trained()

    def _optimise(self, model: nn.Module, compiled: str, every: int) -> None:
        if compiled in ("block", "graphs"):
            for block in model.blocks:
                block.compile()
        if every:
            recompute_blocks(model, every)
        if compiled == "model":
            model.compile()

    @property
    def loss(self) -> Tensor:
        """The latest loss, a scalar. Raises RuntimeError if there is none."""
        if self._loss is None:
            raise RuntimeError("no forward pass has been run, or its graph has been dropped")
        return self._loss


class GraphedWorkload(OptimisedWorkload):
    """The same, with forward and backward each replayed from a CUDA graph; the optimizer runs as it is.

    Gradients keep their place in memory: each replayed backward pass writes over those of the one before.
    """

    def __init__(self, spec: dict):
        super().__init__(spec)
        self._graphs: dict[str, torch.cuda.CUDAGraph] = {}

    def capture(self) -> None:
        """Record forward and backward. The work before must have compiled all kernels."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(BEFORE_CAPTURE):
                self.clear_gradients()
                self._forward()
                self._backward()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.clear_gradients()
        self.drop_graph()
        torch.cuda.empty_cache()
        forward, backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(forward):
            self._forward()
        with torch.cuda.graph(backward, pool=forward.pool()):
            self._backward()
        self._graphs = {"forward": forward, "backward": backward}

    def phases(self, mode: str) -> dict[str, Callable[[], None]]:
        """The phases of a mode, in their order; replayed once they are captured."""
        plain = super().phases(mode)
        return {name: self._graphs[name].replay if name in self._graphs else phase for name, phase in plain.items()}

    def clear_gradients(self) -> None:
        """Drop the gradients; replayed passes overwrite them instead."""
        if not self._graphs:
            super().clear_gradients()

    def drop_graph(self) -> None:
        """Let go of the loss; a replayed forward pass writes to the same one again."""
        if not self._graphs:
            super().drop_graph()


def workload(spec: dict) -> OptimisedWorkload:
    """The workload of a spec."""
    return GraphedWorkload(spec) if spec.get("compile") == "graphs" else OptimisedWorkload(spec)


def recompute_blocks(model: nn.Module, every: int) -> None:
    """Group the model's blocks by `every`; of each group only the input is kept for the backward pass, which runs the
    group's forward pass again (Chen et al. 2016)."""
    blocks = list(model.blocks)
    groups = [blocks[start : start + every] for start in range(0, len(blocks), every)]
    model.blocks = nn.ModuleList(RecomputedBlocks(group) for group in groups)


class RecomputedBlocks(nn.Module):
    """Consecutive blocks whose activations are computed again in the backward pass. Same shape in and out."""

    def __init__(self, blocks: list[nn.Module]):
        super().__init__()
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        # Nothing in the model draws random numbers: their state need not be kept.
        return checkpoint(self.blocks, x, use_reentrant=False, preserve_rng_state=False)
