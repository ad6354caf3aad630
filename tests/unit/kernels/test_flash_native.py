"""Calls made again in C++ give what the formula gives, by kernels of a made-up driver that compute in float64."""

import ctypes
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from stepscope.kernels import fused, kernels, native
from torch.utils.checkpoint import checkpoint

STREAM, COUNTER = 77, 4096
FORWARD, PREPARE, BACKWARD = 11, 12, 13  # functions
MAP = 64  # where a descriptor stands in the parameters
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
)
REPLACE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
CONTEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
CAPTURING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))


class Driver:
    """Stands in for CUDA's. Its kernels read and write float32 tensors of such a shape at the addresses they find."""

    def __init__(self, shape, mask, exact):
        self.shape, self.mask, self.exact = shape, mask, exact
        self.launched, self.is_capturing, self.context, self.status = [], 0, 9, 0
        made = LAUNCH(self._launch), REPLACE(self._replace), CAPTURING(self._capturing), CONTEXT(self._current_context)
        self.functions = made
        self.addresses = tuple(ctypes.cast(function, ctypes.c_void_p).value for function in self.functions)

    def _launch(self, function, *numbers):
        *sizes, stream, parameters, extra = numbers
        assert stream == STREAM and not parameters and (extra[0], extra[2], extra[4]) == (1, 2, None)
        size = ctypes.c_size_t.from_address(extra[3]).value
        self.launched.append((function, tuple(sizes), size))
        words = (ctypes.c_int64 * (size // 8)).from_address(extra[1])
        if self.status:
            return self.status
        kernel = {FORWARD: self._forward, PREPARE: self._prepare, BACKWARD: self._backward}[function]
        with ThreadPoolExecutor(1) as elsewhere:  # apart from the caller's modes and hooks
            elsewhere.submit(kernel, list(words)).result()
        return 0

    def _replace(self, described, address):
        assert ctypes.addressof(described.contents) % 64 == 0
        described[0] = address
        return 0

    def _capturing(self, stream, status):
        assert stream == STREAM
        status[0] = self.is_capturing
        return 0

    def _current_context(self, context):
        context[0] = self.context
        return 0

    def _at(self, address, shape=None, dtype=torch.float32):
        shape = shape or self.shape
        size = torch.Size(shape).numel() * dtype.itemsize
        return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype).view(shape)

    def _forward(self, words):
        q, k, v, output, lse, counter = words[MAP // 8], *words[:5]
        assert counter == COUNTER
        inputs = [self._at(x) for x in (q, k, v)]
        right = self.exact(*inputs, torch.zeros(self.shape), *self.mask)
        self._at(output).copy_(right[0])
        self._at(lse, self.shape[:-1]).copy_(right[1])

    def _prepare(self, words):
        output, d_output, scratch, beyond = words[:4]
        assert beyond == scratch + 512
        self._at(beyond, self.shape[:-1]).copy_((self._at(output) * self._at(d_output)).sum(-1))

    def _backward(self, words):
        q, k, v, d_output, dq, dk, dv, lse, delta = words[:9]
        inputs = [self._at(x) for x in (q, k, v, d_output)]
        output, *right = self.exact(*inputs, *self.mask)
        assert torch.allclose(self._at(lse, self.shape[:-1]), right[0].float())
        torch.testing.assert_close(
            self._at(delta, self.shape[:-1]), (output * inputs[3]).sum(-1).float(), atol=1e-5, rtol=1e-5
        )
        for address, gradient in zip((dq, dk, dv), right[1:], strict=True):
            self._at(address).copy_(gradient)


@pytest.fixture(scope="module")
def library():
    if torch.cuda.is_available():
        pytest.skip("launches on a real GPU, here")
    if not shutil.which(native._compiler()[0]):
        pytest.skip("no C++ compiler")
    return native.built()


@pytest.fixture
def known(library, monkeypatch, exact):
    """A call of `attend` for CPU tensors of any one shape and mask, remembered with launches made by hand."""
    drivers = []  # their functions must outlive their calls

    def make(q, k, v, *mask, backward=True):
        drivers.append(driver := Driver(q.shape, mask, exact))
        library.use(*driver.addresses)
        monkeypatch.setattr(native, "attend", library.attend)
        step = q.stride()
        # Parameters: k, v, output, lse, counter, padding and a descriptor of q.
        places = [(MAP, 0, 0, True), *((8 * i, 1 + i, 0, False) for i in range(5))]
        launches = [(FORWARD, (3, 2, 1), (128, 1, 1), 99, bytes(MAP + 128), places)]
        library.remember_forward(q, k, v, *mask, launches, step, COUNTER, STREAM)
        prepare = [(0, 3, 0, False), (8, 5, 0, False), (16, 9, 0, False), (24, 9, 512, False)]
        numbers = [(0, 0), (1, 0), (2, 0), (5, 0), (6, 0), (7, 0), (8, 0), (4, 0), (9, 512)]
        main = [(8 * i, number, more, False) for i, (number, more) in enumerate(numbers)]
        launches = [
            (PREPARE, (1, 1, 1), (64, 1, 1), 0, bytes(32), prepare),
            (BACKWARD, (5, 1, 1), (256, 1, 1), 7, bytes(72), main),
        ]
        if backward:
            scratch = 512 + 4 * q.shape[:-1].numel()
            library.remember_backward(q, k, v, *mask, launches, step, step, [step] * 3, scratch)
        return driver

    yield make


NODE = "torch::autograd::CppNode<stepscope::FlashAttention>"
LENGTHS = iter(range(20, 1000))  # what was remembered stays: each test has a length of its own


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(3)
    shape = (2, 3, next(LENGTHS), 16)
    return SimpleNamespace(
        qkv=[torch.randn(shape, generator=generator).requires_grad_() for _ in range(3)],
        d_output=torch.randn(shape, generator=generator),
    )


@pytest.mark.parametrize("mask", [(False, None, False), (True, None, False), (True, 5, False), (True, None, True)])
def test_both_passes_are_as_the_formula(known, inputs, exact, mask):
    driver = known(*inputs.qkv, *mask)
    output = fused.attention(*inputs.qkv, *mask)
    assert output.grad_fn.name() == NODE
    gradients = torch.autograd.grad(output, inputs.qkv, inputs.d_output)
    right = exact(*inputs.qkv, inputs.d_output, *mask)
    for got, expected in zip((output, *gradients), (right[0], *right[2:]), strict=True):
        torch.testing.assert_close(got, expected.float())
    assert driver.launched == [
        (FORWARD, (3, 2, 1, 128, 1, 1, 99), MAP + 128),
        (PREPARE, (1, 1, 1, 64, 1, 1, 0), 32),
        (BACKWARD, (5, 1, 1, 256, 1, 1, 7), 72),
    ]


def test_without_gradients_there_is_no_graph(known, inputs, exact):
    driver = known(*inputs.qkv, True, None, False)
    with torch.no_grad():
        outputs = [fused.attention(*inputs.qkv, True)]
    with torch.inference_mode():
        outputs.append(fused.attention(*inputs.qkv, True))
    outputs.append(fused.attention(*(x.detach() for x in inputs.qkv), True))
    right = exact(*inputs.qkv, inputs.d_output, True)[0].float()
    for output in outputs:
        assert output.grad_fn is None and not output.requires_grad
        torch.testing.assert_close(output, right)
    assert len(driver.launched) == 3


def test_one_of_the_tensors_may_want_a_gradient(known, inputs, exact):
    q, k, v = inputs.qkv
    known(q, k, v, True, None, False)
    output = fused.attention(q.detach(), k, v.detach(), True)
    output.backward(inputs.d_output)
    torch.testing.assert_close(k.grad, exact(q, k, v, inputs.d_output, True)[3].float())
    assert q.grad is None and v.grad is None


def test_one_tensor_given_twice_gets_both_gradients(known, inputs, exact):
    x = inputs.qkv[0]
    driver = known(x, x, x, True, None, False)
    (gradient,) = torch.autograd.grad(fused.attention(x, x, x, True), x, inputs.d_output)
    torch.testing.assert_close(gradient, sum(exact(x, x, x, inputs.d_output, True)[2:]).float())
    assert len(driver.launched) == 3


def test_what_is_not_remembered_is_left_to_python(known, library, inputs):
    q, k, v = (x.detach() for x in inputs.qkv)
    driver = known(q, k, v, True, None, False)
    attend = library.attend
    assert attend(q, k, v, True, None, False) is not None
    larger = torch.randn(q.numel() + 1).narrow(0, 1, q.numel()).view(q.shape)
    transposed = q.transpose(1, 2).contiguous().transpose(1, 2)
    half = [x.to(torch.bfloat16) for x in (q, k, v)]
    for others in ((larger, k, v), (q, transposed, v), (q[:1], k[:1], v[:1]), (q[0], k[0], v[0]), half):
        assert attend(*others, True, None, False) is None
    for mask in ((False, None, False), (True, 3, False), (True, 0, False), (True, -1, False), (True, None, True)):
        assert attend(q, k, v, *mask) is None
    driver.is_capturing = 1
    assert attend(q, k, v, True, None, False) is None
    driver.is_capturing, driver.context = 0, None  # a thread that has not used the GPU
    assert attend(q, k, v, True, None, False) is None
    driver.context = 9
    assert len(driver.launched) == 1
    given_up = q.clone()
    given_up.untyped_storage().resize_(0)
    assert attend(given_up, k, v, True, None, False) is None
    assert len(driver.launched) == 1


class Marked(torch.Tensor):
    pass


def test_a_subclass_stays_one(known, inputs):
    q, k, v = (x.detach() for x in inputs.qkv)
    known(q, k, v, True, None, False)
    assert [type(fused.attention(q.as_subclass(kind), k, v, True)) for kind in (torch.Tensor, Marked)] == [
        torch.Tensor,
        Marked,
    ]


def test_a_window_may_be_any_number(known, inputs):
    q, k, v = (x.detach() for x in inputs.qkv)
    driver = known(q, k, v, True, None, False)
    torch.testing.assert_close(fused.attention(q, k, v, True, window=2**64), fused.attention(q, k, v, True))
    assert len(driver.launched) == 1


def test_a_profiler_sees_which_call_made_a_backward_function(known, inputs):
    q, k, v = inputs.qkv
    known(q, k, v, True, None, False)
    with torch.profiler.profile(record_shapes=True) as profile:
        fused.attention(q, k, v, True).backward(inputs.d_output)
    (forward,) = (event for event in profile.events() if event.name == "FlashAttention")
    (backward,) = (event for event in profile.events() if event.name == NODE)
    assert forward.sequence_nr == backward.sequence_nr >= 0
    assert forward.input_shapes == [list(q.shape)] * 3


def test_the_precision_of_fp32_products_belongs_to_what_is_remembered(known, library, inputs):
    q, k, v = (x.detach() for x in inputs.qkv)
    known(q, k, v, True, None, False)
    before = torch.get_float32_matmul_precision()
    try:
        for precision in ("high", "highest"):
            torch.set_float32_matmul_precision(precision)
            assert (library.attend(q, k, v, True, None, False) is None) == (precision != before)
    finally:
        torch.set_float32_matmul_precision(before)


def test_what_changes_the_meaning_of_operations_is_left_to_python(known, library, inputs):
    q, k, v = (x.detach() for x in inputs.qkv)
    driver = known(q, k, v, True, None, False)

    def attend(q, k, v):
        assert library.attend(q, k, v, True, None, False) is None
        return q

    torch.func.vmap(attend)(*(torch.stack([x, x]) for x in (q, k, v)))
    torch.func.jvp(lambda q: attend(q, k, v), (q,), (q,))
    torch.func.grad(lambda q: attend(q, k, v).sum())(q)
    with torch.autograd.forward_ad.dual_level():
        attend(torch.autograd.forward_ad.make_dual(q, q), k, v)
    with torch._subclasses.FakeTensorMode() as mode:
        attend(*(mode.from_tensor(x) for x in (q, k, v)))
    attend(torch._neg_view(q), k, v)
    attend(*(x.to("meta") for x in (q, k, v)))
    attend(torch.nn.Buffer(q).to_sparse(), k, v)
    assert not driver.launched


def test_gradients_of_other_strides_are_computed_in_python(known, inputs, exact):
    q, k, v = inputs.qkv
    driver = known(q, k, v, True, None, False)
    right = [x.float() for x in exact(q, k, v, torch.ones_like(q), True)[2:]]
    for gradients in (
        torch.autograd.grad(fused.attention(q, k, v, True).sum(), (q, k, v)),
        torch.autograd.grad(fused.attention(q, k, v, True), (q, k, v), torch.ones(q.mT.shape).mT),
    ):
        for got, expected in zip(gradients, right, strict=True):
            torch.testing.assert_close(got, expected)
    assert [function for function, *_ in driver.launched] == [FORWARD] * 2


def test_before_gradients_are_remembered_they_are_computed_in_python(known, inputs, exact):
    q, k, v = inputs.qkv
    driver = known(q, k, v, True, None, False, backward=False)
    gradients = torch.autograd.grad(fused.attention(q, k, v, True), (q, k, v), inputs.d_output)
    for got, expected in zip(gradients, exact(q, k, v, inputs.d_output, True)[2:], strict=True):
        torch.testing.assert_close(got, expected.float())
    assert [function for function, *_ in driver.launched] == [FORWARD]


def test_gradients_are_not_differentiated_again(known, inputs, exact):
    q, k, v = inputs.qkv
    known(q, k, v, True, None, False)
    output = fused.attention(q, k, v, True)
    gradients = torch.autograd.grad(output, (q, k, v), inputs.d_output, create_graph=True)
    for got, expected in zip(gradients, exact(q, k, v, inputs.d_output, True)[2:], strict=True):
        torch.testing.assert_close(got, expected.float())
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        gradients[0].sum().backward()


def test_saved_tensors_may_lie_elsewhere_and_come_back_otherwise(known, inputs, exact):
    q, k, v = inputs.qkv
    driver = known(q, k, v, True, None, False)

    def unpack(x):
        return x.mT.contiguous().mT if x.ndim == 4 else x.clone()

    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), unpack):
        output = fused.attention(q, k, v, True)
    gradients = torch.autograd.grad(output, (q, k, v), inputs.d_output)
    for got, expected in zip(gradients, exact(q, k, v, inputs.d_output, True)[2:], strict=True):
        torch.testing.assert_close(got, expected.float())
    assert [function for function, *_ in driver.launched] == [FORWARD]


