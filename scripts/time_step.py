"""Time a Transformer's training step and its phases: one cell, measured by several fresh processes.

Each begins with phased steps of the heaviest mode, every one kept from the very first on, and goes
on with free steps of this mode and the lighter ones (step, forward-backward, forward, inference).
On a GPU follow the step replayed from a CUDA graph, the energy, and in the last process launches
and kernels. Prints times in milliseconds, memory in MiB. With --out it also writes record.json and
samples.csv. Running out of memory is a result, with exit code 0.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import sys

from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.measure.cell import Measurement


def main() -> None:
    with Measurement(studies.TIMING.file, *parse(sys.argv[1:])) as running:
        from stepscope.measure import timing

        running.finish(running.in_processes(timing.measure))


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    return flags.read(
        __doc__, words, studies.TIMING, (*flags.MODEL, *flags.OPTIONS, *flags.BUDGET)
    )[:2]


if __name__ == "__main__":
    main()
    process.leave()
