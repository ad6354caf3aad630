"""Events of a trace of torch.profiler."""


def event(category, name, start, length, pid=1, tid=1, **args):
    """Times in microseconds."""
    own = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
    return own | {"ts": start, "dur": length, "args": args}
