"""The labels under which results stand, and the machine behind each."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hardware:
    """A label, and the machine behind it.

    `here`: the machine at hand. `measured`: False to use the results that are there and plan
    nothing. `expect`: what the name of its GPU or CPU has to contain. `asked`: what a job asks
    Slurm for. `python`: the interpreter that measures there, None for the one that runs the
    workflow. `gpus`: how many of one type it has for a cell on several devices.
    """

    label: str
    device: str
    threads: int
    here: bool = True
    measured: bool = True
    expect: str | None = None
    asked: dict = field(default_factory=dict)
    python: str | None = None
    gpus: int = 1

    @property
    def by_jobs(self) -> bool:
        """Whether its cells are measured by jobs of a cluster."""
        return self.measured and not self.here


def is_expected(name: str, expect: str) -> bool:
    """Whether a GPU's or CPU's name contains what is expected, in any case."""
    return expect.lower() in name.lower()
