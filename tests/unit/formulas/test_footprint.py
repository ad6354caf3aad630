"""The closed-form memory of a step, against autograd, PyTorch's memory events and recordings of an
H100."""

import csv
import gzip
import itertools
import json
import math
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from common import SNAPSHOTS, picked
from stepscope.formulas import footprint
from stepscope.formulas.footprint import Setup
from stepscope.formulas.footprint_peak import moments, peak
from stepscope.model.attention import naive
from stepscope.model.shape import ModelShape
from stepscope.results import memory

WORKSPACE = 32 * 2**20  # cuBLAS on an H100, for each thread that multiplies
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
THREADS = {"inference": 1, "step": 2}

SHAPES = [
    (ModelShape(24, 40, 3, 2, 17), 2, 9),
    (ModelShape(32, 56, 1, 4, 101), 3, 32),
    (ModelShape(16, 64, 2, 8, 11), 1, 21),
    (ModelShape(32, 56, 1, 4, 101, key_value_heads=2), 3, 32),
    (ModelShape(32, 56, 2, 4, 101, key_value_heads=1), 3, 32),
    (ModelShape(16, 64, 2, 8, 11, key_value_heads=4, window=7), 1, 21),
    (ModelShape(32, 56, 2, 4, 101, window=5), 3, 32),
]


def one(setup, name):
    """The only tensor of a group."""
    (found,) = footprint.group(setup, name)
    return found


def workload(setup):
    """The step of a setup on the CPU; its mask is made anew."""
    # not before other tests have chosen Triton's interpreter
    from stepscope.measure.workload import Workload

    naive.kept_causal_mask.cache_clear()
    names = ("batch", "context", "precision", "attention", "optimizer", "loss", "checkpoint")
    spec = {name: getattr(setup, name) for name in names}
    return Workload(asdict(setup.shape) | spec | {"seed": 0, "device": "cpu"})


def _saved_bytes(setup):
    """Bytes of all storages that autograd keeps after a forward pass, without parameters and
    buffers."""
    work = workload(setup)
    module, batch = work.model.module, work.model._batch
    not_counted = [*module.parameters(), *module.buffers(), *batch]
    addresses = {each.untyped_storage().data_ptr() for each in not_counted}
    storages, alive = {}, []

    def pack(tensor):
        alive.append(tensor)  # so that no later tensor gets its address
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        work.phases("forward")["forward"]()
    return sum(size for address, size in storages.items() if address not in addresses)


def saved_outside(setup):
    """What autograd keeps for the final norm, the LM head and the loss."""
    names = ["saved by the final norm", "saved by the head", "saved by the loss"]
    names += ["made in chunks", "gradient of head weight, in chunks"]
    return [each for name in names for each in footprint.group(setup, name)]


def cast_weights(setup):
    """Bytes of autocast's copies of all matrices that are multiplied by."""
    of_a_block = footprint.total(footprint.group(setup, "cast weights of a block"))
    of_head = footprint.total(footprint.group(setup, "cast weight of the head"))
    return setup.shape.num_layers * of_a_block + of_head


def _predicted(setup, casts=None):
    """What autograd keeps by the closed form; casts: as many blocks' copies of weights."""
    of_a_block = footprint.total(footprint.group(setup, "saved by a block"))
    saved = setup.shape.num_layers * of_a_block + footprint.total(saved_outside(setup))
    copies = cast_weights(setup)
    if casts is not None:
        copies = casts * footprint.total(footprint.group(setup, "cast weights of a block"))
    return saved + copies


# The operators of CUDA's and the CPU's autocast differ in addcmul, exp, log, sum, rsqrt and
# reciprocal: here those are given fp32 anyway, or (addcmul) save nothing but tables, so that both
# save the same.
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("shape, batch, context", SHAPES)
def test_saved_by_naive_attention(shape, batch, context, precision):
    setup = Setup(shape, batch, context, precision)
    assert _predicted(setup) == _saved_bytes(setup)


@pytest.mark.parametrize("precision, contexts", [("fp32", (32, 64)), ("bf16", (32, 21))])
@pytest.mark.parametrize("shape, batch, _", SHAPES)
def test_saved_by_fused_attention(shape, batch, _, precision, contexts):
    # In fp32 contexts that the memory-efficient kernel does not round up: the CPU's kernel does not
    # round either.
    for context in contexts:
        setup = Setup(shape, batch, context, precision, attention="sdpa")
        assert _predicted(setup) == _saved_bytes(setup)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("loss, numbers", [("torch", 1), ("compiled", 1), ("chunked", 0)])
