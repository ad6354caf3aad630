"""Variants of a ladder in one process: together in turns, or one after another."""

import pytest
import torch
from common import TINY_TIMING, picked
from stepscope.measure import ladder
from stepscope.measure.telemetry import Telemetry
from stepscope.measure.workload import Workload

pytestmark = pytest.mark.usefixtures("one_thread")

VARIANTS = [
    {"name": "fp32", "precision": "fp32"},
    {"name": "sdpa", "attention": "sdpa", "after": "fp32"},
    {"name": "fused", "attention": "sdpa", "optimizer": "fused", "after": "sdpa"},
]


@pytest.fixture
def place():
    """Spec of a place of the ladder."""
    return {key: value for key, value in TINY_TIMING.items() if key != "precision"} | {
        "study": "ladder",
        "variants": VARIANTS,
    }


def run(spec, together, process=1):
    return ladder._Process(spec, Telemetry(None), process, together).measure()


def turns(found):
    return [(row["round"], row["variant"]) for row in found.rows if row.get("round")]


def test_variants_take_turns_there_and_back(place):
    found = run(place | {"processes": 2}, together=True)
    names = picked(VARIANTS, "name")
    assert turns(found) == [(1, name) for name in names] + [(2, name) for name in reversed(names)]
    kinds = {
        (row["variant"], row["mode"], row["kind"], row["phase"])
        for row in found.rows
        if not row["warmup"]
    }
    assert kinds == {
        (name, *rest)
        for name in names
        for rest in (
            ("step", "free", "step"),
            *(("step", "phased", phase) for phase in ("forward", "backward", "optimizer")),
        )
    }
    assert picked(found.statuses, "variant", "status") == [(name, "ok") for name in names]
    losses = [found.checks[name]["loss"] for name in names]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-6)


def test_alone_each_is_measured_as_a_whole_and_rounds_say_nothing(place):
    found = run(place, together=False)
    assert turns(found) == []
    order = list(dict.fromkeys(picked(found.rows, "variant")))
    changes = sum(
        a["variant"] != b["variant"] for a, b in zip(found.rows, found.rows[1:], strict=False)
    )
    assert order == picked(VARIANTS, "name") and changes == 2
    counted = dict(picked(found.values, "variant", "value", quantity="operators"))
    assert counted["fused"] < counted["sdpa"] < counted["fp32"]


def test_compiling_is_told_once_for_the_same_code_by_the_first_process(place):
    for process, expected in ((1, [("block", 7.5)]), (2, [])):
        running = ladder._Process(place, Telemetry(None), process, True)
        for name, more in (("block", {}), ("again", {"optimizer": "fused"}), ("eager", None)):
            for seconds in (8.0, 0.75, 0.5):
                running._samples.add(name, "forward+backward", seconds, warmup=True)
            spec = place if more is None else place | {"compile": "block"} | more
            running._note_compiling(name, spec | {"precision": "fp32"})
        assert picked(running.found.values, "variant", "value") == expected


def test_processes_take_variants_in_different_orders():
    numbers = [{"name": name} for name in "abcd"]
    orders = ["".join(picked(ladder.ordered(numbers, process), "name")) for process in (1, 2, 3)]
    assert orders == ["abcd", "badc", "cdab"]
    assert ladder.ordered(numbers[:1], 2) == numbers[:1]


def fail(monkeypatch, when):
    """Let the optimizer's step of a workload fail as `when(spec)` says."""
    real = Workload._optimizer

    def step(self):
        if when(self.spec):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        real(self)

    monkeypatch.setattr(Workload, "_optimizer", step)


def test_a_variant_that_runs_out_of_memory_is_a_result_and_the_others_go_on(place, monkeypatch):
    fail(monkeypatch, lambda spec: spec.get("attention") == "sdpa" and "optimizer" not in spec)
    found = run(place, together=False)
    statuses = dict(picked(found.statuses, "variant", "status"))
    assert statuses == {"fp32": "ok", "sdpa": "oom", "fused": "ok"}
    # What ran before is kept: its warm-up of forward and backward.
    assert set(picked(found.rows, "mode", "warmup", variant="sdpa")) == {("forward-backward", True)}


def test_memory_that_runs_out_while_it_is_shared_has_each_measured_alone(place, monkeypatch):
    built = []
    fail(monkeypatch, lambda spec: len(built) == 2)
    real = ladder.steps.workload
    monkeypatch.setattr(ladder.steps, "workload", lambda spec: built.append(spec) or real(spec))
    found = ladder.measure(place, Telemetry(None), 1)
    assert set(picked(found.statuses, "status")) == {"ok"}
    assert turns(found) == []


def test_what_cannot_run_here_is_unsupported(place):
    variants = [
        *VARIANTS[:1],
        {"name": "graphs", "compile": "graphs"},
        {"name": "tf32", "precision": "tf32"},
    ]
    found = run(place | {"variants": variants}, together=True)
    assert {one["variant"]: (one["status"], one["reason"]) for one in found.statuses} == {
        "fp32": ("ok", ""),
        "graphs": ("unsupported", "CUDA graphs need a GPU"),
        "tf32": ("unsupported", "TF32 is a format of NVIDIA's tensor cores; a CPU has none"),
    }


def test_variants_fit_by_their_weights_and_the_largest_step(place):
    """12 bytes of each of 1,496 parameters for a variant; the largest step is naive attention's."""
    from stepscope.formulas import footprint, footprint_peak
    from stepscope.model.shape import ModelShape

    setup = footprint.Setup(ModelShape(8, 16, 2, 2, 11), 2, 6)
    needed = 2 * 12 * 1496 + footprint_peak.peak(setup, "step").bytes
    assert not ladder.fit_together(place, int(needed / 0.9) - 1)
    assert ladder.fit_together(place, int(needed / 0.9) + 1)
    graphs = place | {"variants": [*VARIANTS, {"name": "graphs", "compile": "graphs"}]}
    assert not ladder.fit_together(
        graphs, int(needed / 0.9) + 12 * 1496
    )  # its pool keeps a step's memory, too
