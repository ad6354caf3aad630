"""What is said of variants that were trained, by planted losses."""

import math

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from stepscope.results import learning

FREQUENCIES = 3.14
CELL = "gpu/learning/small"


def ends(machine, **losses):
    """Where variants end; losses: of each in the first order, the second …; the first is fp32."""
    place = {"machine": machine, "cell": f"{machine}/learning/small", "frequencies": FREQUENCIES}
    return pd.DataFrame(
        [
            place | {"variant": name, "order": order, "held_out": loss}
            for name, of_orders in losses.items()
            for order, loss in enumerate(of_orders, start=1)
        ]
    )


def judged(**losses):
    """The rows by variant."""
    return learning.judged(ends("gpu", **losses), {CELL: "fp32"}).set_index("variant")


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ([1.30, 1.302], "same"),
        ([1.40, 1.41], "worse"),
        ([1.20, 1.21], "better"),
        ([1.30, 1.40], "unclear"),  # one order alone differs
        ([1.325, 1.335], "unclear"),  # about the margin
        ([2.21, 2.21], "worse"),  # gains 0.93 of the first's 1.84
        ([2.23, 2.23], "does not learn"),  # gains less than half of 1.84
        ([1.30, 3.10], "does not learn"),  # in one of the orders
        ([1.30, None], "does not learn"),  # no finite number
        ([None, None], "does not learn"),
    ],
)
def test_a_verdict_for_each_way_to_end(losses, verdict):
    assert judged(fp32=[1.30, 1.30], other=losses).loc["other", "verdict"] == verdict


def test_nothing_is_said_where_the_first_has_not_learned():
    found = judged(fp32=[3.05, 3.05], other=[3.05, 3.05], fp16=[4.0, 4.0])
    assert list(found["verdict"]) == ["", "unclear", "unclear"]
    assert judged(fp32=[None, None], bf16=[1.3, 1.3]).loc["bf16", "verdict"] == "unclear"
    assert judged(bf16=[1.3, 1.3]).loc["bf16", "verdict"] == "unclear"


def test_the_interval_is_students_of_the_ratios_logarithms():
    found = judged(fp32=[1.30, 1.32], bf16=[1.31, 1.32]).loc["bf16"]
    logs = np.log([1.31 / 1.30, 1.0])
    half = 12.7062 * abs(logs[0] - logs[1]) / 2  # t of one degree of freedom; sd over root 2
    ends = np.exp([logs.mean() - half, logs.mean() + half])
    assert [found["ratio_low"], found["ratio_high"]] == approx(ends, rel=1e-6)
    assert found["ratio"] == approx(np.exp(logs.mean()))
    assert found["held_out"] == approx(math.sqrt(1.31 * 1.32))


def test_what_does_not_learn_lends_nobody_its_spread():
    alone = judged(fp32=[1.30, 1.31], bf16=[1.30, 1.312])
    beside = judged(fp32=[1.30, 1.31], bf16=[1.30, 1.312], fp16=[2.9, 5.0])
    columns = ["held_out", "low", "high", "ratio_low", "ratio_high"]
    assert beside.loc["bf16", columns].tolist() == alone.loc["bf16", columns].tolist()


def test_another_machines_variants_change_no_verdict():
    """False discoveries are controlled on each machine by itself."""
    others = {f"like-{at}": [1.29, 1.31] for at in range(40)}
    own = ends("gpu", fp32=[1.30, 1.30], other=[1.3313, 1.3317])
    crowded = ends("crowded", fp32=[1.30, 1.30], **others)
    for rows in (own, pd.concat([own, crowded])):
        firsts = dict.fromkeys(rows["cell"], "fp32")
        found = learning.judged(rows, firsts).query("machine == 'gpu'").set_index("variant")
        assert found.loc["other", "verdict"] == "worse"


def test_one_order_has_no_verdict():
    found = judged(fp32=[1.30], bf16=[1.31], fp16=[3.3])
    assert list(found["verdict"]) == ["", "unclear", "does not learn"]
    assert found.loc["bf16", "ratio"] == approx(1.31 / 1.30)
