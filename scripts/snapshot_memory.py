"""Record every allocation of a few training steps of a Transformer: one cell, as a PyTorch memory
snapshot.

Warm-up steps come first, outside the recording. On a GPU the snapshot is the allocator's history,
on a CPU it is made from torch.profiler's memory events. It prints the peak and the phases' times by
the host's clock, in milliseconds, taken in the same recorded steps. With --out it also writes
record.json, samples.csv and a folder with snapshot.pickle, which pytorch.org/memory_viz opens, and
known.json, which says what each block is; `analyze_snapshot.py` makes tables of both.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import json
import pickle
import sys

from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.measure.cell import Measurement


def main() -> None:
    with Measurement(studies.MEMORY.file, *parse(sys.argv[1:]), files="snapshot") as running:
        from stepscope.measure import memory_steps

        found = memory_steps.measure(running.spec, running.telemetry)
        running.check_memory(found.outcome.status)
        about: dict = {"baselines": found.baselines, "snapshot": None, "known": None}
        if found.snapshot:
            about |= {"snapshot": "snapshot.pickle", "known": "known.json"}
            with (running.folder / "snapshot.pickle").open("wb") as file:
                pickle.dump(found.snapshot, file)
            (running.folder / "known.json").write_text(json.dumps(found.known))
        running.finish([found.found], {"memory": about})


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    keys = (*flags.MODEL, *flags.OPTIONS, *flags.FIXED)
    return flags.read(__doc__, words, studies.MEMORY, keys, steps=1)[:2]


if __name__ == "__main__":
    main()
    process.leave()
