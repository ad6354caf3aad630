"""LayerNorm, RMSNorm, softmax and cross-entropy: what autocast runs in fp32, and what comes out
where 16 bits are forced on them."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from stepscope.measure import precision
from stepscope.measure.precision import attempt, names_of
from stepscope.model.losses.own import cross_entropy
from stepscope.model.softmax import softmax
from stepscope.model.transformer import RMSNorm

EPS = 1e-5
WIDTH = 1024  # elements of a normalised row
# Of |x|: 256^2 is the first square above fp16's range.
LARGEST = (2.0**-10, 1.0, 16.0, 255.0, 256.0, 1024.0, 16384.0)
MEANS = (0.0, 1.0, 10.0, 100.0, 1000.0)  # of rows with a standard deviation of 1
# Lengths of rows of equal logits: the sum of the exponentials is the length itself.
ROWS_OF_EQUALS = (128, 1024, 8192, 65536, 131072)
LARGEST_LOGITS = (1.0, 8.0, 11.0, 12.0, 80.0, 100.0)
FORMATS = ("fp32", "fp16", "bf16")
UNDER_AUTOCAST = ("fp16", "bf16")
PLAIN = "all in the format"
AUTOCAST = "under autocast"

# Takes (rows, width) and returns the result and the intermediate that decides over it, both in the
# dtype of x: every step of it is rounded to that dtype. Within one operator torch may add up in
# fp32.
Forced = Callable[[Tensor], tuple[Tensor, Tensor]]


def measure(spec: dict) -> dict[str, list[dict]]:
    """Tables of the types under autocast, and of the forced results against float64."""
    return {"operators": _operators(spec["device"]), "forced": list(_forced(spec))}


def _operators(device: str) -> list[dict]:
    """The type that each operation gives under autocast, for an input in 16 bits and for one in
    fp32."""
    rows = []
    for name, given in itertools.product(UNDER_AUTOCAST, ("", "fp32")):
        given = given or name
        x = torch.ones(2, WIDTH, device=device, dtype=precision.dtype(given))
        for operation, call in _under_autocast(device).items():
            output, refusal = attempt(partial(_type_given, name, call, x), name, device)
            row: dict = {"operation": operation, "autocast": name, "given": given}
            types = {"input_dtypes": given, "output_dtype": output}
            rows.append(row | {"operator": "result"} | (refusal or types))
    return rows


def _type_given(name: str, call: Callable[[Tensor], Tensor], x: Tensor) -> str:
    with torch.autocast(x.device.type, dtype=precision.dtype(name)):
        return names_of(call(x))


def _under_autocast(device: str) -> dict[str, Callable[[Tensor], Tensor]]:
    """Operations on (rows, width) as a model calls them; torch's own, and those of our model."""
    weight = torch.ones(WIDTH, device=device)
    bias = torch.zeros(WIDTH, device=device)
    own_norm = RMSNorm(WIDTH, eps=EPS).to(device)
    targets = torch.zeros(2, dtype=torch.int64, device=device)
    return {
        "torch LayerNorm": lambda x: F.layer_norm(x, (WIDTH,), weight, bias, EPS),
        "torch RMSNorm": lambda x: F.rms_norm(x, (WIDTH,), weight, EPS),
        "own RMSNorm": own_norm,
        "torch softmax": lambda x: F.softmax(x, dim=-1),
        "own softmax": softmax,
        "torch cross-entropy": lambda x: F.cross_entropy(x, targets),
        "own cross-entropy": lambda x: cross_entropy(x, targets),
    }


def rms_norm(x: Tensor) -> tuple[Tensor, Tensor]:
    """x / sqrt(mean(x^2) + eps), and the mean of squares."""
    mean_square = x.square().mean(-1, keepdim=True)
    return x * torch.rsqrt(mean_square + EPS), mean_square


def layer_norm(x: Tensor, of_squares: bool = False) -> tuple[Tensor, Tensor]:
    """(x - mean) / sqrt(var + eps), and the variance: the mean of squared differences; or, of
    squares, mean(x^2) - mean(x)^2, which cancels where the mean is large."""
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    if of_squares:
        variance = x.square().mean(-1, keepdim=True) - mean.square()
    else:
        variance = centred.square().mean(-1, keepdim=True)
    return centred * torch.rsqrt(variance + EPS), variance


def softmax_of(x: Tensor, is_shifted: bool = True) -> tuple[Tensor, Tensor]:
    """exp(x - max) / sum, and the sum. Not shifted: without the maximum."""
    exponentials = (x - x.amax(-1, keepdim=True) if is_shifted else x).exp()
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total, total


