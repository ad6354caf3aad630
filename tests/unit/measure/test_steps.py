"""What a timing cell measures, on a tiny real model on the CPU."""

import pytest
import torch
from stepscope.axes import MODES
from stepscope.measure import steps
from stepscope.measure.telemetry import Telemetry
from stepscope.model.chosen import load

pytestmark = pytest.mark.usefixtures("one_thread")

# What a mode's free steps are as a whole. The heaviest mode has phased ones too, unless it has a single phase.
FREE = {"inference": "inference", "forward": "forward", "forward-backward": "forward+backward", "step": "step"}
PHASED = {"forward-backward": {"forward", "backward"}, "step": {"forward", "backward", "optimizer"}}


def outcomes_of(spec):
    return steps.measure(spec, Telemetry(None))


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_up_to_the_cells_is_measured_from_the_lightest(mode, tiny):
    found = outcomes_of(tiny | {"mode": mode})
    assert [outcome.mode for outcome in found] == list(MODES)[: list(MODES).index(mode) + 1]
    for outcome in found:
        assert (outcome.status, outcome.reason) == ("ok", "")
        phased = PHASED.get(mode, set()) if outcome.mode == mode else set()
        expected = {("free", FREE[outcome.mode]), *(("phased", phase) for phase in phased)}
        assert {(row["kind"], row["phase"]) for row in outcome.rows} == expected
        assert {row["mode"] for row in outcome.rows} == {outcome.mode}
        assert outcome.peaks["peak_resident_bytes"] > 0


def test_steps_are_numbered_and_warm_ups_are_marked_once_a_mode(tiny):
    # No time left: each series has the fewest steps.
    found = outcomes_of(tiny | {"warmup": 3, "steps": 2, "max_steps": 9, "max_seconds": 0})
    for outcome in found:
        series = {}
        for row in outcome.rows:
            series.setdefault((row["kind"], row["phase"]), []).append((row["step"], row["warmup"]))
        warmed_up = [(0, True), (1, True), (2, True), (3, False), (4, False)]
        first = outcome.rows[0]["kind"]
        for (kind, _), numbers in series.items():
            assert numbers == (warmed_up if kind == first else [(0, False), (1, False)])


@pytest.mark.parametrize("steps_, max_steps, seconds, counts", [(4, 4, 9, {4}), (2, 5, 0, {2}), (3, 4, 1e9, {3, 4})])
def test_a_series_has_between_the_fewest_and_the_most_steps(steps_, max_steps, seconds, counts, tiny):
    spec = tiny | {"steps": steps_, "max_steps": max_steps, "max_seconds": seconds, "mode": "forward-backward"}
    for entry in steps.summary(outcomes_of(spec))["phases"]:
        assert next(found["count"] for found in entry["processes"]) in counts


def test_every_step_does_its_work_and_starts_without_gradients(tiny, monkeypatch):
    """Seen from the model: what has gradients when the forward pass begins, and how often the weights change."""
    seen = []

    class Watched(steps.Workload):
        def __init__(self, spec):
            super().__init__(spec)
            self.weight = next(iter(self._model.parameters()))

        def _inference(self):
            assert self.weight.grad is None
            super()._inference()
            seen.append("inference")

        def _forward(self):
            assert self.weight.grad is None
            super()._forward()
            assert self._loss.requires_grad
            seen.append("forward")

        def _backward(self):
            super()._backward()
            assert self.weight.grad is not None
            seen.append("backward")

        def _optimize(self):
            before = self.weight.detach().clone()
            super()._optimize()
            assert not torch.equal(before, self.weight)
            seen.append("optimizer")

    monkeypatch.setattr(steps, "Workload", Watched)
    outcomes_of(tiny)
    # In each mode one warm-up step and two measured ones of the first kind, in the heaviest two of the second.
    assert seen == (
        ["inference"] * 3 + ["forward"] * 3 + ["forward", "backward"] * 3 + ["forward", "backward", "optimizer"] * 5
    )


