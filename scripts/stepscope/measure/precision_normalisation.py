"""LayerNorm, RMSNorm, softmax and cross-entropy: what comes out where 16 bits are forced on them,
and under autocast."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from stepscope.model.softmax import softmax
from stepscope.model.transformer import RMSNorm

from . import precision
from .precision import Tables

EPS = 1e-5
WIDTH = 1024  # elements of a normalised row
# Of |x|: 256^2 is the first square above fp16's range.
LARGEST = (2.0**-10, 1.0, 16.0, 255.0, 256.0, 1024.0, 16384.0)
MEANS = (0.0, 1.0, 10.0, 100.0, 1000.0)  # of rows with a standard deviation of 1
# Lengths of rows of equal logits: the sum of the exponentials is the length itself.
ROWS_OF_EQUALS = (128, 1024, 8192, 65536, 131072)
LARGEST_LOGITS = (1.0, 8.0, 11.0, 12.0, 80.0, 100.0)
FORMATS = ("fp32", "fp16", "bf16")
PLAIN = "all in the format"
AUTOCAST = "under autocast"

# Takes (rows, width) and returns the result and the intermediate that decides over it, both in the
# dtype of x: every step of it is rounded to that dtype. Within one operator torch may add up in
# fp32.
Forced = Callable[[Tensor], tuple[Tensor, Tensor]]


def measure(spec: dict) -> Tables:
    """The results against float64."""
    return {"forced": list(_forced(spec))}


def rms_norm(x: Tensor) -> tuple[Tensor, Tensor]:
    """x / sqrt(mean(x^2) + eps), and the mean of squares."""
    mean_square = x.square().mean(-1, keepdim=True)
    return x * torch.rsqrt(mean_square + EPS), mean_square


def layer_norm(x: Tensor) -> tuple[Tensor, Tensor]:
    """(x - mean) / sqrt(var + eps), and the variance."""
    return rms_norm(x - x.mean(-1, keepdim=True))


def softmax_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """exp(x - max) / sum, and the sum."""
    exponentials = (x - x.amax(-1, keepdim=True)).exp()
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total, total


def cross_entropy_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """log(sum of exp(x - max)) less the first of x - max, which is the target, and the sum."""
    shifted = x - x.amax(-1, keepdim=True)
    total = shifted.exp().sum(-1, keepdim=True)
    return total.log() - shifted[..., :1], total


FORCED: dict[str, Forced] = {
    "RMSNorm": rms_norm,
    "LayerNorm": layer_norm,
    "softmax": softmax_of,
    "cross-entropy": cross_entropy_of,
}


def _forced(spec: dict) -> Iterator[dict]:
    """One row a case, format and way of computing. The input is rounded first, so that the error is
    that of the arithmetic."""
    device = spec["device"]
    of_models: dict[str, Callable[[Tensor], Tensor]] = {
        "RMSNorm": RMSNorm(WIDTH, eps=EPS).to(device),
        "LayerNorm": nn.LayerNorm(WIDTH, eps=EPS).to(device),
        "softmax": softmax,
    }
    for operation, quantity, value, x in _cases(spec["seed"]):
        call = FORCED[operation]
        for name in FORMATS:
            row = {"operation": operation, "quantity": quantity, "value": value, "format": name}
            low = x.to(precision.dtype(name))
            exact, exact_inner = call(low.double())
            result, inner = call(low.to(device))
            inners = {"inner": str(inner.double().item()), "inner_exact": exact_inner.item()}
            yield row | {"way": PLAIN} | against(exact, result) | inners
            if name != "fp32" and operation in of_models:
                with torch.autocast(device, dtype=low.dtype):
                    result = of_models[operation](low.to(device))
                yield row | {"way": AUTOCAST} | against(exact, result)


def _cases(seed: int) -> Iterator[tuple[str, str, float, Tensor]]:
    """(operation, what is varied, its value, the input (1, width) in float64)."""
    torch.manual_seed(seed)
    normal = torch.randn(1, WIDTH, dtype=torch.float64)
    normal = (normal - normal.mean()) / normal.std(correction=0)
    for largest in LARGEST:
        for operation in ("RMSNorm", "LayerNorm"):
            yield operation, "largest |x|", largest, largest * normal / normal.abs().max()
    for mean in MEANS:
        yield "LayerNorm", "mean of x", mean, mean + normal
    for length in ROWS_OF_EQUALS:
        for operation in ("softmax", "cross-entropy"):
            equal = torch.zeros(1, length, dtype=torch.float64)
            yield operation, "equal logits", float(length), equal
    for largest in LARGEST_LOGITS:
        yield "softmax", "largest logit", largest, largest * normal / normal.max()


def against(exact: Tensor, result: Tensor) -> dict:
    """A result (1, width) beside that in float64: `error` is the largest difference over the
    largest exact value, None where the result is not finite."""
    result = result.double().cpu()
    finite = bool(result.isfinite().all())
    return {
        "error": ((result - exact).abs().max() / exact.abs().max()).item() if finite else None,
        "infinite": int(result.isinf().sum()),
        "nan": int(result.isnan().sum()),
    }