def test_what_is_saved_must_not_change(known, inputs):
    q, k, v = inputs.qkv
    known(q, k, v, True, None, False)
    output = fused.attention(q, k, v, True)
    with torch.no_grad():
        k.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.backward(inputs.d_output)


def test_a_second_backward_pass_needs_the_graph_kept(known, inputs):
    q, k, v = inputs.qkv
    known(q, k, v, True, None, False)
    output = fused.attention(q, k, v, True)
    first, second = (torch.autograd.grad(output, (q, k, v), inputs.d_output, retain_graph=i == 0) for i in range(2))
    assert all(map(torch.equal, first, second))
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(output, (q, k, v), inputs.d_output)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activations_may_be_computed_again(known, inputs, exact, reentrant):
    q, k, v = inputs.qkv
    driver = known(q, k, v, True, None, False)

    def attend(q, k, v):
        return fused.attention(q, k, v, True)

    checkpoint(attend, q, k, v, use_reentrant=reentrant).backward(inputs.d_output)
    for x, expected in zip((q, k, v), exact(q, k, v, inputs.d_output, True)[2:], strict=True):
        torch.testing.assert_close(x.grad, expected.float())
    assert [function for function, *_ in driver.launched] == [FORWARD, FORWARD, PREPARE, BACKWARD]


