"""What a trace consists of, whichever profiler wrote it. Times are in nanoseconds on one clock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from stepscope.recordings import names as people

_EVENT = ("process", "start", "end", "name")
RANGES = (*_EVENT, "thread", "nested", "cut", "sequence")
CALLS = (*_EVENT, "thread", "correlation")
OPERATIONS = (*_EVENT, "device", "stream", "correlation", "kind", "bytes", "shape")
# What a library says of a collective: the row of its operation; elements that a rank gives and
# gets, -1 unknown; bytes of one; ranks in the group; its number in the group, -1 unknown.
MESSAGES = ("operation", "collective", "given", "got", "item", "group", "ranks", "sequence")
# Of columns that are no whole numbers of 64 bits.
_TYPES = {
    "nested": bool,
    "cut": bool,
    "kind": np.int8,
    "collective": object,
    "group": object,
}

SECOND = 1e9  # nanoseconds

# The kinds of operations; a graph that was traced as a whole is one operation.
KERNEL, MEMORY, GRAPH = range(3)

_PROCESS_ID = 2**24 - 1  # the last bits of Nsight Systems' number of a process


class Names(dict[str, int]):
    """The names of a trace's events, each with its position, by which events refer to it: one that
    is asked for is added if it is new."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]

    def operator(self, text: str) -> tuple[int, int]:
        """(code, sequence number or -1) of a range's text.

        PyTorch names its operators as `aten::mm, seq = 12, op_id = 34, sizes = [[2, 3], [3, 4]]`
        (torch.autograd.profiler.emit_nvtx): each text is another, so the name is what stands
        before.
        """
        name, found, rest = text.partition(", seq = ")
        if not found:
            return self[text.partition(", op_id = ")[0]], -1
        digits = rest.partition(",")[0]
        return self[name_of_operator(name)], int(digits) if digits.isdecimal() else -1


def name_of_operator(name: str) -> str:
    """One that is called as a phase is, `forward`, is none, and gets a name of its own."""
    is_called_so = name.lower() == people.meaning(name)
    return f"{name} (operator)" if is_called_so else name


@dataclass
class Trace:
    """The events of a trace as data frames; `name` indexes `names`.

    A thread's number is its own in the whole trace, also beside another process with the same one.

    ranges: named ranges; `nested` ones were pushed and popped by one thread, `cut` ones had not
    ended when the trace did; `sequence` is autograd's sequence number, -1 without one. calls: CUDA
    API calls of the host. operations: what the GPU did, in the order of its start (`kind`: KERNEL,
    MEMORY or GRAPH), with the `correlation` of the call that launched it within its process, and
    the `bytes` that it copied or filled, -1 if that is not known, and a number for the `shape` that
    a kernel was launched with. others: what else the host did, by what it is, as calls: those of a
    `library` of CUDA's, those into the `system`, and the `line` of Python behind CUDA calls; of one
    file alone. On a trace without a GPU the
    operators of the processor stand where kernels would, and `device_is_host` is true. operators:
    codes of names that are operators' rather than modules', if the trace says so. diagnostics: what
    the profiler warned of. messages: rows of MESSAGES. profiler: "nsys" or "torch". processes: what
    a process is called, if not by the number's last bits. ranks: its rank, if the trace says so.
    """

    names: list[str]
    ranges: pd.DataFrame
    calls: pd.DataFrame
    operations: pd.DataFrame
    device_is_host: bool = False
    operators: frozenset[int] = frozenset()
    diagnostics: tuple[str, ...] = ()
    messages: pd.DataFrame = field(default_factory=lambda: frame(MESSAGES))
    others: dict[str, pd.DataFrame] = field(default_factory=dict)
    profiler: str = "nsys"
    processes: dict[int, int | str] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)

    def process_name(self, process: int) -> int | str:
        """What a process is called in tables."""
        return self.processes.get(process, process & _PROCESS_ID)

    def names_that(self, holds: Callable[[str], object]) -> np.ndarray:
        """For each name whether something holds of it."""
        return np.array([bool(holds(name)) for name in self.names], dtype=bool)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All events, by the names of their fields."""
        return {name: getattr(self, name) for name in ("ranges", "calls", "operations")}

    @property
    def extent(self) -> tuple[int, int]:
        """Times of the first and the last event; 0 without any."""
        every = pd.concat(self.tables.values())
        return (int(every["start"].min()), int(every["end"].max())) if len(every) else (0, 0)


def frame(columns: tuple[str, ...], known: pd.DataFrame | None = None, **values) -> pd.DataFrame:
    """A data frame with these columns and their types, from one that has some of them, and values
    of others; empty without both."""
    given = pd.DataFrame() if known is None else known
    given = given.assign(**values)
    data = {
        name: np.asarray(given.get(name, []), dtype=_TYPES.get(name, np.int64)) for name in columns
    }
    return pd.DataFrame(data, copy=False)


def moved(trace: Trace, offset: int) -> Trace:
    """A trace with all its times later by an offset."""
    later: dict[str, Any] = {
        name: table.assign(start=table["start"] + offset, end=table["end"] + offset)
        for name, table in trace.tables.items()
    }
    return replace(trace, **later)


def together(traces: list[Trace]) -> Trace:
    """The traces of one run's ranks as one: processes, threads and devices are numbered anew, so
    that none is in two of them."""
    names = Names()
    parts: list[dict[str, pd.DataFrame]] = []
    operators: set[int] = set()
    rows = 0
    for number, trace in enumerate(traces):
        code = np.array([names[name] for name in trace.names], dtype=np.int64)
        operators |= set(code[list(trace.operators)].tolist())
        own = {
            name: table.assign(name=code[table["name"].to_numpy()], file=number)
            for name, table in trace.tables.items()
        }
        own["messages"] = trace.messages.assign(operation=trace.messages["operation"] + rows)
        parts.append(own)
        rows += len(trace.operations)
    every: dict[str, Any] = {
        name: pd.concat([own[name] for own in parts], ignore_index=True) for name in parts[0]
    }
    messages = every.pop("messages")
    process = _renumber(list(every.values()), "process")
    _renumber([every["ranges"], every["calls"]], "thread")
    _renumber([every["operations"]], "device")
    order = np.argsort(every["operations"]["start"].to_numpy(), kind="stable")
    at = np.argsort(order)[messages["operation"].to_numpy(dtype=np.int64)]
    every["operations"] = every["operations"].iloc[order].reset_index(drop=True)
    return Trace(
        names=list(names),
        **every,
        device_is_host=all(trace.device_is_host for trace in traces),
        operators=frozenset(operators),
        diagnostics=tuple(text for trace in traces for text in trace.diagnostics),
        messages=messages.assign(operation=at),
        profiler=traces[0].profiler,
        processes={new: traces[file].process_name(old) for (file, old), new in process.items()},
        ranks={new: traces[file].ranks.get(old, file) for (file, old), new in process.items()},
    )


def _renumber(tables: list[pd.DataFrame], column: str) -> dict[tuple[int, int], int]:
    """Give each number of each file one of its own: (file, number there) → the new one.

    Numbers that are in one file each, from 0 on, stay: those of devices, if each rank has its own.
    """
    pairs = pd.concat([table[["file", column]] for table in tables]).drop_duplicates()
    if set(pairs[column]) == set(range(len(pairs))):
        pairs = pairs.sort_values(column)
    known = pd.MultiIndex.from_frame(pairs)
    for table in tables:
        own = pd.MultiIndex.from_frame(table[["file", column]])
        table[column] = known.get_indexer(own)
    return {pair: new for new, pair in enumerate(known)}
