"""How long a call of attention keeps the host busy, beside PyTorch's own attention.

A host is twice as slow at times, and another machine's is another one: of calls that take turns the ratio stays.
"""

import time
from collections.abc import Callable, Sequence

import torch.nn.functional as F
from torch import Tensor

ROUNDS, CALLS = 9, 10  # of calls whose time on the host is taken; a GPU's queue holds many more


def sdpa(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    """PyTorch's own attention, which chooses its kernel: q, k and v (batch, heads or key heads, length, d_head)."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1])


def seconds_of(
    calls: Sequence[Callable[[], None]],
    wait: Callable[[], None],
    rounds: int = ROUNDS,
    times: int = CALLS,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Seconds for which one call of each keeps the host busy, the mean of so many, in each of the rounds.

    Within a round they take turns. wait: waits until the GPU has done what it was given. It is called between turns and
    never within one.
    """
    for call in calls:
        call()
    means: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, found in zip(calls, means, strict=True):
            wait()
            start = clock()
            for _ in range(times):
                call()
            found.append((clock() - start) / times)
    wait()
    return means