class Refused(Exception):
    pass


def test_what_python_raises_meanwhile_comes_out_as_it_is(known, inputs, monkeypatch):
    q, k, v = inputs.qkv
    known(q, k, v, True, None, False, backward=False)

    def refuse(*_):
        raise Refused

    with torch.autograd.graph.saved_tensors_hooks(refuse, refuse), pytest.raises(Refused):
        fused.attention(q, k, v, True)
    output = fused.attention(q, k, v, True)
    monkeypatch.setattr(kernels, "gradients_once", refuse)
    with pytest.raises(Refused):
        output.backward(inputs.d_output)


def test_an_error_of_the_driver_is_told(known, inputs):
    driver = known(*inputs.qkv, True, None, False)
    driver.status = 719
    with pytest.raises(RuntimeError, match=r"^fused attention: the CUDA driver's error 719 in a launch$"):
        fused.attention(*inputs.qkv, True)


def test_under_autocast_what_was_cast_is_remembered(known, inputs):
    q, k, v = (x.detach().to(torch.bfloat16) for x in inputs.qkv)
    driver = known(q, k, v, True, None, False)
    driver.status = 1
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(RuntimeError, match="driver's error 1 "):
        fused.attention(*(x.detach() for x in inputs.qkv), True)
    assert len(driver.launched) == 1


