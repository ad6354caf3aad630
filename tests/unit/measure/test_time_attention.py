"""The attention program: run as a person runs it, and its parts with an implementation that does as it is told."""

import csv
import functools
import json

import pytest
import torch
from stepscope.measure import attention, attention_host
from stepscope.measure.telemetry import Telemetry
from stepscope.model import flops

SPEC = {
    **{
        "study": "attention",
        "implementation": "naive",
        "batch": 2,
        "d_head": 8,
        "lengths": "16,4",
        "precision": "fp32",
    },
    **{"warmup": 1, "steps": 4, "max_seconds": 60, "seed": 0, "threads": 1, "device": "cpu"},
}
QUICK = "--device cpu --threads 1 --processes 1 --warmup 1 --steps 4 --lengths 4,16 --d-head 8 --batch 2"


def measured(**changes):
    return list(attention.measure(SPEC | changes, Telemetry(None)))


def test_lengths_come_shortest_first_and_forward_before_backward(one_thread):
    found = measured()
    assert [(each.length, each.direction) for each in found] == [
        (4, "forward"),
        (4, "backward"),
        (16, "forward"),
        (16, "backward"),
    ]
    assert {each.status for each in found} == {"ok"}
    assert [sum(row["warmup"] for row in each.rows) for each in found] == [1] * 4
    assert [sum(not row["warmup"] for row in each.rows) for each in found] == [4] * 4
    assert all(each.first_seconds > 0 for each in found)


def test_a_series_ends_with_its_time_but_not_before_the_least_passes(one_thread):
    found = measured(steps=50, max_seconds=0)
    assert [sum(not row["warmup"] for row in each.rows) for each in found] == [attention.LEAST] * 4


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

        monkeypatch.setattr(attention, "function", lambda spec: lambda q, k, v, is_causal: Function.apply(q, k, v))


OOM = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")


def test_out_of_memory_backward_leaves_longer_forwards_and_no_longer_backwards(monkeypatch, one_thread):
    told = Told(monkeypatch, OOM, backward=4)
    found = {(each.length, each.direction): each for each in measured()}
    assert found[4, "forward"].status == found[16, "forward"].status == "ok"
    assert (found[4, "backward"].status, found[16, "backward"].status) == ("oom", "oom")
    assert found[4, "backward"].reason == "CUDA out of memory. Tried to allocate 2 GiB."
    assert found[16, "backward"].reason == "length 4 ran out of memory"
    assert told.backward_lengths == [4]


def test_out_of_memory_forward_ends_both(monkeypatch, one_thread):
    told = Told(monkeypatch, OOM, forward=4)
    assert [each.status for each in measured()] == ["oom"] * 4
    assert told.forward_lengths == [4]


def test_what_cannot_be_done_is_unsupported_with_the_reason(monkeypatch, one_thread):
    Told(monkeypatch, attention.Unsupported("not on this machine"), forward=4)
    assert {(each.status, each.reason) for each in measured()} == {("unsupported", "not on this machine")}


def test_another_error_passes_through(monkeypatch, one_thread):
    Told(monkeypatch, RuntimeError("broken on purpose"), forward=4)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        measured()


@pytest.mark.parametrize("implementation", ["sdpa-flash", "naive"])
@pytest.mark.parametrize("heads", [None, 2])
@pytest.mark.parametrize("is_causal", [False, True])
def test_functions_compute_attention(implementation, heads, is_causal, one_thread):
    """Against the formula in float64, with and without a dimension of heads."""
    shape = (3, *([heads] if heads else []), 10, 16)
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape) for _ in range(3))
    result = attention.function(SPEC | {"implementation": implementation})(q, k, v, is_causal)
    scores = (q.double() @ k.double().transpose(-2, -1)) / 16**0.5
    if is_causal:
        scores = scores.masked_fill(torch.ones(10, 10).triu(1).bool(), float("-inf"))
    torch.testing.assert_close(result.double(), scores.softmax(-1) @ v.double(), rtol=1e-5, atol=1e-5)


def test_a_number_of_tokens_is_a_batch_for_each_length():
    spec = {"tokens": 64}
    assert [attention.batch_of(spec, length) for length in (4, 16, 64, 128)] == [16, 4, 1, 1]


def test_operations():
    """Two products of (2, 3 heads) x (100, 100, 16): 2 x 2 x 2 x 3 x 100 x 100 x 16."""
    assert flops.attention_flops(2, 3, 100, 16, "full", "forward") == 3_840_000
    assert flops.attention_flops(2, 3, 100, 16, "causal", "forward") == 1_920_000
    assert flops.attention_flops(2, 3, 100, 16, "causal", "backward") == 4_800_000