def test_nothing_of_a_mode_is_left_for_the_next(tiny, monkeypatch):
    left = []
    tidy = steps.tidy

    def watched(workload, device):
        tidy(workload, device)
        left.append((workload._loss, [p.grad for p in workload._model.parameters() if p.grad is not None]))

    monkeypatch.setattr(steps, "tidy", watched)
    outcomes_of(tiny)
    assert left == [(None, [])] * 4


def test_the_model_is_the_specs(tiny):
    sdpa = steps.Workload(tiny | {"attention": "sdpa", "optimizer": "torch"})
    naive = steps.Workload(tiny)
    assert isinstance(sdpa._optimizer, torch.optim.AdamW)
    assert sdpa._model.blocks[0].attention.attend is load("attention", "sdpa").attention
    assert naive._model.blocks[0].attention.attend is load("attention", "naive").attention
    for workload in (sdpa, naive):
        workload._forward()
    torch.testing.assert_close(sdpa._loss, naive._loss)
    shapes = sum(p.numel() for p in naive._model.parameters())
    # 2 x 11 x 8 embedding and head, 2 x (4 x 64 + 3 x 8 x 16 + 2 x 8) layers, 8 of the last norm.
    assert shapes == 176 + 2 * (256 + 384 + 16) + 8


@pytest.mark.parametrize("name, autocast", [("fp32", False), ("bf16", True)])
def test_inference_keeps_no_graph_and_16_bits_run_under_autocast(name, autocast, tiny):
    workload = steps.Workload(tiny | {"precision": name})
    modes = []

    def see(*_):
        modes.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))

    workload._model.register_forward_pre_hook(see)
    workload._inference()
    workload._forward()
    assert modes == [(False, autocast), (True, autocast)]


PHASE_OF = {"inference": "_inference", "forward": "_forward", "forward-backward": "_backward", "step": "_optimize"}


def fail_in(monkeypatch, mode, error, after=0):
    """Let the phase that is new in a mode raise, once it has run `after` times."""
    name = PHASE_OF[mode]
    method, calls = getattr(steps.Workload, name), []

    def failing(self):
        calls.append(1)
        if len(calls) > after:
            raise error
        method(self)

    monkeypatch.setattr(steps.Workload, name, failing)


OUT_OF_MEMORY = [
    (torch.OutOfMemoryError("CUDA out of memory. Tried\nto allocate"), "CUDA out of memory. Tried"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "DefaultCPUAllocator: can't allocate memory"),
    (MemoryError(), "MemoryError"),  # Python's own says nothing
]


@pytest.mark.parametrize("error, reason", OUT_OF_MEMORY)
@pytest.mark.parametrize("mode", MODES)
def test_what_finished_before_memory_ran_out_is_kept_and_the_rest_is_oom(mode, error, reason, tiny, monkeypatch):
    fail_in(monkeypatch, mode, error)
    found = outcomes_of(tiny)
    first = list(MODES).index(mode)
    assert [outcome.status for outcome in found] == ["ok"] * first + ["oom"] * (4 - first)
    assert found[first].reason == reason
    assert found[first].peaks["peak_resident_bytes"] > 0
    for later in found[first + 1 :]:
        assert later.reason == f"{mode} ran out of memory before it"
        assert (later.rows, later.peaks) == ([], {})
    shown = steps.summary(found)
    assert {entry["mode"] for entry in shown["phases"] if entry["processes"]} == set(list(MODES)[:first])


def test_where_a_step_does_not_fit_the_phases_are_those_of_forward_and_backward(tiny, monkeypatch):
    fail_in(monkeypatch, "step", torch.OutOfMemoryError("full"))
    rows = outcomes_of(tiny)[2].rows
    assert {(row["kind"], row["phase"]) for row in rows if not row["warmup"]} == {
        *(("free", "forward+backward"), ("phased", "forward"), ("phased", "backward"))
    }


