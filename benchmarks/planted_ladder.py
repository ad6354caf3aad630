"""scripts/time_ladder.py with one variant that is slower by a known share, for second_run.py; on a
CPU.

python benchmarks/planted_ladder.py --share 0.05 -- --size nano --context 64 --device cpu --variants
'…' [--out DIR]

What stands behind `--` is given to scripts/time_ladder.py. Each whole step of the variant `slow`
ends with a wait of so large a share of what the step has taken by then: its ratio is known whatever
the host does meanwhile.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

SLOW = "slow"


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument(
        "--share", type=float, required=True, help="by how much longer the step takes"
    )
    flags.add_argument(
        "words", nargs="+", metavar="FLAG", help="of scripts/time_ladder.py, behind --"
    )
    given = flags.parse_args()

    import time_ladder

    sys.argv[1:] = given.words
    spec, _ = time_ladder.parse(given.words)
    if spec["device"] != "cpu":
        sys.exit("error: on a GPU the host does not know how long a step takes; add --device cpu")
    from stepscope.machine import process

    process.set_environment(spec["threads"])  # torch, which the next line imports, reads it
    from stepscope.measure import ladder

    plant(ladder._Process, given.share)
    time_ladder.main()


def plant(process: type, share: float) -> None:
    """Let the variant SLOW of every process of a ladder wait at the end of its steps."""
    prepare = process._prepare

    def prepare_slow(self, name: str) -> None:
        prepare(self, name)
        if name == SLOW:
            slow_down(self._works[SLOW], share)

    process._prepare = prepare_slow


def slow_down(work: object, share: float) -> None:
    """Let a workload's steps take longer by a share of what they have taken from their forward pass
    on."""
    forward, optimize, began = work._forward, work._optimizer, 0.0

    def begin() -> None:
        nonlocal began
        began = time.perf_counter()
        forward()

    def end() -> None:
        optimize()
        now = time.perf_counter()
        while time.perf_counter() < now + share * (now - began):
            pass

    work._forward, work._optimizer = begin, end


if __name__ == "__main__":
    main()
