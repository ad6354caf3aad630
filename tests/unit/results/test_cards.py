"""Cards beside others of their type: what stands beside what, and when one is not like them."""

import math

import pandas as pd
import pytest
from stepscope.results import cards

HEAD = "gpu,quantity,size,parameters,context,batch,precision,card,unit,value"
# Of the first card the digest is `printf first | sha256sum`.
KNOWN = """
T4,rate,matmul,,,,bf16,a7937b64,FLOP/s,100
T4,rate,matmul,,,,bf16,b,FLOP/s,102
T4,rate,matmul,,,,fp32,a7937b64,FLOP/s,10
T4,busy_time,small,1000,128,4,bf16,a7937b64,s,0.010
T4,busy_time,small,1000,128,4,bf16,b,s,0.012
L4,rate,matmul,,,,bf16,c,FLOP/s,50
"""
CELLS = [
    {"cell": "t4/ceilings/matmul/bf16", "gpu": "T4", "gpu_uuid": "mine"},
    {"cell": "t4/timing/small/ctx128/bf16", "gpu": "T4", "gpu_uuid": "mine"},
    {"cell": "cpu/ceilings/matmul/bf16", "gpu": "", "gpu_uuid": ""},
]
MODEL = {"parameters": 1000}
RATE = {"study": "ceilings", "quantity": "rate", "variant": "burst", "size": "matmul"}
RATE |= {"context": math.nan, "batch": math.nan, "precision": "bf16", "unit": "FLOP/s"}
RATE |= {"mode": "", "phase": "", "options": ""}
BUSY = {"study": "timing", "quantity": "busy_time", "variant": "step", "size": "small"}
BUSY |= {"context": 128.0, "batch": 4.0, "precision": "bf16", "unit": "s"}
BUSY |= {"mode": "step", "phase": "step", "options": ""}


@pytest.fixture
def found(tmp_path, monkeypatch):
    """The rows of series of these medians."""
    path = tmp_path / "cards.csv"
    path.write_text(HEAD + KNOWN)
    monkeypatch.setattr(cards, "REFERENCE", path)

    def rows(*series):
        made = pd.DataFrame(series).assign(machine="t4")
        models = pd.DataFrame([{"size": "small", "parameters": MODEL["parameters"]}])
        return cards.rows(made, pd.DataFrame(CELLS), models).to_dict("records")

    return rows


def rate(value, cell="t4/ceilings/matmul/bf16", **more):
    return RATE | {"cell": cell, "median": value} | more


def busy(value, **more):
    return BUSY | {"cell": "t4/timing/small/ctx128/bf16", "median": value} | more


@pytest.mark.parametrize(
    "own, standing",
    [
        (rate(101.0), "like them"),
        (rate(95.3), "like them"),  # 100 / 1.05 = 95.24
        (rate(95.2), "slower"),
        (rate(107.0), "like them"),  # 102 x 1.05 = 107.1
        (rate(107.2), "faster"),
        (busy(0.0126), "like them"),
        (busy(0.0127), "slower"),
        (busy(0.0095), "faster"),
    ],
)
def test_a_card_is_beyond_all_others_by_more_than_a_margin(own, standing, found):
    (row,) = found(own)
    assert row["standing"] == standing
    assert row["cards"] == 2
    assert [row["low"], row["high"]] == ([100, 102] if row["unit"] == "FLOP/s" else [0.010, 0.012])


def test_only_the_same_of_the_same_type_is_beside(found):
    others = [
        rate(50.0, cell="cpu/ceilings/matmul/bf16"),
        rate(50.0, precision="fp16"),
        rate(50.0, variant="sustained"),
        busy(0.01, batch=8.0),
        busy(0.01, options="attention=sdpa"),
    ]
    assert found(*others) == []


def test_what_is_committed_is_of_several_cards():
    known = pd.read_csv(cards.REFERENCE)
    assert not known.duplicated([*cards.LIKE, "card"]).any()
    products = known.query("gpu == 'NVIDIA H200' and size == 'matmul' and precision == 'bf16'")
    assert products["card"].nunique() >= 2
    assert products["value"].between(790e12, 989.5e12).all()


def test_a_card_is_not_held_against_itself(found, monkeypatch):
    monkeypatch.setitem(CELLS[0], "gpu_uuid", "first")
    (row,) = found(rate(100.0))
    assert (row["cards"], row["low"], row["high"]) == (1, 102, 102)
    assert found(rate(10.0, precision="fp32")) == []


def test_another_model_of_the_same_name_is_not_beside(found, monkeypatch):
    monkeypatch.setitem(MODEL, "parameters", 2000)
    assert found(busy(0.02)) == []