def test_saved_by_each_loss(loss, numbers, precision):
    """numbers: how many targets it averages over, a number."""
    shape, batch, context = SHAPES[0]
    setup = Setup(shape, batch, context, precision, loss=loss)
    _saved_bytes(setup)  # compiles
    casts = shape.num_layers if loss == "chunked" else None
    assert _predicted(setup, casts) + 4 * numbers == _saved_bytes(setup)


def test_the_memory_efficient_kernel_rounds_its_row_statistics_up():
    shape = ModelShape(64, 128, 1, 4)
    rows = {
        precision: [
            each.numbers
            for each in footprint.group(setup, "saved by a block")
            if each.name == "log-sum-exp"
        ]
        for precision in ("fp32", "bf16")
        for setup in [Setup(shape, 2, 33, precision, attention="sdpa")]
    }
    assert rows == {"fp32": [2 * 4 * 64], "bf16": [2 * 4 * 33]}


@pytest.fixture
def no_scratch(monkeypatch):
    """Keep operators from allocating scratch memory: the closed form leaves it out, and the
    processor decides how much.

    oneDNN's bf16 matrix products take it for packed weights and fp32 sums of each thread on a
    processor with bf16 instructions, and for the whole result in fp32 on one with AVX-512 only; on
    one with AVX2 only PyTorch does not call oneDNN. PyTorch's fused attention has a buffer for each
    thread: 16 of them are too many for these small models.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    yield
    torch.set_num_threads(threads)


ACTIVATIONS_DOMINATE = Setup(ModelShape(64, 256, 4, 4, 500), 4, 128)
PARAMETERS_DOMINATE = Setup(ModelShape(256, 1024, 3, 4, 1000), 2, 8)


@pytest.mark.usefixtures("no_scratch")
@pytest.mark.parametrize("every", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("attention", ["naive", "sdpa"])
def test_a_step_with_checkpoints_takes_what_torch_allocates(every, attention, peak_bytes):
    """Every allocation on the CPU in fp32; left out are single numbers and the logits of the
    targets."""
    shape = ModelShape(d_model=64, d_ff=128, num_layers=6, num_heads=4, vocab_size=200)
    setup = Setup(shape, 2, 128, attention=attention, checkpoint=every)
    work = workload(setup)

    def step():
        work.clear_gradients()
        for phase in work.phases("step").values():
            phase()

    step()
    work.clear_gradients()
    work.drop_graph()
    there = ("parameters", "buffers", "optimizer state")
    held = footprint.total([each for name in there for each in footprint.group(setup, name)])
    assert peak(setup, "step").bytes - held == pytest.approx(peak_bytes(step)[0], rel=0.005)


@pytest.mark.usefixtures("no_scratch")
@pytest.mark.parametrize("attention", ["naive", "sdpa"])
@pytest.mark.parametrize(
    "setup",
    [
        ACTIVATIONS_DOMINATE,
        PARAMETERS_DOMINATE,
        Setup(ModelShape(64, 256, 3, 4, 500), 2, 256),  # the scores dominate
        Setup(ModelShape(64, 160, 4, 2, 5000), 4, 96),  # the logits dominate
        *(
            Setup(ModelShape(64, 160, 4, 2, 5000), 4, 96, loss=loss)
            for loss in ("torch", "compiled", "chunked")
        ),
        Setup(ModelShape(32, 128, 2, 2, 1200), 40, 64, loss="chunked"),  # two chunks
        Setup(ModelShape(256, 1024, 3, 8, 1000), 2, 64),
        Setup(ModelShape(64, 256, 1, 4, 500), 1, 96),
        Setup(ModelShape(64, 256, 4, 4, 500, key_value_heads=2), 4, 128),
        Setup(ModelShape(64, 256, 3, 4, 500, window=40), 2, 128),
    ],
)
def test_peak_of_each_phase_in_fp32(setup, attention, peak_bytes):
    setup = replace(setup, attention=attention)
    work = workload(setup)
    step, inference = work.phases("step"), work.phases("inference")["inference"]
    step["forward"]()  # compiles, and makes the mask
    step["backward"]()
    work.clear_gradients()
    measured, before = {"inference": peak_bytes(inference)[0]}, 0
    for phase in step.values():  # makes the moments
        phase()
    work.clear_gradients()
    for name, phase in step.items():
        largest, last = peak_bytes(phase)
        measured[name] = before + largest
        before += last

    held = footprint.total([one(setup, "parameters"), *footprint.group(setup, "buffers")])
    state = one(setup, "optimizer state").bytes
    predicted = {}
    for mode in ("inference", "step"):
        for moment in moments(setup, mode):
            above = moment.bytes - held - state * (mode == "step")
            predicted[moment.phase] = max(above, predicted.get(moment.phase, 0))
    assert predicted == pytest.approx(measured, rel=0.002)


@pytest.mark.usefixtures("no_scratch")
def test_peak_of_inference_under_autocast_with_cast_weights_kept_until_its_end(peak_bytes):
    # On the CPU addcmul runs without a copy of its input, but that is not where the peak lies.
    for context, part in ((128, "last block/attention/softmax"), (16, "LM head")):
        setup = Setup(ModelShape(64, 256, 4, 4, 500), 4, context, "bf16")
        inference = workload(setup).phases("inference")["inference"]
        inference()
        predicted = peak(setup, "inference")
        held = footprint.total([one(setup, "parameters"), *footprint.group(setup, "buffers")])
        assert predicted.part == part
        assert predicted.bytes - held == peak_bytes(inference)[0]


@pytest.mark.parametrize("optimizer, parameters_of_roots", [("torch", 1), ("fused", 0)])
def test_roots_of_the_optimizers(optimizer, parameters_of_roots):
    setup = Setup(PARAMETERS_DOMINATE.shape, 2, 8, optimizer=optimizer)
    (moment,) = (each for each in moments(setup, "step") if each.phase == "optimizer")
    size = one(setup, "parameters").bytes
    assert moment.bytes == (4 + parameters_of_roots) * size + footprint.total(
        footprint.group(setup, "buffers")
    )


@pytest.fixture
def formula_of(monkeypatch):
    """What the tables say of a tensor in fp32, of a category and a module."""

    def made(setup, shape, category="", module=""):
        monkeypatch.setattr(memory, "setup_of", lambda cell, spec: setup)
        cell, text = SimpleNamespace(spec={}), "×".join(map(str, shape))
        return memory._formula(cell, 4 * math.prod(shape), text, "float32", category, module)

    return made


# Recordings of an H100 (tests/unit/snapshot/recordings/README.md).


def _recorded(name):
    spec = json.loads((SNAPSHOTS / name / "truth.json").read_text())["spec"]
    known = json.loads(gzip.decompress((SNAPSHOTS / name / "known.json.gz").read_bytes()))
    return _setup_of(spec), known


@pytest.mark.parametrize("name", ["step_fp32", "step_bf16"])
def test_saved_tensors_recorded_on_an_h100(name):
    setup, known = _recorded(name)
    prefix = f"blocks.{setup.shape.num_layers // 2}/"

    def key(module, op, dtype, size):
        return module.replace(prefix, "blocks.*/"), op, dtype, size

    recorded = sorted(
        key(each["module"], each["op"], each["dtype"], each["bytes"])
        for each in known["saved"]
        if each["cast_of"] is None
        and (each["module"].startswith(prefix) or not each["module"].startswith("blocks."))
    )
    saved = [*footprint.group(setup, "saved by a block"), *saved_outside(setup)]
    assert sorted(key(each.module, each.op, each.dtype, each.bytes) for each in saved) == recorded
    casts = sum(each["bytes"] for each in known["saved"] if each["cast_of"])
    assert cast_weights(setup) == casts


@pytest.mark.parametrize(
    "name", ["inference_fp32", "inference_bf16", "step_fp32", "step_bf16", "step_bf16_expandable"]
)
def test_peak_recorded_on_an_h100(name):
    setup, known = _recorded(name)
    snapshot = pickle.loads(gzip.decompress((SNAPSHOTS / name / "snapshot.pickle.gz").read_bytes()))
    changes = {"alloc": 1, "free_completed": -1}
    totals = [
        0,
        *itertools.accumulate(
            each["size"] * changes.get(each["action"], 0) for each in _events(snapshot)
        ),
    ]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    at_end = sum(picked(blocks, "requested_size", state="active_allocated"))
    libraries = sum(picked(known["tensors"], "bytes", category="workspace"))
    predicted = peak(setup, known["mode"], libraries)
    # Two single numbers: the loss and its gradient.
    assert predicted.bytes == pytest.approx(at_end - totals[-1] + max(totals), abs=8)
    assert libraries == WORKSPACE * THREADS[known["mode"]]


def _events(snapshot):
    (events,) = (each for each in snapshot["device_traces"] if each)
    return events


def test_sizes_recorded_on_an_h100_have_formulas(formula_of):
    for name in ("inference_bf16", "step_bf16", "step_fp32"):
        setup, known = _recorded(name)
        for each in [*known["tensors"], *known["made"]]:
            if each["shape"] and each.get("category") != "workspace":
                assert formula_of(setup, each["shape"], each.get("category", "")), each


# torch.cuda.max_memory_allocated() in the timing study on an H200, torch 2.11.
TIMING = list(csv.DictReader(Path(__file__).with_name("peaks_h200.csv").open()))


# They run before the optimizer's first step, so that there are no moments.
LIGHTER = {"forward": 1, "forward-backward": 2}


@pytest.mark.parametrize("mode, threads", (THREADS | LIGHTER).items())
def test_peaks_of_the_timing_study(mode, threads):
    column, ratios = mode.replace("-", "_"), {}
    for row in TIMING:
        setup, measured = _setup_of(row), row[f"{column}_peak_allocated_bytes"]
        predicted = peak(setup, mode, WORKSPACE * threads).bytes
        if row.get(f"{column}_status", row["status"]) != "ok":
            assert mode in LIGHTER or predicted > int(row["device_memory_bytes"])
        elif measured:
            place = (row["size"], setup.context, setup.precision)
            ratios[place] = predicted / int(measured)
    assert len(ratios) == 50
    # Blocks are up to 1 MiB larger than what is asked for: 3 % of the models whose weights are of
    # an unfortunate size.
    assert min(ratios.values()) > 0.965
    assert max(ratios.values()) < (1.005 if mode in LIGHTER else 1)
    if mode in THREADS:  # weights of exactly 4, 12 and 16 MiB
        exact = [ratio for (*place, _), ratio in ratios.items() if place == ["medium", 1024]]
        assert exact == pytest.approx([1] * 2, abs=0.001)


def _setup_of(spec):
    numbers = {name: int(spec[name]) for name in (*SHAPE, "batch", "context")}
    place = numbers["batch"], numbers["context"]
    return Setup(ModelShape.of(numbers), *place, spec["precision"])


def test_a_peak_is_the_sum_of_what_it_names():
    setup = Setup(ModelShape(1024, 4096, 24, 16), 4, 512, "bf16")
    found = peak(setup, "step", WORKSPACE)
    assert (found.phase, found.part) == ("backward", "loss")
    assert found.bytes == sum(each.bytes for each in found.contributions)
    weights = next(each for each in found.contributions if each.name == "attention weights")
    assert weights.formula == "24 × batch × heads × context × context × 2 B"
    assert weights.bytes == 24 * 4 * 16 * 512 * 512 * 2


# batch × context = d_ff, and context = d_model
LARGE = Setup(ModelShape(1024, 4096, 24, 16), 4, 1024, "bf16")


@pytest.mark.parametrize(
    "shape, category, module, dims",
    [
        ((64, 1024, 1024), "", "", "batch × heads × context × context"),
        (
            (4, 1024, 16, 32, 2),
            "activations",
            "blocks.*/attention/RoPE(Q)",
            "batch × context × d_Q",
        ),
        ((4096, 1024), "gradients", "blocks.*/FFN", "d_ff × d_model"),
        ((4096, 1024), "activations", "blocks.*/attention norm", "batch × context × d_model"),
        ((4096, 1024), "workspace", "", "d_ff × d_model"),
        ((1024, 1024), "buffers", "", "context × context"),
        ((1024, 1024), "optimizer state", "", "d_model × d_Q"),
        ((10_000, 1024), "", "", "vocabulary × d_model"),
        ((7,), "", "", ""),
    ],
)
def test_dimensions_of_a_tensor(shape, category, module, dims, formula_of):
    assert formula_of(LARGE, shape, category, module) == (dims and f"{dims} × 4 B")