def test_compiled_autograd_runs_it(known, inputs, exact):
    q, k, v = inputs.qkv
    known(q, k, v, True, None, False)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        fused.attention(q, k, v, True).backward(inputs.d_output)
    for x, expected in zip((q, k, v), exact(q, k, v, inputs.d_output, True)[2:], strict=True):
        torch.testing.assert_close(x.grad, expected.float())


def test_a_library_that_cannot_be_built_is_said_once_and_missed_no_more(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(tmp_path / "no-compiler"))
    monkeypatch.setattr(native.driver, "functions", lambda: (1, 2, 3, 4))
    native.library.cache_clear()
    try:
        with pytest.warns(UserWarning, match=r"longer than need be: there is no .*no-compiler; .*name it in CXX"):
            assert native.library() is None
        assert native.library() is None
        monkeypatch.setenv("CXX", f"{sys.executable} -c 'import sys; sys.exit(\"an error in it\")'")
        native.library.cache_clear()
        with pytest.warns(UserWarning, match="longer than need be: .*: an error in it"):
            assert native.library() is None
    finally:
        native.library.cache_clear()


def test_a_compiler_may_be_named_with_what_starts_it(monkeypatch):
    for given, expected in (("ccache g++", ["ccache", "g++"]), ("", ["c++"]), ("/a/b", ["/a/b"])):
        monkeypatch.setenv("CXX", given)
        assert native._compiler() == expected
