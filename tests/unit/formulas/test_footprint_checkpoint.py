"""Memory with checkpoints in closed form: against sums by hand, the plain peak, and every
allocation of torch."""

import pytest
from stepscope.formulas.footprint import Setup, group, total
from stepscope.formulas.footprint_peak import peak
from stepscope.model.shape import ModelShape

SHAPE = ModelShape(d_model=64, d_ff=128, num_layers=6, num_heads=4, vocab_size=200)


def setup(precision="fp32", attention="naive", context=32, every=0):
    return Setup(SHAPE, 2, context, precision, attention, checkpoint=every)


def bytes_of(setup, *groups):
    return sum(total(group(setup, each)) for each in groups)


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
    own = setup(attention=attention, context=128, every=every)
    found = peak(own, "step").bytes - bytes_of(own, "parameters", "buffers", "optimizer state")
    assert found == pytest.approx(peak_bytes(step)[0], rel=0.005)
