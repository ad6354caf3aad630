"""The labels under which results stand, and the machine behind each."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from . import gpus, identity

# Environment variable of a run and its jobs: label → Hardware, as JSON. A job of Slurm sets it by
# itself, as it reads the configuration anew.
TOLD = "STEPSCOPE_MACHINES"


@dataclass(frozen=True)
class Hardware:
    """A label, and the machine behind it.

    `here`: the machine at hand. `measured`: False to use the results that are there and plan
    nothing. `expect`: what the name of its GPU or CPU has to contain. `asked`: what a job asks
    Slurm for, as resources. `python`: the interpreter that measures there. `gpus`: how many of one
    type it has for a cell on several devices.
    """

    label: str
    device: str
    threads: int
    here: bool = True
    measured: bool = True
    expect: str = ""
    asked: dict = field(default_factory=dict)
    python: str = "python3"
    gpus: int = 1

    @property
    def by_jobs(self) -> bool:
        """Whether its cells are measured by jobs of a cluster."""
        return self.measured and not self.here

    def check_type(self) -> None:
        """Raise MachineError, with one line, if the machine at hand is not what is expected."""
        name = identity.cpu_name()
        if self.device == "cuda":
            name = "".join(gpu.name for gpu in gpus.visible_gpus()[:1])
        if not name or self.expect.lower() not in name.lower():
            raise identity.MachineError(
                f"config key hardware.{self.label}: this machine is {name or 'without a GPU'}, not"
                f" the expected {self.expect or 'one with a GPU'}; correct expect, or what a job"
                " asks Slurm for, or give the entry measure: false to use results that are there"
            )


def tell(machines: Iterable[Hardware]) -> None:
    """Let the programs that this process starts know of machines."""
    os.environ[TOLD] = json.dumps({one.label: vars(one) for one in machines})


def told(label: str) -> Hardware:
    """What the run knows of a label."""
    return Hardware(**json.loads(os.environ[TOLD])[label])
