"""What of a GPU's memory a step's tensors cannot have. Standard library only."""

from stepscope.formulas.fits import reserved
from stepscope.formulas.options import TERMS

# The CUDA context, libraries' handles and loaded kernels, of which the allocator knows nothing; a
# round number, since it depends on the driver and on what was loaded.
CONTEXT = float(TERMS["card"]["context"])
# What the allocator reserves at most over what tensors ask for, at the peaks of whole steps.
RESERVED_OVER_ASKED: float = reserved(())["most"]


def usable(memory: float) -> float:
    """Bytes that tensors may ask for on a GPU with so many: what is said to fit is held against
    these."""
    return (memory - CONTEXT) / RESERVED_OVER_ASKED
