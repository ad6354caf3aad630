"""Reading a profiler's trace and counting what is in it: kernels by phase, by category, by
range."""


class TraceError(Exception):
    """The file cannot be analysed; the message is one line for the user."""
