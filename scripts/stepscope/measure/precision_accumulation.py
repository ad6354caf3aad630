"""Adding many small numbers, equal or random ones, in formats of 32 and 16 bits."""

import torch

from .precision import Tables, dtype

ADDEND = 0.01  # has no exact binary form: each format rounds it to another number
TIMES = 1000
RANDOM = ", random addends"  # ends the name of a sum of numbers between 0 and twice the addend
# Name, dtype of the sum, dtype that 0.01 is rounded to, and whether the addend is then cast to the
# sum's dtype by hand.
VARIANTS = (
    ("fp32 += fp32", "fp32", "fp32", False),
    ("fp16 += fp16", "fp16", "fp16", False),
    ("fp32 += fp16", "fp32", "fp16", False),
    ("fp32 += fp16 cast to fp32", "fp32", "fp16", True),
    ("bf16 += bf16", "bf16", "bf16", False),
    ("fp32 += bf16", "fp32", "bf16", False),
    ("fp32 += bf16 cast to fp32", "fp32", "bf16", True),
)


def measure(spec: dict) -> Tables:
    """The last sum of each variant, with the (first) addend as it was rounded and the last
    addition, counted from 1, that changed the sum: later ones were rounded away."""
    equal = torch.full((TIMES,), ADDEND, dtype=torch.float64)
    generator = torch.Generator().manual_seed(spec.get("seed", 0))
    random = 2 * ADDEND * torch.rand(TIMES, dtype=torch.float64, generator=generator)
    table = []
    for name, into, of, cast in VARIANTS:
        for ending, numbers in {"": equal, RANDOM: random}.items():
            addends = numbers.to(spec["device"], dtype(of))
            sums = running_sums(dtype(into), addends.to(dtype(into)) if cast else addends)
            row = {
                "variant": name + ending,
                "sum_dtype": into,
                "addend_dtype": of,
                "times": TIMES,
                "addend": addends[0].item(),
                "sum": sums[-1],
                "exact": ADDEND * TIMES if numbers is equal else numbers.sum().item(),
                "last_change": 1 + sums.index(sums[-1]),
            }
            if not (ending and cast):
                table.append(row)
    return {"accumulation": table}


def running_sums(kind: torch.dtype, addends: torch.Tensor) -> list[float]:
    """The sum, a scalar tensor of `kind` that starts at 0, after each in-place addition of one of
    TIMES addends."""
    total = torch.zeros((), dtype=kind, device=addends.device)
    sums = []
    for addend in addends.expand(TIMES):
        total += addend
        sums.append(total.item())
    return sums
