"""LayerNorm, RMSNorm and softmax: what autocast runs in fp32, and what comes out where 16 bits are
forced on them."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from stepscope.measure import precision
from stepscope.measure.precision import attempt, names_of
from stepscope.model.loss import cross_entropy
from stepscope.model.softmax import softmax
from stepscope.model.transformer import RMSNorm

EPS = 1e-5
WIDTH = 1024  # elements of a normalised row
LARGEST = (
    2.0**-10,
    1.0,
    16.0,
    255.0,
    256.0,
    1024.0,
    16384.0,
)  # of |x|; 256^2 is the first square above fp16's range
MEANS = (0.0, 1.0, 10.0, 100.0, 1000.0)  # of rows with a standard deviation of 1
ROWS_OF_EQUALS = (
    128,
    1024,
    8192,
    65536,
    131072,
)  # lengths; the sum of the exponentials is the length itself
LARGEST_LOGITS = (1.0, 8.0, 11.0, 12.0, 80.0, 100.0)
FORMATS = ("fp32", "fp16", "bf16")
UNDER_AUTOCAST = ("fp16", "bf16")
PLAIN, AUTOCAST = "all in the format", "under autocast"


def measure(spec: dict) -> dict:
    """The types under autocast, and the forced results against float64."""
    tables = {"operators": _operators(spec), "forced": list(_forced(spec))}
    return {"status": "ok", "reason": "", "tables": tables}


def _operators(spec: dict) -> list[dict]:
    """The type that each operation gives under autocast, for an input in 16 bits and for one in
    fp32."""
    device, rows = spec["device"], []
    for name in UNDER_AUTOCAST:
        for given in (name, "fp32"):
            for operation, call in _under_autocast(device).items():
                x = torch.ones(2, WIDTH, device=device, dtype=precision.dtype(given))
                output, reason = attempt(partial(_type_given, name, call, x), name, device)
                key = {
                    "operation": operation,
                    "autocast": name,
                    "given": given,
                    "operator": "result",
                }
                types = {"input_dtypes": given, "output_dtype": output}
                rows.append(
                    key | ({"status": "unsupported", "reason": reason} if reason else types)
                )
    return rows


def _type_given(name: str, call: Callable[[Tensor], Tensor], x: Tensor) -> str:
    with torch.autocast(x.device.type, dtype=precision.dtype(name)):
        return names_of(call(x))


def _under_autocast(device: str) -> dict[str, Callable[[Tensor], Tensor]]:
    """Operations on (rows, width) as a model calls them; torch's own, and those of our model."""
    weight, bias = torch.ones(WIDTH, device=device), torch.zeros(WIDTH, device=device)
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


# A forced function takes (rows, width) and returns the result and the intermediate that decides
# over it, both in the dtype of x: every step of it is rounded to that dtype. Within one operator
# torch may add up in fp32.
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


def _forced(spec: dict) -> Iterator[dict]:
    """One row a case, way of computing and format."""
    device = spec["device"]
    for operation, quantity, value, x, exact, ways in _cases(spec["seed"]):
        for way, call in ways.items():
            is_autocast = way == AUTOCAST
            for name in UNDER_AUTOCAST if is_autocast else FORMATS:
                key = {
                    "operation": operation,
                    "way": way,
                    "format": name,
                    "quantity": quantity,
                    "value": value,
                }
                outcome = partial(_outcome, x, name, device, exact, call, is_autocast)
                found, reason = attempt(outcome, name if is_autocast else "", device)
                yield key | (found or {"status": "unsupported", "reason": reason})


def _outcome(
    x: Tensor, name: str, device: str, exact: Callable, call: Callable | str, is_autocast: bool
) -> dict:
    """What `call` makes of x rounded to a format, beside what `exact` makes of it in float64. Under
    autocast `call` is the name of an operation.

    The input is rounded first, so that the error is that of the arithmetic.
    """
    low = x.to(precision.dtype(name))
    if is_autocast:
        with torch.autocast(device, dtype=precision.dtype(name)):
            result = _under_autocast(device)[call](low.to(device))
        return against(exact(low.double())[0], result.double().cpu())
    result, inner = (each.double().cpu() for each in call(low.to(device)))
    inners = {"inner": str(inner.item()), "inner_exact": call(low.double())[1].item()}
    return against(exact(low.double())[0], result) | inners


def _cases(
    seed: int,
) -> Iterator[tuple[str, str, float, Tensor, Callable, dict[str, Callable | str]]]:
    """Operation, what is varied, its value, the input (1, width) in float64, the function that
    float64 runs, and the ways to compute it."""
    torch.manual_seed(seed)
    normal = torch.randn(1, WIDTH, dtype=torch.float64)
    normal = (normal - normal.mean()) / normal.std(correction=0)
    of_largest = normal / normal.abs().max()
    norms = {PLAIN: rms_norm, AUTOCAST: "own RMSNorm"}
    of_squares = {"variance as mean(x²) − mean(x)²": partial(layer_norm, of_squares=True)}
    layer_norms = {PLAIN: layer_norm, **of_squares, AUTOCAST: "torch LayerNorm"}
    softmaxes = {PLAIN: softmax_of, AUTOCAST: "own softmax"}
    for largest in LARGEST:
        yield "RMSNorm", "largest |x|", largest, largest * of_largest, rms_norm, norms
    for largest in LARGEST:
        yield "LayerNorm", "largest |x|", largest, largest * of_largest, layer_norm, layer_norms
    for mean in MEANS:
        yield "LayerNorm", "mean of x", mean, mean + normal, layer_norm, layer_norms
    for length in ROWS_OF_EQUALS:
        logits = torch.zeros(1, length, dtype=torch.float64)
        yield "softmax", "equal logits", float(length), logits, softmax_of, softmaxes
    without = {"without the maximum": partial(softmax_of, is_shifted=False)}
    for largest in LARGEST_LOGITS:
        logits = largest * normal / normal.max()
        yield "softmax", "largest logit", largest, logits, softmax_of, softmaxes | without


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
