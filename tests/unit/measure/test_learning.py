"""What the learning study trains on, and what training leaves."""

import math
import weakref

import pytest
import torch
from common import TINY, one_line
from pytest import approx
from stepscope.measure import learning, models
from stepscope.measure.found import Found

SPEC = TINY | {"study": "learning", "d_model": 16, "d_ff": 32, "num_layers": 1}
SPEC |= {"vocab_size": 256, "context": 8, "batch": 4, "optimizer": "fused", "steps": 6}
SPEC["learning_rate"] = 0.002


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A standard library of twenty files, of which the tenth and the last are held out."""
    monkeypatch.setattr(learning.sysconfig, "get_path", lambda name: str(tmp_path))
    for at in range(20):
        letter = b"z" if at % 10 == 9 else bytes([97 + at % 3])
        (tmp_path / f"m{at:02}.py").write_bytes(letter * 20)
    return tmp_path


def test_every_tenth_file_is_held_out(library):
    trained, held_out = learning.texts()
    assert held_out == b"z" * 20 + b"\n" + b"z" * 20
    assert len(trained) == 18 * 20 + 17 and b"z" not in trained


def test_without_sources_nothing_is_trained(library):
    for path in library.glob("*.py"):
        path.unlink()
    variants = [{"name": name, "precision": name} for name in ("fp32", "bf16")]
    found = learning.measure(SPEC | {"variants": variants}, None, 1)
    said = [(one["variant"], one["status"], one["reason"]) for one in found.statuses]
    reason = "context 8 is longer than the text (0 bytes)"
    assert said == [("fp32", "unsupported", reason), ("bf16", "unsupported", reason)]
    assert learning.summary([found])["tables"] == {"curves": [], "ends": []}


def test_a_text_is_as_long_as_a_context(library):
    # Held out are twice twenty bytes and a line end between: 41, one more than the context is.
    assert learning.batches(SPEC | {"context": 40}, 1)[1].shape == (learning.EXAM, 4, 41)
    assert "context 41 is longer than the text (41 bytes" in one_line(
        models.Unsupported, learning.batches, SPEC | {"context": 41}, 1
    )


def test_orders_have_the_same_batches():
    (first, exam), (second, same_exam) = (learning.batches(SPEC, order) for order in (1, 2))
    assert first.shape == (6, 4, 9) and exam.shape == (learning.EXAM, 4, 9)
    assert torch.equal(exam, same_exam)
    assert not torch.equal(first, second)
    rows = [sorted(map(bytes, each.flatten(1).tolist())) for each in (first, second)]
    assert rows[0] == rows[1]


def test_a_short_text_comes_again(library):
    lessons, _ = learning.batches(SPEC | {"steps": 50}, 1)
    # 377 bytes hold 47 windows of 9 that begin 8 apart; 200 are asked for.
    assert len(lessons.flatten(0, 1).unique(dim=0)) <= 47
    assert len(lessons) == 50


def test_the_loss_of_frequencies_by_hand():
    lessons = torch.tensor([[[1, 1, 1, 2]]], dtype=torch.uint8)
    exam = torch.tensor([[[9, 1, 2]]], dtype=torch.uint8)
    # 254 bytes never occur and count as seen once: 4 + 254 in all.
    by_hand = -(math.log(3 / 258) + math.log(1 / 258)) / 2
    assert learning.of_frequencies(lessons, exam) == approx(by_hand, rel=1e-12)


def test_a_curve_is_of_means_and_without_what_is_no_number():
    losses = torch.arange(60.0)
    losses[59] = math.nan
    points = learning.curve(losses)
    assert len(points) == 20
    assert points[:2] == [(3, 1.0), (6, 4.0)]
    assert points[-1] == (60, None)


def test_training_is_that_of_torch():
    """One weight more or less and another loss: losses are those of a plain loop."""
    lessons, exam = learning.batches(SPEC, 1)
    seen = learning.trained(SPEC, lessons, exam)
    model = models.load(SPEC)
    optimizer = torch.optim.AdamW(model.module.parameters(), lr=0.002)
    losses = []
    for batch in lessons.long():
        logits = model.module(batch[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert [loss for _, loss in seen["curve"]] == approx(losses, rel=1e-4)
    exam = exam.flatten(0, 1).long()
    with torch.no_grad():
        logits = model.module(exam[:, :-1])
        held_out = torch.nn.functional.cross_entropy(logits.flatten(0, 1), exam[:, 1:].flatten())
    assert seen["held_out"] == approx(float(held_out), rel=1e-4)


class Kept:
    """A tensor that autograd has saved."""

    def __init__(self, tensor):
        self.tensor = tensor


def test_a_batch_finds_no_other_in_memory(monkeypatch):
    kept, before = weakref.WeakSet(), []
    forward = learning.forward

    def pack(tensor):
        one = Kept(tensor.detach())  # one with its graph would be a circle
        kept.add(one)
        return one

    def counted(work, batch):
        gradients = [each.grad for each in work.parameters if each.grad is not None]
        before.append((len(kept), len(gradients)))
        loss = forward(work, batch)
        assert len(kept) > 10
        return loss

    monkeypatch.setattr(learning, "forward", counted)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one.tensor):
        learning.trained(SPEC, *learning.batches(SPEC, 1))
    assert before == [(0, 0)] * (6 + learning.EXAM)


def test_a_scaled_loss_ends_where_it_would_without():
    lessons, exam = learning.batches(SPEC, 1)
    plain = learning.trained(SPEC, lessons, exam)
    scaled = learning.trained(SPEC | {"scaled": True}, lessons, exam)
    assert scaled["held_out"] == approx(plain["held_out"], rel=1e-3)


def test_our_own_optimizer_takes_no_scaled_loss():
    assert "own optimizers alone" in one_line(
        models.Unsupported,
        learning.trained,
        SPEC | {"scaled": True, "optimizer": "own"},
        *learning.batches(SPEC, 1),
    )


def test_what_cannot_be_trained_says_why():
    variants = [{"name": "fp32", "precision": "fp32"}, {"name": "tf32", "precision": "tf32"}]
    found = learning.measure(SPEC | {"variants": variants}, None, 1)
    statuses = {one["variant"]: (one["status"], one["reason"]) for one in found.statuses}
    assert statuses["fp32"] == ("ok", "")
    assert statuses["tf32"][0] == "unsupported" and "tensor cores" in statuses["tf32"][1]
    assert list(found.checks) == ["fp32"]


def test_a_record_has_a_row_a_point_and_a_row_an_end():
    seen = {"curve": [(5, 3.0), (10, None)], "held_out": None, "frequencies": 3.1}
    more = learning.summary([Found(2, checks={"bf16": seen})])
    assert more["tables"] == {
        "curves": [
            {"variant": "bf16", "order": 2, "step": 5, "loss": 3.0},
            {"variant": "bf16", "order": 2, "step": 10, "loss": None},
        ],
        "ends": [{"variant": "bf16", "order": 2, "held_out": None, "frequencies": 3.1}],
    }
