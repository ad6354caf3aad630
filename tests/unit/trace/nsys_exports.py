"""Writes SQLite exports as several versions of Nsight Systems lay them out. All of it is synthetic.

The tables and columns are those of NVIDIA's "SQLite Schema Reference" (Nsight Systems 2021.5 and
User Guide 2025.3), as far as the analysis reads them. Times are nanoseconds.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from stepscope.trace import analysis
from stepscope.trace.attribution import attribute

PUSH_POP, START_END, MARK, DOMAIN = 59, 60, 34, 75  # ENUM_NSYS_EVENT_TYPE
HOST_TO_DEVICE, DEVICE_TO_DEVICE = 1, 8  # ENUM_CUDA_MEMCPY_OPER


@dataclass(frozen=True)
class Layout:
    """What differs between versions: where a range's text stands, and which tables and columns
    there are."""

    version: str | None  # None: the export does not tell
    # "mixed": registered strings by id, others inline; "inline"; "table"; "filled": both columns,
    # '' for none
    text: str
    missing_end: object = None
    dropped: tuple[str, ...] = ()  # columns


LAYOUTS = {
    "2025.3": Layout("2025.3.2.0", "mixed"),
    "2023.4": Layout("2023.4.4.54", "mixed", dropped=("graphNodeId",)),
    "2026": Layout("2026.1.0", "table"),
    "2021.5": Layout("2021.5.1", "filled", missing_end=-1, dropped=("graphNodeId",)),
    "inline": Layout("2022.1", "inline", missing_end=0),
    "bare": Layout(
        None,
        "inline",
        dropped=("graphNodeId", "domainId", "textId", "eventType", "globalPid"),
    ),
}


def process(pid):
    """A global process id: machine, process, thread 0."""
    return (1 << 48) | (pid << 24)


def thread(pid, tid=None):
    """A global thread id; the main thread without `tid`."""
    return process(pid) | (pid if tid is None else tid)


MAIN = thread(1)


def modules(tables, kind="module"):
    """The table of ranges or calls by name."""
    table = tables["modules"]
    return table[table["kind"] == kind].set_index("module")


def by_phase(tables, name="phases"):
    """A table by its column of phases."""
    return tables[name].set_index("phase")


def kernels_by_name(tables):
    """The table of kernels by phase and full name."""
    return tables["kernels"].set_index(["phase", "full_name"])


def totals(tables, column):
    """A column of each phase in the whole trace."""
    phases = by_phase(tables)
    steps = phases["count"].get("step", phases["count"].max())
    return (phases[column] * steps).to_dict()


class Export:
    """Rows of an export; write() makes the file."""

    def __init__(self, layout=LAYOUTS["2025.3"]):
        self.layout = layout
        self.strings: dict[str, int] = {}
        self.rows: dict[str, list[dict]] = {}
        self.correlation = 0

    def string(self, text):
        """Its id in the table of strings."""
        return self.strings.setdefault(text, len(self.strings) + 1)

    def add(self, table, **row):
        """A row of any table."""
        self.rows.setdefault(table, []).append(row)

    def range(self, name, start, end, tid=MAIN, registered=False, kind=PUSH_POP, domain=0):
        """A named range; an `end` of None was cut off."""
        by_id = {"table": True, "inline": False}.get(self.layout.text, registered)
        row = {"text": "", "textId": 0} if self.layout.text == "filled" else {}
        row |= {"textId": self.string(name)} if by_id else {"text": name}
        end = self.layout.missing_end if end is None else end
        row |= {"start": start, "end": end, "eventType": kind, "globalTid": tid}
        self.add("NVTX_EVENTS", **{"text": None, "textId": None, "domainId": domain} | row)

    def call(
        self, start, end, tid=MAIN, correlation=None, name="cudaLaunchKernel_v7000", driver=False
    ):
        """A CUDA call; returns its correlation id."""
        if correlation is None:
            self.correlation += 1
            correlation = self.correlation
        row = {"start": start, "end": end, "globalTid": tid, "correlationId": correlation}
        table = "CUPTI_ACTIVITY_KIND_DRIVER" if driver else "CUPTI_ACTIVITY_KIND_RUNTIME"
        self.add(table, **row, nameId=self.string(name))
        return correlation

    def _operation(self, kind, start, end, correlation, pid=1, device=0, stream=7, **more):
        """A row of what the GPU does; more: columns of this kind alone."""
        row = {"start": start, "end": end, "correlationId": correlation}
        row |= {"deviceId": device, "streamId": stream, "globalPid": process(pid)}
        self.add(f"CUPTI_ACTIVITY_KIND_{kind}", **row, **more)

    def kernel(self, name, *when, node=None, **where):
        """When it starts and ends, by which correlation id; where: pid, device, stream."""
        code = self.string(name)
        self._operation("KERNEL", *when, **where, demangledName=code, graphNodeId=node)

    def copy(self, kind, *when, **where):
        """A copy by the GPU; when and where as of kernel()."""
        self._operation("MEMCPY", *when, **where, copyKind=kind, bytes=4)

    def fill(self, *when, **where):
        """A memset by the GPU."""
        self._operation("MEMSET", *when, **where, value=0, bytes=4)

    def graph(self, *when, **where):
        """A CUDA graph traced as a whole."""
        self._operation("GRAPH_TRACE", *when, **where, graphId=3, graphExecId=4)

    def launch(self, name, at, start, end, tid=None, pid=1, device=0, stream=7):
        """A kernel that runs from start to end, and its call at `at`, which takes 1 ns."""
        correlation = self.call(at, at + 1, thread(pid) if tid is None else tid)
        self.kernel(name, start, end, correlation, pid, device, stream)

    def launches(self, *times, tid=None, name="k", later=1000, length=1):
        """Kernels called at these times, each of so many ns, so much later."""
        for at in times:
            self.launch(name, at, at + later, at + later + length, tid)

    def write(self, path):
        """Make the file, with the tables and columns that this version has."""
        tables = dict(self.rows)
        if self.layout.version:
            version = {"name": "EXPORT_PRODUCT_VERSION", "value": self.layout.version}
            tables["META_DATA_EXPORT"] = [version]
        named = self.strings.items()
        tables["StringIds"] = [{"id": number, "value": text} for text, number in named]
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as database:
            for name, rows in tables.items():
                table = pd.DataFrame(rows, columns=None if rows else ["id", "value"], dtype=object)
                table = table.drop(columns=self.layout.dropped, errors="ignore")
                table.to_sql(name, database, if_exists="replace", index=False)
        return path


def read(export):
    """What the analysis reads of an export."""
    with TemporaryDirectory() as folder:
        return analysis.read(export.write(Path(folder) / "trace.sqlite"))


def analyse(export, phases=None, layers=None):
    """An export's tables by name."""
    return analysis.analyse(read(export), phases, layers)


def attributed(export):
    """An export joined; an Attribution."""
    return attribute(read(export))
