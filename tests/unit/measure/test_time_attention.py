"""Attention by itself: implementations in turns, and one that does as it is told."""

from collections import Counter

import pytest
import torch
import written_out
from common import TINY, picked
from stepscope.measure import attention
from stepscope.measure.telemetry import Telemetry

pytestmark = pytest.mark.usefixtures("one_thread")

SPEC = TINY | {"study": "attention", "d_head": 8, "lengths": [16, 4], "steps": 4, "max_steps": 4}
SPEC |= {"max_seconds": 60.0, "variants": [{"name": "naive"}, {"name": "sdpa-flash"}]}
ONE = SPEC | {"variants": [{"name": "naive"}]}
PLACES = [(4, "forward"), (4, "backward"), (16, "forward"), (16, "backward")]


def measured(spec):
    return attention.measure(spec, Telemetry(None), 1)


def test_lengths_come_shortest_first_and_implementations_take_turns_at_each():
    found = measured(SPEC | {"steps": 2, "max_steps": 2})
    assert picked(found.statuses, "length", "direction") == [
        place for place in PLACES for _ in "ab"
    ]
    assert set(picked(found.statuses, "status")) == {"ok"}
    rows = [row for row in found.rows if not row["warmup"]]
    assert list(dict.fromkeys(picked(rows, "length", "direction"))) == PLACES
    turns = [
        (row["round"], row["variant"])
        for row in rows
        if (row["length"], row["direction"]) == PLACES[1]
    ]
    a, b = "naive", "sdpa-flash"
    assert turns == [(1, a), (1, b), (2, b), (2, a)]
    assert sum(picked(found.rows, "warmup")) == 2 * 4
    assert set(picked(found.rows, "kind")) == {"free"}


class Told:
    """An implementation that fails as it is told; it remembers the lengths that it saw."""

    def __init__(self, monkeypatch, error, forward=None, backward=None):
        self.forward_lengths, self.backward_lengths = [], []
        told = self

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, q, k, v):
                told.forward_lengths.append(q.shape[-2])
                if q.shape[-2] == forward:
                    raise error
                ctx.length = q.shape[-2]
                return q * 2

            @staticmethod
            def backward(ctx, gradient):
                told.backward_lengths.append(ctx.length)
                if ctx.length == backward:
                    raise error
                return gradient * 2, gradient, gradient

        monkeypatch.setattr(
            attention,
            "function",
            lambda name, device: lambda q, k, v, is_causal: Function.apply(q, k, v),
        )


OOM = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")


def statuses(spec=ONE):
    return {
        (one["length"], one["direction"]): (one["status"], one["reason"])
        for one in measured(spec).statuses
    }


def test_out_of_memory_backward_leaves_longer_forwards_and_no_longer_backwards(monkeypatch):
    told = Told(monkeypatch, OOM, backward=4)
    assert statuses() == {
        (4, "forward"): ("ok", ""),
        (4, "backward"): ("oom", "CUDA out of memory. Tried to allocate 2 GiB."),
        (16, "forward"): ("ok", ""),
        (16, "backward"): ("oom", "length 4 ran out of memory"),
    }
    assert told.backward_lengths == [4]


def test_what_forward_kept_is_known_where_backward_runs_out_of_memory(monkeypatch):
    """On a GPU; here what its allocator says is made up: 300 bytes at rest, 1,300 after forward."""
    monkeypatch.setattr(attention.memory, "held", lambda device: {"peak_allocated": 300})
    run = attention._Process(ONE, Telemetry(None), 1)
    run._after_forward = 1300
    place = {"length": 4, "direction": "backward"}
    run._note_sizes("naive", attention._inputs(ONE, 4), False, place)
    inputs = 3 * 4 * ONE["batch"] * 4 * ONE["d_head"]  # Q, K and V of one head in fp32
    (kept,) = picked(run.found.values, quantity="before_backward")
    assert (kept["value"], kept["length"], kept["direction"]) == (1000 + inputs, 4, "backward")


def test_out_of_memory_forward_ends_both(monkeypatch):
    told = Told(monkeypatch, OOM, forward=4)
    assert {status for status, _ in statuses().values()} == {"oom"}
    assert told.forward_lengths == [4]


def test_what_cannot_be_done_is_unsupported_and_the_others_go_on(monkeypatch):
    real = attention.function

    def function(name, device):
        if name == "sdpa-flash":
            raise attention.Unsupported("not on this machine")
        return real(name, device)

    monkeypatch.setattr(attention, "function", function)
    found = measured(SPEC)
    of = set(picked(found.statuses, "variant", "status", "reason"))
    assert of == {("naive", "ok", ""), ("sdpa-flash", "unsupported", "not on this machine")}


def test_a_number_of_tokens_is_a_batch_for_each_length():
    assert [attention.batch_of({"tokens": 64}, length) for length in (4, 16, 64, 128)] == [
        16,
        4,
        1,
        1,
    ]


WAYS = [
    {},
    {"mask": "causal"},
    {"mask": "causal", "window": 3},
]


@pytest.mark.parametrize("implementation", ["sdpa-flash", "naive"])
@pytest.mark.parametrize("heads", [{}, {"heads": 4}, {"heads": 4, "key_value_heads": 2}])
@pytest.mark.parametrize("way", WAYS)
def test_a_pass_computes_what_the_spec_says(way, heads, implementation):
    """One pass, forward and backward, against the formula in float64."""
    spec = SPEC | way | heads | {"variants": [{"name": implementation}]}
    inputs = attention._inputs(spec, 10)
    assert [each.shape[-2] for each in inputs] == [10, 10, 10]
    run = attention._Process(spec, Telemetry(None), 1)
    result = run._functions[implementation](*inputs)
    wide = [each.detach().double().requires_grad_() for each in inputs]
    expected, _ = written_out.attention(*wide, "mask" in way, way.get("window"))
    torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5)
    gradient = torch.randn_like(result)
    result.backward(gradient)
    expected.backward(gradient.double())
    for own, reference in zip(inputs, wide, strict=True):
        torch.testing.assert_close(own.grad.double(), reference.grad, rtol=1e-4, atol=1e-5)


def test_the_program_writes_a_record_and_every_sample(measured_cell):
    quick = (
        "--device cpu --threads 1 --processes 2 --warmup 1 --steps 4 --max-steps 4 --lengths [4,16]"
        " --d-head 8"
    )
    variants = '[{"name":"sdpa-flash"},{"name":"triton"},{"name":"fa4"}]'
    cell = measured_cell("time_attention.py", f"{quick} --batch 2 --variants {variants}")
    about = cell.record["summary"]["variants"]
    assert {name: one["status"] for name, one in about.items()} == {
        "sdpa-flash": "ok",
        "triton": "unsupported",
        "fa4": "unsupported",
    }
    assert cell.record["machine"]["packages"] == {"flash-attn-4": None}
    assert about["triton"]["reason"] == "triton trains on a GPU only"
    assert cell.record["spec"]["lengths"] == [4, 16]
    keys = ("process", "length", "direction", "warmup")
    counts = Counter(tuple(row[key] for key in keys) for row in cell.rows)
    assert {key[0] for key in counts} == {"1", "2"} and len(counts) == 2 * 4 * 2
    for key, count in counts.items():  # a turn that was short for its time leaves one step more
        assert count in ((1,) if key[-1] == "True" else (4, 5))
    assert "triton 4 forward: unsupported: triton trains on a GPU only" in cell.out
