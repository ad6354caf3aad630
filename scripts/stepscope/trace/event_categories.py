"""What an event of torch.profiler is, by the category that its writer gives it.

One table for all versions and vendors: Kineto's ActivityType names of today ("kernel",
"xpu_runtime"), those of torch 1.8 to 1.11 ("Kernel", "Operator"), and the processes of
torch.autograd.profiler, whose events have no category.
"""

import re
from functools import cache

# EITHER: up to torch 1.11 a person's range has the category of operators, and only its name tells.
RANGE, OPERATOR, EITHER, CALL, ON_DEVICE, MOVES = range(6)

_KINDS: tuple[tuple[int, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (RANGE, r"user_annotation"),
        (OPERATOR, r"cpu_op"),
        (EITHER, r"operator|cpu functions"),
        # cuda, hip under the name of cuda, xpu, mtia, privateuse1, glow, gcu, and whoever comes
        (CALL, r"(\w+_)?(runtime|driver)|hpu_op"),
        (ON_DEVICE, r"(concurrent_)?kernel|mtia_ccp_events|cuda functions"),
        (MOVES, r"(gpu_)?mem(cpy|set)"),
    )
)

# A device's copies in the words of Nsight Systems, as CUPTI, roctracer and Level Zero name them.
_COPIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("Host-to-Device", re.compile(r"HtoD|HostToDevice|\bM2D", re.IGNORECASE)),
    ("Device-to-Host", re.compile(r"DtoH|DeviceToHost|\bD2M", re.IGNORECASE)),
    ("Peer-to-Peer", re.compile(r"PtoP|PeerToPeer", re.IGNORECASE)),
    ("Device-to-Device", re.compile(r"DtoD|DeviceToDevice|\bD2D", re.IGNORECASE)),
)


@cache
def kind_of(category: str) -> int | None:
    """The kind of an event of this category, None of what is not analysed: flows, counters, calls
    of Python."""
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(category)), None)


def copy_name(category: str, name: str) -> str:
    """The name of a copy or fill as Nsight Systems writes it."""
    if "set" in category.lower():
        return "[CUDA memset]"
    ways = (way for way, pattern in _COPIES if pattern.search(name))
    return f"[CUDA memcpy {next(ways, 'of unknown kind')}]"
