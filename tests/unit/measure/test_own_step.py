"""Steps of one's own: their phases, what is said of them, and how a bad one ends."""

import contextlib
import gzip
import io
import itertools
import json
import math
import re
import sys
from pathlib import Path

import pytest
import torch
from common import ROOT, one_line, picked
from stepscope import Step, phase, record
from stepscope.measure import ladder, memory_steps, own_step, timing
from stepscope.measure.own_step import Laps, StepWorkload
from stepscope.measure.telemetry import Telemetry
from stepscope.model.own import stepping
from stepscope.model.own.counting import Counter
from stepscope.model.own.loading import imported
from stepscope.model.own.reference import ModelError, parse

# w² is minimised from w = 1 by SGD with a rate of 1/4, so that w halves: losses 1, 1/4, 1/16 …
SOURCE = """
import torch
from stepscope import Step, phase
from torch import nn


def build(device, rate=0.25, momentum=0.9, returns=True):
    weight = nn.Parameter(torch.ones((), device=device))
    optimizer = torch.optim.SGD([weight], lr=rate)

    def run():
        with phase("forward"):
            loss = weight.square()
        with phase("go back"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach() if returns else None

    return Step(run, optimizer=optimizer, items=(3, "images"))


def products(batch, device):
    model = nn.Linear(5, 7, bias=False, device=device)
    x = torch.randn(batch, 5, device=device, requires_grad=True)
    optimizer = torch.optim.AdamW(model.parameters())

    def run():
        with phase("forward"):
            loss = model(x).sum()
        with phase("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return Step(run, module=model, optimizer=[optimizer])


def attends():
    q = torch.randn(1, 2, 3, 4, requires_grad=True)

    def run():
        with phase("forward"):
            loss = nn.functional.scaled_dot_product_attention(q, q, q).sum()
        with phase("backward"):
            loss.backward()

    return Step(run)


def loud(device):
    torch.set_float32_matmul_precision("high")
    return Step(lambda: None, flop=6)


def frozen(seed, batch, context):
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)).bfloat16()
    model[0].requires_grad_(False)
    return Step(lambda: 0.5, module=model)


def nothing(**keys):
    pass


def no_items():
    return Step(print, items=9)


def fails():
    raise ValueError("no data")


def dictionary():
    return Step(lambda: {"loss": 1})


def nan():
    return Step(lambda: float("nan"))


def later():
    losses = iter([1.0])
    return Step(lambda: next(losses))


def whole():
    def run():
        with phase("step"):
            pass

    return Step(run)


def penalty():
    layer = nn.Linear(5, 1, bias=False)
    x = torch.randn(4, 5, requires_grad=True)
    def run():
        (gradient,) = torch.autograd.grad(layer(x).sum(), x, create_graph=True)
        gradient.square().sum().backward()

    return Step(run)
"""
BUDGET = {"warmup": 2, "steps": 2, "max_steps": 2, "max_seconds": 0, "processes": 1}
EXAMPLES = ("plain", "accumulation", "lora", "muon")


@pytest.fixture
def spec(tmp_path, one_thread):
    """From the name of a function to the spec of a timing cell."""
    path = tmp_path / "train.py"
    path.write_text(SOURCE)

    def of(function, reference=None, **more):
        keys = {"step_keys": json.dumps(more.pop("keys"))} if "keys" in more else {}
        place = {"context": 6, "batch": 4, "seed": 0, "device": "cpu", "threads": 1}
        step = reference or f"{path}:{function}"
        return {"study": "timing", "step": step} | keys | place | BUDGET | more

    return of


def measured(spec):
    return timing.measure(spec, Telemetry(None), 1)


def test_phases_outside_a_recording_do_nothing():
    with phase("forward"), phase("forward"):
        pass


