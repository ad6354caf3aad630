"""benchmarks/second_run.py on made-up tables of two runs; and the share by which a planted step is
longer."""

import time

import pandas as pd
import planted_ladder
import pytest
import second_run
from made_up import rows
from stepscope.results import tables

CELL = {
    "study": "ladder",
    "size": "nano",
    "context": 64,
    "quantity": "time",
    "phase": "step",
    "mode": "step",
}


def run(folder, comparisons, series):
    """The tables of a run with these rows."""
    folder.mkdir()
    for name, own in (("comparisons", comparisons), ("series", series)):
        table = pd.DataFrame([CELL | row for row in own])
        table.to_csv(folder / f"{name}.csv", index=False)
    return tables.Tables(folder)


RATIO = "a b low high verdict in_turns"
SERIES = "variant quantity low high median"


def test_two_runs_side_by_side(tmp_path):
    first = run(
        tmp_path / "1",
        rows({}, RATIO,
             ("a", "b", 1.00, 1.08, "unclear", True), ("a", "c", 1.00, 1.09, "unclear", True),
             ("b", "c", 1.10, 1.12, "faster", True), ("a", "d", 0.5, 2.0, "unclear", False)),
        rows({}, SERIES,
             ("a", "time", 1.0, 2.0, 1.5), ("b", "time", 1.0, 2.0, None),
             ("c", "time", None, None, 3.0), ("a", "busy_time", None, None, 1.000),
             ("a", "launches", None, None, 100), ("b", "launches", None, None, 7)),
    )  # fmt: skip
    second = run(
        tmp_path / "2",
        rows({}, RATIO,
             ("a", "b", 1.08, 1.10, "faster", True), ("a", "c", 1.10, 1.12, "faster", True),
             ("b", "c", 0.80, 0.82, "slower", True), ("a", "d", 0.5, 2.0, "unclear", False)),
        rows({}, SERIES,
             ("a", "time", 1.9, 2.5, 2.2), ("b", "time", 2.1, 2.2, None),
             ("c", "time", None, None, 3.1), ("a", "busy_time", None, None, 1.004),
             ("a", "launches", None, None, 100), ("b", "launches", None, None, 8)),
    )  # fmt: skip
    assert dict(second_run.agreement(first, second)) == {
        # 1.08 to 1 is ± 3.9 %, 1.09 ± 4.4 %
        "run 1: ratios in turns with intervals within ± 4 %": "2 of 3 (66.7%)",
        "run 2: ratios in turns with intervals within ± 4 %": "3 of 3 (100.0%)",
        "series whose intervals overlap": "1 of 2 (50.0%)",
        "ratios whose intervals overlap": "2 of 4 (50.0%)",
        "verdicts that turned": "1 of 1 (100.0%)",
        "busy_time: largest difference": "0.40%",
        "host_free_time: largest difference": "none measured",
        "launches that differ": "1 of 2 (50.0%)",
    }


def test_equal_pairs_and_planted_ones_are_counted_apart():
    last = f"equal{second_run.EQUAL - 1}"
    pairs = [
        ("equal0", "equal1", "same", "step"),
        ("equal0", "equal2", "slower", "step"),
        (last, "slow", "slower", "step"),
        (last, "slow", "unclear", "step"),
        ("equal0", "slow", "faster", "step"),
        ("equal0", "equal1", "faster", "forward"),
    ]
    table = pd.DataFrame(pairs, columns=["a", "b", "verdict", "phase"])
    found = dict(
        second_run.controls(table.assign(**CELL | {"phase": table["phase"]}, in_turns=True))
    )
    assert found == {
        "equal pairs called different": "1 of 2 (50.0%)",
        "planted 5% slower found": "1 of 2 (50.0%)",
    }


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_planted_step_is_longer_by_its_share(share, monkeypatch):
    now = [10.0]

    def clock():
        now[0] += 0.001  # each look takes a millisecond
        return now[0]

    class Work:
        def _forward(self):
            now[0] += 2.0

        def _optimizer(self):
            now[0] += 1.0

    monkeypatch.setattr(time, "perf_counter", clock)
    work = Work()
    planted_ladder.slow_down(work, share)
    work._forward()
    work._optimizer()
    assert now[0] - 10 == pytest.approx(3 * (1 + share), abs=0.01)
