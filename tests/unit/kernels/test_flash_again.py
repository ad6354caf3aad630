"""Calls made again in C++ on a real GPU give what the first call gave, bit for bit, wherever they are made."""

import ctypes
import threading

import pytest
import torch
from stepscope.kernels import fused, kernels, native

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

NODE = "torch::autograd::CppNode<stepscope::FlashAttention>"
CAPTURING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("d_head", [64, 80, 128, 256])
@pytest.mark.parametrize("sharing", [1, 4])
def test_calls_made_again_give_the_same(random_tensors, exact, dtype, d_head, sharing):
    q, k, v, d_output = random_tensors((2, 8), 300, 300, d_head, dtype, sharing=sharing)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    nodes, results = [], []
    for _ in range(4):
        output = fused.attention(*inputs, True, window=100)
        nodes.append(output.grad_fn.name())
        results.append((output, *torch.autograd.grad(output, inputs, d_output)))
    assert nodes == ["_FlashAttentionBackward"] * 2 + [NODE] * 2
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))
    right = exact(q, k, v, d_output, True, 100)
    for got, expected in zip(results[0], (right[0], *right[2:]), strict=True):
        error = (got.double() - expected).norm() / expected.norm()
        assert error < (1e-5 if dtype == torch.float32 else 1.6e-2)


def test_a_graph_captures_calls_of_its_own(random_tensors):
    q, k, v, _ = random_tensors((2, 8), 300, 300, 64, torch.bfloat16)
    first, *others = (fused.attention(q, k, v, True) for _ in range(3))
    assert all(torch.equal(first, other) for other in others)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = fused.attention(q, k, v, True)
    for _ in range(3):
        output.zero_()
        graph.replay()
        assert torch.equal(output, first)


def test_graphs_of_a_compiled_function_hold_it(random_tensors):
    q, k, v, d_output = random_tensors((2, 8), 290, 290, 64, torch.bfloat16)
    inputs = [x.requires_grad_() for x in (q, k, v)]

    def twice(q, k, v):
        return fused.attention(q, k, v, True) * 2

    expected = (twice(*inputs), *torch.autograd.grad(twice(*inputs), inputs, d_output))
    compiled = torch.compile(twice, mode="reduce-overhead")
    for _ in range(5):
        torch.compiler.cudagraph_mark_step_begin()
        output = compiled(*inputs)
        results = (output.detach().clone(), *torch.autograd.grad(output, inputs, d_output))
        assert all(map(torch.equal, results, expected))


def test_each_stream_has_its_own(random_tensors):
    q, k, v, d_output = random_tensors((2, 8), 300, 300, 64, torch.bfloat16)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    results = []
    for stream in [torch.cuda.Stream() for _ in range(2)] * 4:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            output = fused.attention(*inputs, True)
            results.append((output, *torch.autograd.grad(output, inputs, d_output)))
        torch.cuda.current_stream().wait_stream(stream)
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))
    assert set(kernels.kernels(*inputs, True, None, False)._seen.values()) == {2}


def test_a_new_thread_may_begin_with_attention(random_tensors):
    q, k, v, d_output = random_tensors((2, 8), 260, 260, 64, torch.bfloat16)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    results = []

    def both():
        output = fused.attention(*inputs, True)
        results.append((output, *torch.autograd.grad(output, inputs, d_output)))

    for _ in range(3):
        both()
    thread = threading.Thread(target=both)
    thread.start()
    thread.join()
    assert len(results) == 4 and all(map(torch.equal, results[0], results[3]))


def test_an_error_of_the_driver_is_told(random_tensors):
    q, k, v, _ = random_tensors((2, 8), 270, 270, 64, torch.bfloat16)
    for _ in range(2):
        fused.attention(q, k, v, True)
    refuse = CAPTURING(lambda stream, status: 400)
    launch, replace, _, context = native.driver.functions()
    native.library().use(launch, replace, ctypes.cast(refuse, ctypes.c_void_p).value, context)
    try:
        with pytest.raises(RuntimeError, match="driver's error 400"):
            fused.attention(q, k, v, True)
    finally:
        native.library().use(*native.driver.functions())