@pytest.mark.parametrize(
    "said, parts",
    {
        "a step's run is None; give a function": {"run": None},
        "a step's module is 'model'; give an nn.Module": {"module": "model"},
        "a step's module is <class 'torch.nn.modules.linear.Linear'>": {"module": torch.nn.Linear},
        "a step's optimizer is [None, 5]; give one, or a list": {"optimizer": [None, 5]},
        'a step\'s items is 9; give (8192, "tokens")': {"items": 9},
        "a step's items is ('9', 'tokens'); give (8192, \"tok": {"items": ("9", "tokens")},
        "a step's items is (0, 'tokens'); give (8192": {"items": (0, "tokens")},
        "a step's flop is 'many'; give a number above 0": {"flop": "many"},
        "a step's flop is -1; give a number above 0": {"flop": -1},
        "a step's flop is True; give a number above 0": {"flop": True},
        "a step's flop is nan; give a number above 0": {"flop": float("nan")},
    }.items(),
)
def test_what_cannot_be_a_part_of_a_step_is_said_where_it_is_made(parts, said):
    with pytest.raises(TypeError) as caught:
        Step(**{"run": print} | parts)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", 3, None, "rest", "step", "a\nb", "x" * 61])
def test_what_is_no_name_of_a_phase_is_refused_whether_something_records_or_not(name):
    assert one_line(ValueError, phase, name).startswith("phase(")


