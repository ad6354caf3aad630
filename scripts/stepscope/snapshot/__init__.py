"""What a PyTorch memory snapshot holds: blocks of memory, when each was there, made by which line
and for what."""


class SnapshotError(Exception):
    """The file cannot be analysed; the message is one line for the user."""


# What memory is for, in the order in which tables and figures show it. activations: all that the
# forward pass makes and that is nothing of the others; cast weights: autocast's low-precision
# copies; buffers: tables, masks and the batch; workspace: what backward and optimizer need besides
# gradients, and libraries' own buffers.
MEMORY_CATEGORIES: tuple[str, ...] = (
    "parameters",
    "gradients",
    "optimizer state",
    "activations",
    "cast weights",
    "buffers",
    "workspace",
    "unknown",
)
