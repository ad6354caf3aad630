"""Adding a small number many times, in formats of 32 and 16 bits."""

import torch

from stepscope.measure.precision import dtype

ADDEND = 0.01  # has no exact binary form: each format rounds it to another number
TIMES = 1000
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


def measure(spec: dict) -> dict[str, list[dict]]:
    """The last sum of each variant, with the addend as it was rounded and the last addition,
    counted from 1, that changed the sum: later ones were rounded away."""
    table = []
    for name, into, of, cast in VARIANTS:
        addend = torch.tensor(ADDEND, dtype=dtype(of), device=spec["device"])
        sums = running_sums(dtype(into), addend.to(dtype(into)) if cast else addend)
        row = {
            "variant": name,
            "sum_dtype": into,
            "addend_dtype": of,
            "times": TIMES,
            "addend": addend.item(),
            "sum": sums[-1],
            "exact": ADDEND * TIMES,
            "last_change": 1 + sums.index(sums[-1]),
        }
        table.append(row)
    return {"accumulation": table}


def running_sums(kind: torch.dtype, addend: torch.Tensor) -> list[float]:
    """The sum, a scalar tensor of `kind` that starts at 0, after each of TIMES in-place additions
    of `addend`."""
    total = torch.zeros((), dtype=kind, device=addend.device)
    sums = []
    for _ in range(TIMES):
        total += addend
        sums.append(total.item())
    return sums
