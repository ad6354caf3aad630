"""Do the parts of a step on several devices add up, and are faults found where they belong?

    python benchmarks/parallel_adds_up.py [--devices 2] [--device cpu] [--size nano …]

Takes the flags of scripts/time_parallel.py but --variants. Measures three cells: as they are, with
faults planted on the last rank, and with a batch that is uneven. Prints the parts of each rank's
step, the residual as a share of it, and for each fault the part in which it has to show, with how
much of it does. Exit code 1: a residual above 1 %, or a fault that is not found.
"""

import sys
import time
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

MOST_RESIDUAL = 0.01
LEAST_FOUND = 0.5  # of what was planted: on a busy host steps vary by as much
LEAST_LONGER = 0.1  # of a step, for an uneven batch to be one
# On a CPU, whose neighbours take their share, faults have to be large beside a step.
DELAY = {"cuda": 0.02, "cpu": 0.3}  # seconds
BYTES = {"cuda": 2**30, "cpu": 2**25}  # more to send
PROBE = {"cuda": 50_000_000, "cpu": 40_000_000}  # cycles of a GPU, entries on a CPU

PLAIN = ("alone", "naive", "overlapped", "ddp", "fsdp")
PLANTED = ("alone", "naive", "delayed", "more bytes", "slower kernel")
UNEVEN = ("alone", "naive")


def main() -> None:
    import time_parallel

    words = sys.argv[1:]
    failed = False
    for names, plant in ((PLAIN, None), (PLANTED, plant_faults), (UNEVEN, plant_uneven)):
        spec, settings = time_parallel.parse([*words, "--processes", "1"])
        spec["variants"] = [{"name": name.replace(" ", "-"), "strategy": name} for name in names]
        rows = measured(spec, settings, plant)
        failed |= show(rows)
        if names == PLANTED:
            failed |= judge(rows, DELAY[spec["device"]])
        if names == UNEVEN:
            failed |= judge_uneven(rows)
    sys.exit(1 if failed else 0)


def measured(spec: dict, settings, plant) -> list[dict]:
    """The rows of a cell's ranks."""
    from stepscope.parallel.cell import ParallelMeasurement

    with ParallelMeasurement("time_parallel.py", spec, settings) as cell:
        from stepscope.parallel import measuring

        if cell.failed:
            sys.exit(1)  # it has said why
        if plant:
            plant()
        examined = cell.together(measuring.examine)
    return measuring.step_tables(examined)["ranks"]


def plant_faults() -> None:
    """Strategies with a fault each; `alone` has the kernel that one of them makes slower."""
    import torch
    import torch.distributed as dist
    from stepscope.measure.clock import Clock
    from stepscope.parallel.strategies import STRATEGIES, Alone, Naive, Replica

    def is_last(work: Replica) -> bool:
        return work._place.rank == work._place.devices - 1

    def probe(work: Replica, is_slow: bool) -> None:
        """A kernel that takes twenty times as long where it is slow."""
        size = PROBE[work._place.device] // (1 if is_slow else 20)
        if work._place.device == "cuda":
            torch.cuda._sleep(size)
        else:
            torch.arange(size)

    class Probed(Alone):
        def _backward(self) -> None:
            super()._backward()
            probe(self, False)

    class Probing(Replica):  # between the backward pass and what is sent
        is_slow = False

        def _backward(self) -> None:
            super()._backward()
            probe(self, self.is_slow and is_last(self))

    class PlainNaive(Naive, Probing):
        pass

    class Delayed(PlainNaive):
        def _backward(self) -> None:
            if is_last(self):
                Clock(self._place.device).synchronize()
                time.sleep(DELAY[self._place.device])
            super()._backward()

    class MoreBytes(PlainNaive):
        def _share(self) -> None:
            super()._share()
            device = self._place.device
            self._more = torch.zeros(BYTES[device] // 4, device=device)

        def _backward(self) -> None:
            super()._backward()
            dist.all_reduce(self._more, group=self._group)

    class SlowerKernel(Naive, Probing):
        is_slow = True

    planted = (Probed, PlainNaive, Delayed, MoreBytes, SlowerKernel)
    STRATEGIES.update(zip(PLANTED, planted, strict=True))


def plant_uneven() -> None:
    """The last rank takes the whole batch, all others their part."""
    from stepscope.parallel.strategies import STRATEGIES, Alone, Naive, Replica

    def take(self: Replica, part: int) -> None:
        each, last = self.spec["batch"], self._place.devices - 1
        start = 0 if self._place.rank == last else part * each
        self.model.choose(slice(start, (part + 1) * each))

    for name, strategy in (("alone", Alone), ("naive", Naive)):
        STRATEGIES[name] = type(f"Uneven{strategy.__name__}", (strategy,), {"_take": take})


def show(rows: list[dict]) -> bool:
    """Print the parts and the residual; whether one is too large."""
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format))
    worst = max(rows, key=lambda row: abs(row["residual"]) / row["clock"])
    share = abs(worst["residual"]) / worst["clock"]
    print(f"largest residual: {share:.2%} of the step ({worst['variant']}, rank {worst['rank']})\n")
    return share > MOST_RESIDUAL


def judge(rows: list[dict], delay: float) -> bool:
    """Print for each fault where it shows; whether one is not found there. delay: in seconds."""
    last = max(row["rank"] for row in rows)
    of = {(row["variant"], row["rank"]): row for row in rows}

    def more(variant: str, rank: int, *parts: str) -> float:
        after, before = of[variant, rank], of["naive", rank]
        return sum(after[part] - before[part] for part in parts)

    slower = more("slower-kernel", last, "slowed", "apart")
    found = [
        ("delay: the last rank's idle", more("delayed", last, "idle"), delay),
        ("delay: the first's waiting", more("delayed", 0, "waiting"), delay),
        ("more bytes: transfer", more("more-bytes", 0, "transfer"), None),
        ("slower kernel: slowed", slower, None),
        ("slower kernel: the first's waiting", more("slower-kernel", 0, "waiting"), slower),
    ]
    failed = False
    for said, seconds, planted in found:
        is_found = seconds > (LEAST_FOUND * planted if planted else 0)
        beside = f" of {1e3 * planted:.1f}" if planted else ""
        print(f"{said}: {1e3 * seconds:+.1f}{beside} ms: {'found' if is_found else 'NOT found'}")
        failed |= not is_found
    print()
    return failed


def judge_uneven(rows: list[dict]) -> bool:
    """The rank with more work computes longer, also alone, and the others wait for as long as its
    step takes longer: where launches limit, that is less than it computes longer."""
    of = {(row["variant"], row["rank"]): row for row in rows}
    last = max(row["rank"] for row in rows)
    more, longer = (of["alone", last][key] - of["alone", 0][key] for key in ("alone", "clock"))
    waits = of["naive", 0]["waiting"] - of["naive", last]["waiting"]
    is_found = more > 0 and waits > LEAST_FOUND * longer
    print(f"uneven batch: computing {1e3 * more:+.1f} ms on the last rank, whose step alone takes")
    print(f"{1e3 * longer:+.1f} ms longer; the first waits {1e3 * waits:+.1f} ms longer:", end=" ")
    if longer < LEAST_LONGER * of["alone", 0]["clock"]:
        print("not judged: launches limit the step, take a larger batch")
        return False
    print("found" if is_found else "NOT found")
    return not is_found


if __name__ == "__main__":
    main()
