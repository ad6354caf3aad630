"""A rank's place among the others, and what ranks tell each other beside the step."""

import datetime
import functools
import os
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from stepscope.measure.clock import Clock
from stepscope.measure.telemetry import Telemetry

PATIENCE = datetime.timedelta(minutes=5)  # a rank that was lost is seen at once, by the runner


@dataclass(frozen=True)
class Place:
    """One of `devices` ranks that are on a device of a type: `cpu` or `cuda`.

    It meets the others by a file that none of them has used before. Tensors of the host go over
    gloo, which also tells what is no part of a step: it puts nothing on the GPU.
    """

    rank: int
    devices: int
    device: str
    file: Path
    telemetry: Telemetry

    def __post_init__(self) -> None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a host may not know its own name
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if self.device == "cuda" else "gloo",
            store=dist.FileStore(str(self.file), self.devices),
            rank=self.rank,
            world_size=self.devices,
            timeout=PATIENCE,
        )

    @property
    def clock(self) -> Clock:
        return Clock(self.device)

    @functools.cache  # noqa: B019 - there is one place a process
    def group(self, ctas: int = 0) -> dist.ProcessGroup:
        """All ranks, whose collectives run on at most so many of a GPU's multiprocessors; 0: as
        NCCL likes it. On a CPU there is but one kind."""
        if not ctas or self.device == "cpu":
            world = dist.group.WORLD
            assert world is not None, "joined"
            return world
        options = dist.ProcessGroupNCCL.Options()
        options.config.max_ctas = ctas
        return dist.new_group(backend="nccl", pg_options=options)

    def agreed(self, value: float = 0.0) -> float:
        """The first rank's value, on all of them: where they decide by time, they decide alike.
        Without a value they only meet."""
        told = torch.tensor(value, dtype=torch.float64)
        dist.broadcast(told, 0)
        return float(told)