def cross_entropy_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """log(sum of exp(x - max)) less the first of x - max, which is the target, and the sum."""
    shifted = x - x.amax(-1, keepdim=True)
    total = shifted.exp().sum(-1, keepdim=True)
    return total.log() - shifted[..., :1], total


@dataclass(frozen=True)
class _Operation:
    """ways: to compute it, by name, the first as float64 does, too; None stands for autocast, which
    runs the operation `autocast`."""

    name: str
    autocast: str
    ways: Mapping[str, Forced | None]

    def exact(self, x: Tensor) -> Tensor:
        """The result, of x in float64."""
        call = self.ways[PLAIN]
        assert call is not None, "all operations have it"
        return call(x.double())[0]


RMS_NORM = _Operation("RMSNorm", "own RMSNorm", {PLAIN: rms_norm, AUTOCAST: None})
LAYER_NORM = _Operation(
    "LayerNorm",
    "torch LayerNorm",
    {
        PLAIN: layer_norm,
        "variance as mean(x²) − mean(x)²": partial(layer_norm, of_squares=True),
        AUTOCAST: None,
    },
)
SOFTMAX = _Operation("softmax", "own softmax", {PLAIN: softmax_of, AUTOCAST: None})
CROSS_ENTROPY = _Operation("cross-entropy", "torch cross-entropy", {PLAIN: cross_entropy_of})
UNSHIFTED = {"without the maximum": partial(softmax_of, is_shifted=False)}


@dataclass(frozen=True)
class _Case:
    """An input (1, width) in float64 of an operation, and what was varied to make it."""

    operation: _Operation
    quantity: str
    value: float
    x: Tensor


def _forced(spec: dict) -> Iterator[dict]:
    """One row a case, way of computing and format."""
    device = spec["device"]
    for case in _cases(spec["seed"]):
        for way, call in case.operation.ways.items():
            compute = partial(_in_format, call) if call else _autocast
            for name in FORMATS if call else UNDER_AUTOCAST:
                under = "" if call else name
                found, refusal = attempt(partial(compute, case, name, device), under, device)
                row = {
                    "operation": case.operation.name,
                    "way": way,
                    "format": name,
                    "quantity": case.quantity,
                    "value": case.value,
                }
                yield row | (found or refusal)


# The input is rounded first, so that the error is that of the arithmetic.
def _in_format(call: Forced, case: _Case, name: str, device: str) -> dict:
    """What `call` makes of x rounded to a format, beside what float64 makes of that."""
    low = case.x.to(precision.dtype(name))
    result, inner = (each.double().cpu() for each in call(low.to(device)))
    inners = {"inner": str(inner.item()), "inner_exact": call(low.double())[1].item()}
    return against(case.operation.exact(low), result) | inners


def _autocast(case: _Case, name: str, device: str) -> dict:
    """The same of the case's operation under autocast."""
    low = case.x.to(precision.dtype(name))
    operation = case.operation
    with torch.autocast(device, dtype=precision.dtype(name)):
        result = _under_autocast(device)[operation.autocast](low.to(device))
    return against(operation.exact(low), result.double().cpu())


def _cases(seed: int) -> Iterator[_Case]:
    torch.manual_seed(seed)
    normal = torch.randn(1, WIDTH, dtype=torch.float64)
    normal = (normal - normal.mean()) / normal.std(correction=0)
    of_largest = normal / normal.abs().max()
    for operation in (RMS_NORM, LAYER_NORM):
        for largest in LARGEST:
            yield _Case(operation, "largest |x|", largest, largest * of_largest)
    for mean in MEANS:
        yield _Case(LAYER_NORM, "mean of x", mean, mean + normal)
    for length in ROWS_OF_EQUALS:
        equal = torch.zeros(1, length, dtype=torch.float64)
        for operation in (SOFTMAX, CROSS_ENTROPY):
            yield _Case(operation, "equal logits", float(length), equal)
    with_unshifted = replace(SOFTMAX, ways={**SOFTMAX.ways, **UNSHIFTED})
    for largest in LARGEST_LOGITS:
        logits = largest * normal / normal.max()
        yield _Case(with_unshifted, "largest logit", largest, logits)


def against(exact: Tensor, result: Tensor) -> dict:
    """A result (1, width) beside that in float64: `error` is the largest difference over the
    largest exact value, None where the result is not finite."""
    finite = bool(result.isfinite().all())
    return {
        "status": "ok",
        "error": ((result - exact).abs().max() / exact.abs().max()).item() if finite else None,
        "infinite": int(result.isinf().sum()),
        "nan": int(result.isnan().sum()),
        "zero": int((result == 0).sum()),
        "zero_exact": int((exact == 0).sum()),
    }
