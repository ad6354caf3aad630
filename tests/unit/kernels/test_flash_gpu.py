"""What only a GPU shows: kernels launched again, captured in graphs, on other streams, threads and
devices, and those for Hopper GPUs with a wide d_head. All other tests of attention run the compiled
kernels there, too."""

import threading

import pytest
import torch
from attending import agree, assert_close, exact, random_tensors, run
from stepscope.kernels import fused, kernels
from triton import knobs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
needs_hopper = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9,
    reason="needs a Hopper GPU",
)


@pytest.fixture
def both():
    """A call that makes both passes of causal attention, of inputs made once: output and gradients
    of q, k and v."""

    def make(batch, length, d_head, dtype=torch.bfloat16):
        *inputs, d_output = random_tensors(batch, length, length, d_head, dtype)
        inputs = [x.requires_grad_() for x in inputs]

        def call():
            output = fused.attention(*inputs, True)
            return output.detach(), *torch.autograd.grad(output, inputs, d_output)

        call.inputs, call.d_output = inputs, d_output
        return call

    return make


def assert_same(one, other):
    assert all(map(torch.equal, one, other))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("d_head, sharing", {64: 1, 80: 4, 96: 1, 128: 4, 256: 1}.items())
@pytest.mark.parametrize("mask", [{"window": 100}, {"lower_right": True}])
def test_calls_made_again_give_the_same(dtype, d_head, sharing, mask):
    agree(300, 500, d_head, dtype, batch=(2, 8), sharing=sharing, again=5, **mask)


@pytest.mark.parametrize("d_head", [64, 128, 256])
def test_a_graph_of_both_passes_gives_the_same_on_every_replay(both, d_head):
    call = both((2, 8), 300, d_head)
    expected = call()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    for _ in range(3):
        for x in results:
            x.zero_()
        graph.replay()
        assert_same(results, expected)
    assert_same(call(), expected)  # what counts blocks outside of the graph is left as it was


def test_graphs_of_a_compiled_function_hold_it(both):
    call = both((2, 8), 290, 64)

    def twice(q, k, v):
        return fused.attention(q, k, v, True) * 2

    def results(function):
        output = function(*call.inputs)
        kept = output.detach().clone()
        return kept, *torch.autograd.grad(output, call.inputs, call.d_output)

    expected = results(twice)
    compiled = torch.compile(twice, mode="reduce-overhead")
    for _ in range(5):
        torch.compiler.cudagraph_mark_step_begin()
        assert_same(results(compiled), expected)


def test_each_stream_has_its_own(both):
    call = both((2, 8), 300, 64)
    results = []
    for stream in [torch.cuda.Stream() for _ in range(2)] * 4:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            results.append(call())
        torch.cuda.current_stream().wait_stream(stream)
    for other in results[1:]:
        assert_same(results[0], other)


def test_a_new_thread_may_begin_with_attention(both):
    call = both((2, 8), 260, 64)
    results = [call()]
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    assert len(results) == 2
    assert_same(*results)


def test_a_kernel_is_compiled_again_only_for_other_code(both, monkeypatch):
    made = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **of: made.append(of["src"]))
    both((2, 3), 100, 48)()
    number = len(made)
    assert number
    both((3, 2), 300, 48)()
    both((2, 3), 77, 48)()
    assert len(made) == number
    both((2, 3), 100, 48, torch.float16)()
    assert len(made) > number


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_kernels_run_on_the_device_of_their_tensors_not_on_the_current_one():
    given = random_tensors((1, 2), 300, 300, 64, torch.bfloat16)
    right = [x.to("cuda:1") for x in exact(*given, True)]
    with torch.cuda.device(0):
        for _ in range(2):
            results = run(*(x.to("cuda:1") for x in given), True)
            assert all(x.device.index == 1 for x in results) and torch.cuda.current_device() == 0
            assert_close(results, right, 1.6e-2)


@needs_hopper
@pytest.mark.parametrize(
    "queries, keys, d_head, dtype, is_causal, more",
    [
        (1000, 1000, 256, torch.bfloat16, True, {}),
        (700, 900, 256, torch.bfloat16, False, {}),
        (900, 700, 192, torch.float16, True, {}),
        (500, 900, 256, torch.bfloat16, True, {"sharing": 2, "lower_right": True}),
        (900, 500, 136, torch.float16, True, {"sharing": 2, "lower_right": True}),
        (700, 700, 160, torch.bfloat16, True, {"sharing": 4, "window": 100}),
        (700, 1000, 256, torch.bfloat16, True, {"window": 300, "lower_right": True}),
        (1, 77, 256, torch.float16, False, {}),
        (129, 1, 248, torch.float16, True, {}),
    ],
)
def test_wide_gradients(queries, keys, d_head, dtype, is_causal, more):
    agree(queries, keys, d_head, dtype, is_causal, batch=(2, 4), again=5, **more)


@pytest.mark.parametrize("d_head", [64, 80, 128])
@pytest.mark.parametrize("is_causal", [True, False])
def test_the_portable_kernels_on_a_hopper_gpu_too(monkeypatch, d_head, is_causal):
    monkeypatch.setattr(kernels, "_is_hopper", lambda device: False)
    agree(300, 300, d_head, torch.bfloat16, is_causal)


@pytest.mark.parametrize("d_head", [64, 128])
@pytest.mark.parametrize("batch, length", [((1, 3), 5000), ((40, 5), 200), ((1, 1), 9000)])
def test_more_blocks_than_multiprocessors(batch, length, d_head):
    agree(length, length, d_head, torch.bfloat16, batch=batch)


def test_nothing_waits_for_the_device(both):
    call = both((1, 2), 300, 64)
    call()
    torch.cuda.set_sync_debug_mode("error")
    try:
        call()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_tf32_is_used_only_when_allowed(set_precision):
    set_precision("highest")
    wide = agree(300, 300, 64)
    set_precision("high")
    narrow = agree(300, 300, 64, tolerance=1e-2, of_lse=1e-3)  # its scores are TF32's, too
    error = (narrow[0] - wide[0]).norm() / wide[0].norm()
    assert 1e-5 < error < 2e-3
