"""Memory of a rank by strategy, in closed form: weights, gradients and optimizer state at three
points of a step. Standard library only.

Of P parameters in fp32 AdamW keeps two moments. What a step makes and lets go of (activations, a
buffer while it is sent) is not in it, and is the same for all. Rajbhandari et al. 2020, section 5,
count the same terms.
"""

from dataclasses import dataclass

FP32 = 4  # bytes

POINTS = ("init", "before optimizer", "after")  # the state is made by the first step


@dataclass(frozen=True)
class Shares:
    """Of a rank: by what each of these is divided by N devices (1: it has all), and how many
    buckets as large as the gradients it has besides."""

    weights: bool = False
    gradients: bool = False
    state: bool = False
    buckets: int = 0


SHARES = {
    "alone": Shares(),
    "naive": Shares(),
    "flat": Shares(),
    "overlapped": Shares(),
    "staged": Shares(),
    "ddp": Shares(buckets=1),
    "zero": Shares(state=True, buckets=1),
    "sharded": Shares(gradients=True, state=True),
    "fsdp": Shares(weights=True, gradients=True, state=True),
}


def held(strategy: str, parameters: int, devices: int, point: str) -> float:
    """Bytes that a rank holds at one of POINTS."""
    shares = SHARES[strategy]
    each = FP32 * parameters

    def part(is_divided: bool) -> float:
        return each / devices if is_divided else each

    found = part(shares.weights) + shares.buckets * each
    if point != "init":
        found += part(shares.gradients) + 2 * part(shares.state)
    return found
