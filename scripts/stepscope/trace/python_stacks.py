"""Python's line behind each CUDA call, as `nsys profile --python-backtrace=cuda` records it.

Nsight Systems 2025 makes an NVTX mark at the start of the call, with the stack as its payload; the payload is in the
SQLite export only if that was made with `--include-json=true`. As seen in its exports (no documentation says it):
`{"Python Backtrace on CUDA": {"Frames": [{"Function": 87, "File": 88, "Line": 2567}, ...]}}`, the innermost frame
first, functions and files as ids of the string table or as text.
"""

import json
import re

from stepscope.trace.names import Names

# A line of the program says more than one of a package that it calls.
_INSTALLED = re.compile(r"/(site|dist)-packages/|/lib/python3")


def line_of(payload: str, texts: dict[int, str], names: Names) -> tuple[int, int] | None:
    """(code of the file's name, line) of the innermost frame outside installed packages, else of the innermost.

    texts: the export's string table. None for a payload that is no stack.
    """
    try:
        (content,) = json.loads(payload).values()
        frames = [(_text(frame["File"], texts), int(frame["Line"])) for frame in content["Frames"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    own = [frame for frame in frames if not _INSTALLED.search(frame[0])] or frames
    return (names.code(own[0][0]), own[0][1]) if own else None


def _text(value: int | str, texts: dict[int, str]) -> str:
    return value if isinstance(value, str) else texts.get(value, "(unknown file)")
