"""What goes wrong with traces. Apart from the rest, so that a measuring program needs no pandas to say it."""


class TraceError(Exception):
    """The file cannot be analysed; the message is one line for the user."""