@pytest.mark.parametrize(
    "said, given",
    {
        r"record\(steps=0\): give a whole number from 1 on": {"steps": 0},
        r"record\(steps=2.5\): give a whole number from 1 on": {"steps": 2.5},
        r"record\(warmup=-1\): give a whole number from 0 on": {"warmup": -1},
        r"record\(device='gpu'\): give 'cuda', 'cpu' or nothing": {"device": "gpu"},
    }.items(),
)
def test_what_cannot_be_recorded_is_said_at_the_call(given, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        record(tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


class Still:
    """A clock of a device that never has to be waited for."""

    def synchronize(self):
        pass


def test_phases_of_a_name_add_up_and_the_rest_is_kept(monkeypatch):
    """The host's clock goes on by 1, 2, 4 … at each look, so that each lap tells which it is."""
    looks = itertools.accumulate(2**number for number in itertools.count())
    monkeypatch.setattr(own_step.time, "perf_counter", lambda: float(next(looks)))
    seen = []

    @contextlib.contextmanager
    def around(name):
        seen.append(name)
        yield

    def run():
        with phase("a"):  # 2 before it
            inner = phase("b")
            with inner:  # 4 of a
                pass  # 8 of b
            # 16 of a
        with phase("b"):  # 32 between
            pass  # 64 of b

    laps = Laps(Still(), around)
    laps.time(run)  # 128 after it
    assert seen == ["a", "b", "b"]
    found = {name: round(seconds) for name, seconds in laps.seconds.items()}
    assert found == {"a": 4 + 16, "b": 8 + 64, "rest": 2 + 32 + 128}
    assert list(found)[-1] == "rest"


def test_a_step_is_timed_as_it_is_built(spec):
    found = measured(spec("build"))
    assert picked(found.statuses, "mode", "status") == [("step", "ok")]
    phased = picked(found.rows, "phase", kind="phased")
    assert phased[:3] == ["forward", "go back", "rest"]
    assert set(picked(found.rows, "phase", kind="free")) == {"step"}
    built = found.built["step"]
    assert (built["parameters"], built["trainable_parameters"]) == (1, 1)
    assert (built["dtype"], built["optimizer"]) == ("torch.float32", "SGD")
    assert (built["items"], built["item"]) == (3, "images")
    assert built["marked"] == ["forward", "go back"]


@pytest.mark.parametrize(
    "function, flops",
    {
        "loud": {"given": 6},
        # forward, and backward of x and of the weight
        "products": {"counter": 3 * 2 * 4 * 5 * 7},
        # of gradients' gradients: 4 rows by 5 weights, of which the rows' gradient, and from it
        # that of the weights
        "penalty": {"counter": 3 * 2 * 4 * 5},
        # of 2 heads, 3 positions of 4: two products forward, twice as many backward
        "attends": {"counter": 3 * 2 * (2 * 2 * 3 * 3 * 4)},
    }.items(),
)
def test_the_operations_of_a_step_are_counted_or_given(function, flops, spec):
    assert measured(spec(function)).built["step"]["flops"] == flops


def test_a_step_that_closes_its_output_has_it_again(spec, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    sys.stdout.close()
    StepWorkload(spec("loud")).phases("step")["step"]()
    assert not sys.stdout.closed


@pytest.mark.parametrize("error", [RuntimeError("none"), OSError(28, "No space left on device")])
def test_operations_that_cannot_be_counted_are_unknown_but_a_full_disk_is_a_failure(
    error, spec, monkeypatch
):
    class Failing(Counter):
        def __exit__(self, *ending):
            super().__exit__(*ending)
            raise error

    monkeypatch.setattr(own_step, "Counter", Failing)
    if isinstance(error, OSError):
        assert "No space left" in one_line(OSError, measured, spec("products"))
    else:
        assert "operations: none" in measured(spec("products")).built["step"]["unknown"]


def test_frozen_parameters_and_their_type_are_said(spec):
    built = StepWorkload(spec("frozen")).about
    assert (built["parameters"], built["trainable_parameters"]) == (9 + 16, 16)
    assert (built["dtype"], built["optimizer"], built["class"]) == (
        "torch.bfloat16",
        "",
        "Sequential",
    )
    assert (built["parameters_bytes"], built["trained_bytes"]) == (2 * 25, 2 * 16)


def test_what_a_file_sets_for_all_of_torch_is_its_own_steps_alone(spec):
    plain, loud = StepWorkload(spec("build")), StepWorkload(spec("loud"))
    found = []
    for work in (plain, loud, plain):
        work.use()
        found.append(torch.get_float32_matmul_precision())
    own_step._set(*own_step.PLAIN)
    assert found == ["highest", "high", "highest"]


def compared(spec, *variants):
    shared = spec("build")
    reference = shared.pop("step")
    named = [{"step": reference} | one for one in variants]
    return ladder.measure(shared | {"study": "ladder", "variants": named}, Telemetry(None), 1)


def test_steps_that_are_compared_take_turns_and_say_their_first_losses(spec):
    slow = {"name": "slow", "after": "fast", "step_keys": '{"rate": 0.125}'}
    found = compared(spec, {"name": "fast"}, slow)
    assert found.checks["fast"]["losses"] == [1, 1 / 4, 1 / 16]
    assert found.checks["slow"]["losses"] == [1, (3 / 4) ** 2, (3 / 4) ** 4]
    rounds = {row["round"] for row in found.rows if row["kind"] == "free" and not row["warmup"]}
    assert rounds == {1, 2}
    assert set(picked(found.rows, "mode")) == {"step"}
    silent = compared(spec, {"name": "silent", "step_keys": '{"returns": false}'})
    assert silent.checks == {}


def test_a_variant_that_fails_is_its_own_status_unless_it_is_the_first(spec):
    found = compared(spec, {"name": "good"}, {"name": "bad", "step_keys": '{"no": 1}'})
    of = {one["variant"]: one for one in found.statuses}
    assert of["good"]["status"] == "ok"
    assert of["bad"]["status"] == "failed"
    assert "does not take the keys no" in of["bad"]["reason"]
    assert "does not take the keys no" in one_line(
        ModelError, compared, spec, {"name": "bad", "step_keys": '{"no": 1}'}, {"name": "good"}
    )


def test_a_snapshot_tells_gradients_and_state_of_a_step_apart(spec):
    run = memory_steps.measure(spec("products", study="memory"), Telemetry(None))
    assert run.outcome.is_ok
    size = 4 * 5 * 7
    for category in ("parameters", "gradients", "optimizer state"):
        found = picked(run.known["tensors"], "bytes", category=category)
        assert {*found} - {4} == {size}  # step counts are scalars
    phases = {phase for *_, phase, _ in run.known["marks"]}
    assert {"forward", "backward"} <= phases


@pytest.mark.parametrize(
    "said, function",
    {
        "has no function gone": "gone",
        "nothing() returns NoneType; return stepscope.Step(run, ...)": "nothing",
        "no_items() fails: line 68: TypeError: a step's items is 9; give (8192,": "no_items",
        "fails() fails: line": "fails",
        "run() returns no loss, which is a number: TypeError": "dictionary",
        "run() fails: line": "later",
        "line 90: ValueError: phase('step'): name it by a word or two": "whole",
    }.items(),
)
def test_a_bad_step_is_one_line_that_names_it(spec, function, said):
    line = one_line(ModelError, measured, spec(function))
    assert said in line and "train.py" in line


def test_a_file_that_is_not_there_and_an_architecture_are_no_steps(spec, tmp_path):
    assert "there is no file" in one_line(
        ModelError, StepWorkload, spec("", reference=f"{tmp_path}/other.py:build")
    )
    assert "docs/own-step.md" in one_line(ModelError, StepWorkload, spec("", reference="hf:llama"))


def test_a_loss_that_is_no_number_is_a_result(spec):
    (one,) = measured(spec("nan")).statuses
    assert (one["status"], one["reason"]) == ("failed", "loss is NaN at step 0")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(name, spec):
    keys = {"layers": 1, "width": 64}
    file = ROOT / f"models/step_{name}.py"
    found = measured(spec("", f"{file}:build", context=8, batch=1, warmup=0, keys=keys))
    assert picked(found.statuses, "status") == ["ok"]
    built = found.built["step"]
    marked = ["forward", "backward", "clip", "optimizer"]
    assert built["marked"] == (marked if name == "accumulation" else [*marked[:2], marked[3]])
    assert built["items"] == (4 * 8 if name == "accumulation" else 8)
    layers = 12 * 64**2 + 9 * 64 + 4 * 64  # four linear ones with their biases, and two norms
    whole = layers + 2 * 64 + 10_000 * 64 + 8 * 64
    of_lora = 8 * sum(math.prod(each) for each in ((4, 64), (2, 64), (5, 64), (5, 64)))
    expected = (whole + of_lora, of_lora) if name == "lora" else (whole, whole)
    assert (built["parameters"], built["trainable_parameters"]) == expected
    assert built["optimizer"] == ("Muon + AdamW" if name == "muon" else "AdamW")


def test_the_example_of_muon_makes_a_momentum_nearly_orthogonal():
    muon = imported(parse(f"{ROOT}/models/step_muon.py:build"))
    for size in ((12, 30), (30, 12)):
        matrix = torch.randn(size, generator=torch.Generator().manual_seed(1))
        found = torch.linalg.svdvals(muon.orthogonal(matrix).double())
        assert found.min() > 0.5  # Jordan et al.: the iteration ends between 0.7 and 1.2
        assert found.max() < 1.3


def test_a_capture_that_fails_says_what_failed_in_the_steps_file(spec):
    work = StepWorkload(spec("later"))
    work.phases("step")["step"]()
    with pytest.raises(ModelError):
        work.captured()()
    assert "run() fails: line" in str(work.failed)


def test_steps_of_a_loop_are_recorded(tmp_path, one_thread):
    weight = torch.nn.Parameter(torch.ones(50, 50))
    with record(tmp_path / "out", steps=2, warmup=1, device="cpu") as recorded:
        for number in range(9):
            with phase("forward"):
                loss = (weight @ weight).sum()
            with phase("backward"):
                loss.backward()
            recorded.step()
            assert recorded.is_done == (number >= 1 + 2 + 3)
    told = json.loads((tmp_path / "out/steps.json").read_text())
    assert len(told["seconds"]) == 2
    assert told["peaks"]["peak_resident"] > 2 * 4 * 50 * 50
    trace = tmp_path / "out/trace.json.gz"
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    names = [event.get("name") for event in events if event.get("cat") == "user_annotation"]
    assert [names.count(name) for name in ("step", "forward", "backward")] == [3, 3, 3]
    assert (tmp_path / "out/snapshot.pickle").stat().st_size > 0


def test_a_loop_that_ends_early_says_so(tmp_path, capsys):
    with record(tmp_path, steps=1, warmup=0, device="cpu") as recorded:
        recorded.step()
        recorded.step()
    assert "the loop ended before all was recorded" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"steps.json"}


def test_the_example_of_the_page_runs_as_it_stands(tmp_path):
    page = (Path(own_step.__file__).parents[3] / "docs/own-step.md").read_text()
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "train.py").write_text(example)
    given = {"context": 8, "batch": 2, "device": "cpu", "seed": 0}
    for keys in ({}, {"fused": True}):
        step = stepping.build(f"{tmp_path}/train.py:build", keys, given)
        assert math.isclose(float(step.run()), math.log(10_000), rel_tol=0.2)  # a uniform guess