def test_operations_of_a_spec_with_keys_of_its_own():
    """3 queries at the end of 5 keys, 2 of which each sees: 4 x 2 sequences x 4 heads x 6 pairs x 8."""
    spec = SPEC | {"heads": 4, "key_value_heads": 2, "keys": 5, "mask": "causal-lower-right", "window": 2}
    assert attention.operations(spec, 3, "forward") == 4 * 2 * 4 * 6 * 8


WAYS = [
    {"causal": "yes", "window": 3},
    {"mask": "causal-lower-right", "keys": 14},
    {"mask": "causal-lower-right", "keys": 14, "window": 4},
    {"causal": "yes", "keys": 6},
    {"keys": 6},
]


@pytest.mark.parametrize("implementation", ["sdpa-flash", "naive"])
@pytest.mark.parametrize("heads", [{}, {"heads": 4}, {"heads": 4, "key_value_heads": 2}])
@pytest.mark.parametrize("way", WAYS)
def test_a_pass_computes_what_the_spec_says(way, heads, implementation, one_thread):
    """One pass, forward and backward, against the formula in float64, with each key asked for."""
    spec = SPEC | way | heads | {"implementation": implementation, "lengths": "10"}
    q, k, v = inputs = attention._inputs(spec, 10)
    queries, keys, window = 10, way.get("keys", 10), way.get("window", 10**9)
    assert q.shape[-2] == queries and k.shape[-2] == v.shape[-2] == keys
    shared = heads["heads"] // heads["key_value_heads"] if "key_value_heads" in heads else 1
    passes = attention._Passes(spec, Telemetry(None))
    passes._attention = attention.function(spec)
    result = passes._attend(inputs)
    wide = [each.detach().double().requires_grad_() for each in inputs]
    scores = wide[0] @ spread(wide[1], shared).transpose(-2, -1) / 8**0.5
    offset = keys - queries if "mask" in way else 0
    hidden = torch.zeros(queries, keys, dtype=torch.bool)
    if len(way) > ("keys" in way):
        for query in range(queries):
            for key in range(keys):
                hidden[query, key] = not query + offset - window < key <= query + offset
    expected = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ spread(wide[2], shared)
    torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5)
    gradient = torch.randn_like(result)
    result.backward(gradient)
    expected.backward(gradient.double())
    for own, reference in zip(inputs, wide, strict=True):
        torch.testing.assert_close(own.grad.double(), reference.grad, rtol=1e-4, atol=1e-5)


def spread(x, shared):
    """K or V once for each head of Q."""
    return x.repeat_interleave(shared, dim=-3) if shared > 1 else x


def test_what_calls_cost_the_host_is_taken_in_turns_that_are_not_waited_for():
    """A clock that goes on by what calls cost, of which the third turn is disturbed, and by waiting between them."""
    now, calls, waits = [0.0], [], []

    def call(name, cost):
        calls.append(name)
        now[0] += 5.0 if len(waits) == 3 else cost

    def wait():
        waits.append(len(calls))
        now[0] += 100.0

    ways = [functools.partial(call, "a", 0.25), functools.partial(call, "b", 0.5)]
    found = attention_host.seconds_of(ways, wait, rounds=3, times=4, clock=lambda: now[0])
    assert found == [[0.25, 5.0, 0.25], [0.5, 0.5, 0.5]]
    assert "".join(calls) == "ab" + 3 * ("aaaa" + "bbbb")
    assert waits == [2, 6, 10, 14, 18, 22, 26]


