"""What a PyTorch memory snapshot holds: blocks of memory, when each was there, made by which line and for what."""


class SnapshotError(Exception):
    """The file cannot be analysed; the message is one line for the user."""
