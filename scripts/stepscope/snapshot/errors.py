"""What goes wrong with snapshots. Apart from the rest, so that a measuring program needs no pandas to say it."""


class SnapshotError(Exception):
    """The file cannot be analysed; the message is one line for the user."""
