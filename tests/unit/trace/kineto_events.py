"""Events of a trace of torch.profiler."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from stepscope.trace import analysis


def event(category, name, start, length, pid=1, tid=1, **args):
    """Times in microseconds."""
    own = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
    return own | {"ts": start, "dur": length, "args": args}


def analyse_json(content, *given):
    """The tables of a trace of torch.profiler, as bytes, as text or as what JSON is made of."""
    content = content if isinstance(content, str | bytes) else json.dumps(content)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return analysis.analyse(analysis.read(path), *given)
