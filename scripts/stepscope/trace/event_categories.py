"""What an event of torch.profiler is, by the category that its writer gives it.

One table for all versions and vendors: Kineto's ActivityType names of today ("kernel",
"xpu_runtime"), those of torch 1.8 to 1.11 ("Kernel", "Operator"), and the processes of
torch.autograd.profiler, whose events have no category.
"""

import re
from functools import cache

# EITHER: up to torch 1.11 a person's range has the category of operators, and only its name tells.
RANGE, OPERATOR, EITHER, CALL, ON_DEVICE, MOVES = range(6)

_KINDS = (
    (RANGE, r"user_annotation"),
    (OPERATOR, r"cpu_op"),
    (EITHER, r"operator|cpu functions"),
    # cuda, hip under the name of cuda, xpu, mtia, privateuse1, glow, gcu, and whoever comes
    (CALL, r"(\w+_)?(runtime|driver)|hpu_op"),
    (ON_DEVICE, r"(concurrent_)?kernel|mtia_ccp_events|cuda functions"),
    (MOVES, r"(gpu_)?mem(cpy|set)"),
)

# A device's copies in the words of Nsight Systems, as CUPTI, roctracer and Level Zero name them.
_COPIES = (
    ("Host-to-Device", r"HtoD|HostToDevice|\bM2D"),
    ("Device-to-Host", r"DtoH|DeviceToHost|\bD2M"),
    ("Peer-to-Peer", r"PtoP|PeerToPeer"),
    ("Device-to-Device", r"DtoD|DeviceToDevice|\bD2D"),
)


@cache
def kind_of(category: str) -> int | None:
    """The kind of an event of this category, None of what is not analysed: flows, counters, calls
    of Python."""
    fits = (kind for kind, pattern in _KINDS if re.fullmatch(pattern, category, re.IGNORECASE))
    return next(fits, None)


def copy_name(category: str, name: str) -> str:
    """The name of a copy or fill as Nsight Systems writes it."""
    if "set" in category.lower():
        return "[CUDA memset]"
    ways = (way for way, pattern in _COPIES if re.search(pattern, name, re.IGNORECASE))
    return f"[CUDA memcpy {next(ways, 'of unknown kind')}]"