def test_samples_from_before_memory_ran_out_are_kept(tiny, monkeypatch):
    fail_in(monkeypatch, "inference", torch.OutOfMemoryError("full"), after=2)
    found = outcomes_of(tiny)
    assert [row["warmup"] for row in found[0].rows] == [True, False]
    shown = steps.summary(found)
    expected = {"mode": "inference", "kind": "free", "phase": "inference", "status": "oom"}
    assert shown["phases"] == [expected | {"processes": []}]
    assert shown["modes"]["inference"]["first_step"] == found[0].rows[0]["seconds"]


def test_a_model_that_does_not_fit_is_oom_in_every_mode(tiny, monkeypatch):
    def too_large(*_):
        raise torch.OutOfMemoryError("no room for the weights")

    monkeypatch.setattr("stepscope.measure.models.transformer.build_model", too_large)
    found = outcomes_of(tiny)
    assert [outcome.status for outcome in found] == ["oom"] * 4
    assert found[0].reason == "no room for the weights"


@pytest.mark.parametrize("error", [RuntimeError("illegal memory access"), ValueError("x"), KeyboardInterrupt()])
def test_other_errors_pass_through(error, tiny, monkeypatch):
    fail_in(monkeypatch, "forward-backward", error)
    with pytest.raises(type(error)):
        outcomes_of(tiny)


def row(kind, step, phase, seconds, warmup=False, process=1):
    place = {"process": process, "mode": "step", "kind": kind, "step": step, "phase": phase}
    return place | {"warmup": warmup, "seconds": seconds}


ROWS = [
    row("phased", 0, "forward", 10.0, True),
    row("phased", 0, "backward", 20.0, True),
    row("phased", 1, "forward", 1.0),
    row("phased", 1, "backward", 2.0),
    row("phased", 2, "forward", 3.0),
    row("phased", 2, "backward", 6.0),
    row("free", 0, "step", 100.0),
    row("free", 1, "step", 5.0),
    row("phased", 0, "forward", 7.0, process=2),
    row("free", 0, "step", 4.0, process=2),
]


def test_a_summary_of_hand_made_rows():
    shown = steps.summary([steps.Outcome("step", rows=ROWS, peaks={"peak_resident_bytes": 7})])
    # The first step of the kind that ran first, all its phases, in the first process.
    assert shown["modes"] == {"step": {"status": "ok", "reason": "", "first_step": 30.0, "peak_resident_bytes": 7}}
    found = {
        (entry["kind"], entry["phase"]): [(one["count"], one["median"]) for one in entry["processes"]]
        for entry in shown["phases"]
    }
    assert found == {
        **{("phased", "forward"): [(2, 2.0), (1, 7.0)], ("phased", "backward"): [(2, 4.0)]},
        ("free", "step"): [(2, 52.5), (1, 4.0)],
    }


def test_of_several_processes_the_worst_status_and_the_largest_peak_count():
    first = [steps.Outcome("forward", peaks={"peak_resident_bytes": 5}, rows=ROWS[:1]), steps.Outcome("step", rows=[])]
    second = [steps.Outcome("forward", peaks={"peak_resident_bytes": 7}, rows=ROWS[1:2])]
    second.append(steps.Outcome("step", "oom", "full", {"peak_resident_bytes": 9}))
    forward, step = steps.merged([first, second])
    assert (forward.status, forward.peaks, forward.rows) == ("ok", {"peak_resident_bytes": 7}, ROWS[:2])
    assert (step.status, step.reason, step.peaks) == ("oom", "full", {"peak_resident_bytes": 9})


def test_a_summary_without_rows_has_no_first_step():
    shown = steps.summary([steps.Outcome("step", "unsupported", "no bf16")])
    assert shown == {
        "modes": {"step": {"status": "unsupported", "reason": "no bf16", "first_step": None}},
        "phases": [],
    }
