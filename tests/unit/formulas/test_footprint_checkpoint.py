"""Memory with checkpoints in closed form: against sums by hand, the plain peak, and every
allocation of torch."""

import pytest
from stepscope.formulas import footprint, footprint_checkpoint
from stepscope.formulas.footprint import Setup
from stepscope.model.shape import ModelShape

SHAPE = ModelShape(d_model=64, d_ff=128, num_layers=6, num_heads=4, vocab_size=200)


def setup(precision="fp32", attention="naive", context=32, shape=SHAPE):
    return Setup(shape, 2, context, precision, attention)


def test_what_a_block_saves_by_hand():
    """fp32 and fused attention; per token and in numbers: 64 of the block's input, the norm's x /
    rms and 1 / rms, its result; Q, K, QKV, attended, one log-sum-exp a head; the same norm again;
    gate, silu, up, product of 128."""
    tokens = 2 * 32
    numbers = 64 + (64 + 1) + 64 + (64 + 64 + 192 + 64 + 4) + 64 + (64 + 1) + 64 + 4 * 128
    assert footprint_checkpoint.block_bytes(setup(attention="sdpa")) == 4 * tokens * numbers
    assert footprint_checkpoint.boundary_bytes(setup()) == 4 * tokens * 64


def test_autocasts_copies_come_and_go_with_a_block():
    weights = 4 * 64**2 + 3 * 64 * 128
    saved = footprint.total(footprint.saved_by_block(setup("bf16")))
    assert footprint_checkpoint.block_bytes(setup("bf16")) == saved + 2 * weights


@pytest.mark.parametrize("every", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("attention", ["naive", "sdpa"])
def test_the_closed_form_is_what_torch_allocates(every, attention, peak_bytes):
    """Every allocation of a step on the CPU in fp32; left out are single numbers and the logits of
    the targets."""
    # not before other tests have chosen Triton's interpreter
    from stepscope.measure.workload import Workload

    spec = {
        "d_model": 64,
        "d_ff": 128,
        "num_layers": 6,
        "num_heads": 4,
        "vocab_size": 200,
        "context": 128,
        "batch": 2,
    }
    spec |= {
        "precision": "fp32",
        "attention": attention,
        "seed": 0,
        "device": "cpu",
        "checkpoint": every,
    }
    work = Workload(spec)

    def step():
        work.clear_gradients()
        for phase in work.phases("step").values():
            phase()

    step()
    work.clear_gradients()
    work.drop_graph()
    own = setup(attention=attention, context=128)
    always = [
        footprint.parameters(own),
        *footprint.group(own, "buffers"),
        footprint.optimizer_state(own),
    ]
    found = footprint_checkpoint.peak_bytes(own, "step", every) - footprint.total(always)
    assert found == pytest.approx(peak_bytes(step)[0], rel=0.005)
