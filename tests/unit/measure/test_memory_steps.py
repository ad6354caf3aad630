"""What is known of the tensors behind a recording: against the model's own shapes and autograd's
own account."""

from collections import Counter

import pytest
import torch
from common import TINY, picked
from stepscope.formulas import footprint
from stepscope.formulas.footprint import Setup
from stepscope.measure import memory_steps
from stepscope.measure.memory_observed import Observed
from stepscope.measure.telemetry import Telemetry
from stepscope.model.shape import ModelShape

LAYERS, D_MODEL, D_FF, HEADS, VOCABULARY, CONTEXT, BATCH = 2, 32, 48, 2, 11, 6, 3
SPEC = TINY | {"study": "memory", "d_model": D_MODEL, "d_ff": D_FF, "batch": BATCH}
PARAMETERS = ModelShape(D_MODEL, D_FF, LAYERS, HEADS, VOCABULARY).parameters


def measured(**changes):
    return memory_steps.measure(SPEC | changes, Telemetry(None))


@pytest.fixture(scope="module")
def step():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield measured()
    torch.set_num_threads(before)


def total(known, category, at_start=True):
    tensors = picked(known["tensors"], category=category)
    assert all((tensor["at"] == [0, 0]) == at_start for tensor in tensors)
    return sum(picked(tensors, "bytes"))


def test_parameters_moments_and_gradients_are_four_bytes_a_parameter(step):
    assert total(step.known, "parameters") == 4 * PARAMETERS
    assert total(step.known, "optimizer state") == 2 * 4 * PARAMETERS
    assert total(step.known, "gradients", at_start=False) == SPEC["steps"] * 4 * PARAMETERS


