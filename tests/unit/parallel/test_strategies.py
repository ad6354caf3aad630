"""Every strategy computes what one device computes on the whole batch: loss, gradients, and weights
after steps of the optimizer, in float64."""

import gc
import weakref
from functools import partial

import pytest
import torch
from pytest import approx
from stepscope.model.shape import ModelShape
from stepscope.parallel.measuring import points, whole_steps
from stepscope.parallel.strategies import STRATEGIES
from torch.distributed.tensor import DTensor

NAMES = [*STRATEGIES]
POINTS = ["init", "before optimizer", "after"]
STEPS = 3


@pytest.fixture(autouse=True)
def in_float64():
    """All weights are made in float64; ranks inherit it."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def trained(spec, name, place):
    """(losses of each step, the first step's gradients, weights after the last) of a strategy."""
    work = STRATEGIES[name](spec | {"strategy": name}, place)
    losses, first = [], []
    for number in range(STEPS):
        work.clear_gradients()
        losses.append(work.whole())
        if number == 0:
            first = [gradient.clone().numpy() for gradient in work.gradients()]
        work.phases("step")["optimizer"]()
    weights = [getattr(each, "full_tensor", lambda own=each: own)() for each in work.parameters]
    return losses, first, [weight.detach().numpy() for weight in weights]


def by_hand(spec, devices):
    """The same of one model on the whole batch, by torch's AdamW."""
    from stepscope.measure.models.transformer import Model

    model = Model(spec | {"batch": spec["batch"] * devices})
    parameters = [parameter for _, parameter in model.named_parameters()]
    optimizer = torch.optim.AdamW(parameters)
    losses, first = [], []
    for number in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss()
        loss.backward()
        losses.append(float(loss.detach()))
        if number == 0:
            first = [parameter.grad.clone() for parameter in parameters]
        optimizer.step()
    return losses, first, [parameter.detach() for parameter in parameters]


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_losses_gradients_and_weights_are_those_of_one_device(name, devices, tiny, on_ranks):
    found = on_ranks(devices, lambda place: trained(tiny, name, place))
    losses, gradients, weights = by_hand(tiny, devices)
    for own_losses, own_gradients, own_weights in found:
        assert own_losses == approx(losses, rel=1e-12)
        for own, expected in zip(own_gradients, gradients, strict=True):
            assert own == approx(expected.numpy(), rel=1e-9, abs=1e-14)
        for own, expected in zip(own_weights, weights, strict=True):
            assert own == approx(expected.numpy(), rel=1e-7, abs=1e-12)


def test_a_loss_in_chunks_which_reads_the_heads_weight_is_the_same(tiny, on_ranks):
    def run(name, place):
        torch._dynamo.config.disable = True  # in the rank alone: to compile takes long
        return trained(tiny | {"loss": "chunked"}, name, place)

    _, gradients, _ = by_hand(tiny, 2)
    for name in ("ddp", "fsdp"):
        (_, found, _), _ = on_ranks(2, partial(run, name))
        for own, expected in zip(found, gradients, strict=True):
            assert own == approx(expected.numpy(), rel=1e-9, abs=1e-14)


def test_gradients_sent_in_bf16_differ_by_its_rounding_alone(tiny, on_ranks):
    spec = tiny | {"gradients": "bf16"}
    (_, sent, _), _ = on_ranks(2, lambda place: trained(spec, "overlapped", place))
    _, exact, _ = by_hand(tiny, 2)
    for own, expected in zip(sent, exact, strict=True):
        largest = float(expected.abs().max())
        assert own == approx(expected.numpy(), abs=3 * 2.0**-8 * largest)
        assert (torch.from_numpy(own) != expected).any()


KINDS = (torch.Tensor, torch.nn.Parameter, DTensor)


def bytes_of_tensors():
    """Bytes of all tensors of this process, each storage once; torch's buckets it does not show."""
    found = {}
    for tensor in gc.get_objects():
        if type(tensor) in KINDS:  # other tests leave fake ones and dead weak proxies
            gradient = tensor.grad if tensor.is_leaf else None
            for each in (tensor, gradient):
                storage = getattr(each, "_local_tensor", each)
                if storage is not None:
                    whole = storage.untyped_storage()
                    found[whole.data_ptr()] = whole.nbytes()
    return sum(found.values())


def held_at_points(spec, name, place):
    """What a rank holds more than before, as its replica is there and within a later step."""
    gc.freeze()  # what other tests have left to this process is not looked at
    before = bytes_of_tensors()
    work = STRATEGIES[name](spec | {"strategy": name}, place)

    def held():
        return work.parts() | {"all": bytes_of_tensors() - before}

    found = {"init": held()}
    whole_steps(work)
    return found | points(work, held)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_rank_holds_is_what_the_formula_says(name, tiny, on_ranks):
    torch.set_default_dtype(torch.float32)
    spec = tiny | {"d_model": 64, "d_ff": 128, "vocab_size": 101}
    parameters = ModelShape.of(spec).parameters
    buckets = 4 * parameters if name in ("ddp", "zero") else 0
    for own in on_ranks(2, lambda place: held_at_points(spec, name, place)):
        assert list(own) == POINTS
        for point, found in own.items():
            formulas = STRATEGIES[name].formulas(parameters, 2, point)
            formulas["all"] -= buckets
            assert found == approx(formulas, rel=0.03)


def is_freed(spec, name, place):
    """Whether a replica's parameters go with it, once it has run steps."""
    work = STRATEGIES[name](spec | {"strategy": name}, place)
    for _ in range(2):
        whole_steps(work)
    held_weakly = [weakref.ref(parameter) for parameter in work.parameters]
    del work
    gc.collect()
    return [parameter() for parameter in held_weakly] == [None] * len(held_weakly)


@pytest.mark.parametrize("name", NAMES)
def test_a_replica_that_is_dropped_frees_its_parameters(name, tiny, on_ranks):
    assert on_ranks(2, lambda place: is_freed(tiny, name, place)) == [True, True]
