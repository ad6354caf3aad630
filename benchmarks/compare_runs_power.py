"""What compare_runs.py finds and what it does not, on made-up runs whose spreads are known (made_up_runs.py).

python benchmarks/compare_runs_power.py [--runs 200] [--larger-control] [--json FILE]

Printed, for what the GPU limits and for what launches limit: of how many phases of unchanged runs something is called
faster or slower (aim: at most 1 %), how often the control fires and how often a common shift is named there; and how
much is found of what is planted:

- backward: 5 % in the backward pass of a third of the cells;
- kernel: one kernel of the forward pass in bf16, 5 % of that pass;
- driver: everything takes 1.08 times as long;
- clock: the SM clock falls by 8 %, which is no change of the program.

Of the phases that take the planted share longer: how many are called slower. Both passes together and the step hold
less of it than that; they count as parts. Of all others: how many are called faster or slower, which is wrong.
--larger-control measures twelve points twice instead of four: how small a difference can be found depends on how well
the control tells what unchanged cells differ by.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import made_up_runs
from made_up_runs import SERIES, Change, Point, results
from stepscope.report.kit.compare import FASTER, SLOWER
from stepscope.report.runs.judging import Pair, compared
from stepscope.report.runs.shift import shifts

CALLED = (FASTER, SLOWER)
SIZE = 0.05
DRIVER, CLOCK = 1.08, 0.92
# The phases that a pass is a part of.
WITHIN = {
    "backward": ("backward", "forward_backward", "step"),
    "forward": ("inference", "free_forward", "forward", "forward_backward", "step"),
}


def slower(phase: str, is_in) -> Change:
    """SIZE of a pass, in the cells for which `is_in` holds; in what the pass is a part of, as much of the time."""

    def change(point: Point, name: str) -> float:
        if name not in WITHIN[phase] or not is_in(point):
            return 1.0
        return 1 + SIZE * min(1.0, SERIES[phase][3] / SERIES[name][3])

    return change


def unchanged(point: Point, name: str) -> float:
    """Nothing is planted."""
    return 1.0


CHANGES: dict[str, tuple[Change, float]] = {
    "unchanged": (unchanged, 1.0),
    "backward": (slower("backward", lambda point: point.context == made_up_runs.CONTEXTS[-1]), 1.0),
    "kernel": (slower("forward", lambda point: point.precision == "bf16"), 1.0),
    "driver": (lambda point, name: DRIVER, 1.0),
    "clock": (unchanged, CLOCK),
}


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--runs", type=int, default=200, help="pairs of unchanged runs; a quarter of each other kind")
    flags.add_argument("--larger-control", action="store_true", help="measure 12 points twice, and not 4")
    flags.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there as well")
    given = flags.parse_args()
    control = made_up_runs.LARGER_CONTROL if given.larger_control else made_up_runs.CONTROL
    runs = {kind: given.runs if kind == "unchanged" else max(1, given.runs // 4) for kind in CHANGES}
    rows = [row for kind in CHANGES for row in tried(kind, runs[kind], control)]
    head = list(rows[0])
    print(f"| {' | '.join(head)} |\n|{'|'.join(' --- ' for _ in head)}|")
    for row in rows:
        print(f"| {' | '.join(str(value) for value in row.values())} |")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


def tried(kind: str, runs: int, control: Iterable[tuple]) -> Iterator[dict]:
    """A row for each limit: what was found in so many pairs of runs."""
    change, clock = CHANGES[kind]
    counts: dict[str, Counter] = {}
    fired = named = 0
    for seed in range(runs):
        points = list(made_up_runs.grid(control=control))
        found = compared(results(2 * seed, points=points), results(2 * seed + 1, change, points, clock))
        fired += any(found.alarms.values())
        named += any(shifts(found.pairs))
        for pair in found.pairs:
            counts.setdefault(pair.limited_by, Counter())[outcome(pair, change)] += 1
    for limit, own in counts.items():
        yield {
            "planted": kind,
            "limited by": limit,
            "phases": own.total(),
            "planted in": own["found"] + own["missed"],
            "found": own["found"],
            "of parts": own["part found"] + own["part missed"],
            "found of these": own["part found"],
            "of others": own["wrong"] + own["right"],
            "called": own["wrong"],
            "runs": runs,
            "control fired": fired,
            "shift named": named,
        }


def outcome(pair: Pair, change: Change) -> str:
    """What became of a phase: found or missed, of one that holds a part of what is planted `part found` or `part
    missed`, of any other right or wrong."""
    size, context, precision = pair.place.cell.split("/")[2:5]
    point = Point(size, int(context.removeprefix("ctx")), precision, 1, 1.0)
    factor = change(point, pair.place.what)
    if factor == 1.0:
        return "wrong" if pair.verdict in CALLED else "right"
    outcome = "found" if pair.verdict == SLOWER else "missed"
    return outcome if factor >= 1 + SIZE else f"part {outcome}"


if __name__ == "__main__":
    main()