def test_buffers_are_the_tables_the_mask_and_the_batch(step):
    rope, mask, batch = (
        2 * CONTEXT * (D_MODEL // HEADS) * 4,
        CONTEXT * CONTEXT * 4,
        2 * BATCH * CONTEXT * 8,
    )
    found = Counter(picked(step.known["tensors"], "bytes", category="buffers"))
    assert found[rope // 2] >= 2 and found[mask] >= 1 and found[batch // 2] >= 2
    # other tests of the same process may have left tensors behind
    assert total(step.known, "buffers") >= rope + mask + batch


@pytest.mark.parametrize("optimizer", ["torch", "fused"])
def test_the_moments_of_pytorchs_optimizers_are_found_too(optimizer, one_thread):
    """Its step counts are scalars, 4 bytes each."""
    known = measured(optimizer=optimizer, steps=1).known
    moments = [t for t in known["tensors"] if t["category"] == "optimizer state" and t["shape"]]
    assert sum(picked(moments, "bytes")) == 2 * 4 * PARAMETERS


def test_the_recording_holds_every_gradient_where_it_was_seen(step):
    trace = step.snapshot["device_traces"][0]
    for gradient in picked(step.known["tensors"], category="gradients"):
        allocations, alive = 0, {}
        frees = 0
        for entry in trace:
            if [allocations, frees] == gradient["at"]:
                break
            if entry["action"] == "alloc":
                allocations += 1
                alive[entry["addr"]] = entry["size"]
            elif entry["action"] == "free_completed":
                frees += 1
                alive.pop(entry["addr"], None)
        assert alive[gradient["address"]] == gradient["bytes"]


def test_what_autograd_saves_is_the_closed_form(step):
    """Which is what autograd's own hooks say: tests of formulas."""
    setup = Setup(ModelShape(D_MODEL, D_FF, LAYERS, HEADS, VOCABULARY), BATCH, CONTEXT)
    saved = LAYERS * footprint.total(footprint.group(setup, "saved by a block"))
    for part in ("final norm", "head", "loss"):
        saved += footprint.total(footprint.group(setup, f"saved by the {part}"))
    assert sum(picked(step.known["saved"], "bytes")) == saved


def test_scores_and_their_softmax_are_made_in_their_parts(step):
    shape = [BATCH, HEADS, CONTEXT, CONTEXT]
    made = Counter(picked(step.known["made"], "module", "op", phase="forward", shape=shape))
    for block in range(LAYERS):
        assert made[f"blocks.{block}/attention/softmax", "sub"] == 1
        assert made[f"blocks.{block}/attention/softmax", "mul"] == 1
    scores = [
        e
        for e in step.known["made"]
        if e["phase"] == "forward" and e["module"].endswith("attention scores")
    ]
    assert [BATCH * HEADS, CONTEXT, CONTEXT] in picked(scores, "shape")


def test_backward_goes_through_the_parts_in_the_opposite_order(step):
    marks = step.known["marks"]
    first = [marks[0][2], "backward"]
    parts = [mark[4] for mark in marks if list(mark[2:4]) == first and mark[4]]
    modules = list(dict.fromkeys(part.partition("/")[0] for part in parts))
    assert modules == ["loss", "LM head", "final norm", "blocks.1", "blocks.0", "embedding"]
    of_attention = ("attention × V", "softmax", "attention scores")
    places = [parts.index(f"blocks.0/attention/{name}") for name in of_attention]
    assert places == sorted(places)


def test_low_precision_copies_of_weights_name_the_weight(one_thread):
    """The toy: autocast copies each of a block's matrices once, and no gain or embedding."""
    known = memory_steps.Recording(SPEC, Telemetry(None))
    known.prepare()
    known.begin("start")
    observed = Observed(known._workload.model.named_parameters(), lambda: ("", ""))
    with torch.autocast("cpu", torch.bfloat16), observed:
        known._workload.model.outputs()
    copies = [entry["cast_of"] for entry in observed.made if entry["cast_of"]]
    weights = [
        "attention.qkv",
        "attention.output",
        "feed_forward.gate",
        "feed_forward.up",
        "feed_forward.down",
    ]
    expected = [f"blocks.{block}.{name}.weight" for block in range(LAYERS) for name in weights] + [
        "head.weight"
    ]
    assert copies == expected
    memory_steps.ranges.turn_on(None)
    known.end()


def test_inference_saves_nothing_and_has_one_phase(one_thread):
    found = measured(mode="inference")
    assert found.known["saved"] == []
    assert {mark[3] for mark in found.known["marks"]} == {"", "inference"}


def peak(found):
    """Bytes of parameters and of what the recording made that are alive at most."""
    now = most = total(found.known, "parameters")
    for entry in found.snapshot["device_traces"][0]:
        now += entry["size"] * {"alloc": 1, "free_completed": -1}.get(entry["action"], 0)
        most = max(most, now)
    return most


def test_looking_at_a_step_without_backward_leaves_nothing_behind(one_thread):
    """The graph of the observed step is gone when the next one runs: but for the mask, the peak is
    the same."""
    peaks = [peak(measured(mode="forward", warmup=warmup, steps=1)) for warmup in (0, 2)]
    assert peaks[1] == pytest.approx(peaks[0], abs=2 * CONTEXT * CONTEXT * 4)


def test_moments_that_are_made_in_the_recording_are_named(one_thread):
    known = measured(warmup=0, steps=1).known
    assert total(known, "optimizer state", at_start=False) == 2 * 4 * PARAMETERS


class OutOfMemory:
    """Lets a phase of the workload run out of memory in its n-th run."""

    def __init__(self, monkeypatch, phase, run):
        self._count, self._run = 0, run
        original = getattr(memory_steps.Workload, phase)

        def fail(workload):
            self._count += 1
            if self._count == self._run:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")
            original(workload)

        monkeypatch.setattr(memory_steps.Workload, phase, fail)


@pytest.mark.parametrize("run", [1, 2])  # of the warm-up, and of the measured steps
def test_running_out_of_memory_keeps_the_recording_up_to_there(run, monkeypatch, one_thread):
    OutOfMemory(monkeypatch, "_backward", run)
    found = measured()
    assert (found.outcome.status, found.outcome.reason) == (
        "oom",
        "CUDA out of memory. Tried to allocate 2 GiB.",
    )
    marks = found.known["marks"]
    assert (marks[-1][2], marks[-1][3]) == (run - 1, "backward")
    assert "forward" in {mark[3] for mark in found.known["marks"]}
    assert sum(picked(found.known["tensors"], "bytes", category="parameters")) == 4 * PARAMETERS
    assert found.snapshot["device_traces"][0]


def test_gradients_that_exist_when_memory_runs_out_are_named(monkeypatch, one_thread):
    """In the optimizer all of them do, in the warm-up as in the measured steps."""
    OutOfMemory(monkeypatch, "_optimizer", 1)
    known = measured().known
    assert total(known, "gradients", at_start=False) == 4 * PARAMETERS


@pytest.mark.parametrize("changed", [{"compile": "block"}, {"loss": "compiled"}])
def test_compiled_code_is_not_recorded(changed):
    """While tensors are observed PyTorch runs it uncompiled: other tensors than the step has."""
    outcome = measured(**changed).outcome
    assert (outcome.status, outcome.reason) == ("unsupported", memory_steps.COMPILED)


def test_parameters_of_a_module_that_nobody_named_are_among_what_python_holds():
    """A step of one's own need not show what it trains."""
    layer, batch = torch.nn.Linear(7, 11), torch.zeros(3, 5)
    held = memory_steps._tensors_of_python("cpu", {layer.bias.data_ptr()})
    assert any(each is layer.weight for each in held) and any(each is batch for each in held)
    assert not any(each is layer.bias for each in held)