@pytest.mark.parametrize(("direction", "backwards"), [("forward", 0), ("backward", 1)])
def test_a_call_of_the_host_is_a_forward_pass_or_both(direction, backwards, monkeypatch, one_thread):
    """Besides the calls of its rounds one before them; and the pass that shows what the gradient is like."""
    told = Told(monkeypatch, OOM)
    passes = attention._Passes(SPEC, Telemetry(None))
    passes._attention = attention.function(SPEC)
    calls = 1 + attention_host.ROUNDS * attention_host.CALLS
    outcome = attention.Outcome(4, direction)
    passes._host(attention._inputs(SPEC, 4), outcome)
    assert (len(told.forward_lengths), len(told.backward_lengths)) == (1 + calls, backwards * calls)
    (seconds,), (ratio,) = outcome.host_seconds, outcome.host_over_sdpa
    assert seconds > 0 and ratio > 0


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"causal": "yes"}, [2.0]),
        ({}, [2.0]),
        ({"mask": "causal-lower-right"}, []),
        ({"causal": "yes", "window": 2}, []),
    ],
)
def test_the_hosts_time_is_held_against_pytorchs_own(direction, more, expected, monkeypatch, one_thread):
    """Both compute the same, forward or both ways; rounds of 2 and 1 s, 9 and 3, 4 and 2 have the median ratio 2."""
    spec = {name: value for name, value in SPEC.items() if name != "causal"} | more
    given = []

    def seconds_of(calls, wait):
        for call in calls:
            inputs = [x.grad for x in tensors]
            call()
            given.append([x.grad for x in tensors] if direction == "backward" else inputs)
        return [[2.0, 9.0, 4.0], [1.0, 3.0, 2.0]][: len(calls)]

    monkeypatch.setattr(attention_host, "seconds_of", seconds_of)
    passes = attention._Passes(spec, Telemetry(None))
    passes._attention = attention.function(spec)
    outcome, tensors = attention.Outcome(4, direction), attention._inputs(spec, 4)
    passes._host(tensors, outcome)
    assert (outcome.host_seconds, outcome.host_over_sdpa) == ([4.0], expected)
    assert len(given) == 1 + len(expected)
    if direction == "backward" and expected:
        for own, pytorchs in zip(*given, strict=True):
            torch.testing.assert_close(own, pytorchs)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("no memory"), ValueError("no such shape")])
def test_where_pytorchs_own_cannot_the_hosts_time_stands_alone(error, monkeypatch, one_thread):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(attention_host, "sdpa", refuse)
    passes = attention._Passes(SPEC, Telemetry(None))
    passes._attention = attention.function(SPEC)
    outcome = attention.Outcome(4, "backward")
    passes._host(attention._inputs(SPEC, 4), outcome)
    assert len(outcome.host_seconds) == 1 and outcome.host_over_sdpa == []


def test_a_cpu_has_no_time_of_a_host_beside_its_own(one_thread):
    series = attention.summary(measured())["series"]
    assert {(entry["host_seconds"], entry["host_over_sdpa"]) for entry in series} == {(None, None)}


@pytest.mark.parametrize("name", ["host_seconds", "host_over_sdpa"])
def test_what_processes_say_of_the_host_is_their_median(name):
    found = [[attention.Outcome(4, "forward", **{name: [each]})] for each in (3e-6, 9e-6, 4e-6)]
    merged = attention.merged(found)
    assert attention.summary(merged)["series"][0][name] == 4e-6
    assert attention.summary(found[0])["series"][0][name] == 3e-6


def test_the_program_writes_a_record_and_every_sample(run_program, tmp_path):
    code, out, err = run_program("time_attention.py", f"{QUICK} --implementation sdpa-flash --out {tmp_path}")
    assert code == 0, err
    record = json.loads((tmp_path / "record.json").read_text())
    series = record["summary"]["series"]
    assert [(entry["length"], entry["direction"], entry["status"]) for entry in series] == [
        (length, direction, "ok") for length in (4, 16) for direction in ("forward", "backward")
    ]
    rows = list(csv.DictReader((tmp_path / "samples.csv").read_text().splitlines()))
    assert len(rows) == 4 * (1 + 4)
    chosen = [row for row in rows if (row["length"], row["phase"], row["warmup"]) == ("4", "forward", "False")]
    times = sorted(float(row["seconds"]) for row in chosen)
    assert series[0]["processes"][0]["median"] == pytest.approx((times[1] + times[2]) / 2)
    assert "TFLOP/s" in out


def test_what_trains_on_a_gpu_only_is_unsupported_on_a_cpu(run_program, tmp_path):
    code, out, err = run_program("time_attention.py", f"{QUICK} --implementation triton --out {tmp_path}")
    assert code == 0, err
    series = json.loads((tmp_path / "record.json").read_text())["summary"]["series"]
    assert {entry["status"] for entry in series} == {"unsupported"}
    assert "triton trains on a GPU only" in out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--batch 2 --tokens 8", "give --batch or --tokens, not both"),
        ("--window 4", "--window needs a causal mask; add --mask causal"),
        ("--causal yes --mask causal-lower-right", "--causal yes is --mask causal; give one of them"),
        ("--heads 4 --key-value-heads 3", "--key-value-heads 3 does not divide --heads 4; use a divisor"),
        ("--key-value-heads 3", "--key-value-heads 3 does not divide --heads 0; use a divisor"),
        ("--lengths 4,0", "0 is too small; use at least 1"),
        ("--lengths 4;8", "is not a whole number"),
        ("--implementation magic", "choose from"),
    ],
)
def test_a_wrong_flag_is_one_line(words, shown, run_program):
    code, _, err = run_program("time_attention.py", f"--device cpu {words}")
    assert code == 2
    assert shown in err.splitlines()[-1]
