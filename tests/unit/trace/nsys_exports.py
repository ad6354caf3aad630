"""Writes SQLite exports as several versions of Nsight Systems lay them out. All of it is synthetic.

The tables and columns are those of NVIDIA's "SQLite Schema Reference" (Nsight Systems 2021.5 and
User Guide 2025.3), as far as the analysis reads them. Times are nanoseconds.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

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
    enums: bool = True
    event_type: bool = True
    global_pid: bool = True
    devices: bool = True
    dropped: tuple[str, ...] = ()  # columns


LAYOUTS = {
    "2025.3": Layout("2025.3.2.0", "mixed"),
    "2023.4": Layout("2023.4.4.54", "mixed", dropped=("graphNodeId", "mangledName")),
    "2026": Layout("2026.1.0", "table"),
    "2021.5": Layout(
        "2021.5.1", "filled", missing_end=-1, enums=False, dropped=("graphNodeId", "mangledName")
    ),
    "inline": Layout("2022.1", "inline", missing_end=0, enums=False),
    "bare": Layout(
        *(None, "inline"),
        **{"enums": False, "event_type": False, "global_pid": False, "devices": False},
        dropped=("graphNodeId", "mangledName", "shortName", "domainId", "textId"),
    ),
}


def process(pid: int) -> int:
    """A global process id: machine, process, thread 0."""
    return (1 << 48) | (pid << 24)


def thread(pid: int, tid: int | None = None) -> int:
    """A global thread id; the main thread without `tid`."""
    return process(pid) | (pid if tid is None else tid)


def modules(tables, kind="module"):
    """The table of ranges or calls by name."""
    table = tables["modules"]
    return table[table["kind"] == kind].set_index("module")


def totals(tables, column):
    """A column of each phase in the whole trace."""
    phases = tables["phases"].set_index("phase")
    steps = phases["count"].get("step", phases["count"].max())
    return (phases[column] * steps).to_dict()


class Export:
    """Rows of an export; write() makes the file."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.strings: dict[str, int] = {}
        self.rows: dict[str, list[dict]] = {}
        self.correlation = 0

    def string(self, text: str) -> int:
        """Its id in the table of strings."""
        return self.strings.setdefault(text, len(self.strings) + 1)

    def add(self, table: str, **row) -> None:
        self.rows.setdefault(table, []).append(row)

    def range(self, name, start, end, tid, registered=False, kind=PUSH_POP, domain=0) -> None:
        """A named range; an `end` of None was cut off."""
        by_id = {"table": True, "inline": False}.get(self.layout.text, registered)
        empty = ("", 0) if self.layout.text == "filled" else (None, None)
        end = self.layout.missing_end if end is None else end
        text = (
            {"text": empty[0], "textId": self.string(name)}
            if by_id
            else {"text": name, "textId": empty[1]}
        )
        self.add(
            "NVTX_EVENTS",
            start=start,
            end=end,
            eventType=kind,
            globalTid=tid,
            domainId=domain,
            **text,
        )

    def call(
        self, start, end, tid, correlation=None, name="cudaLaunchKernel_v7000", driver=False
    ) -> int:
        """A CUDA call; returns its correlation id."""
        if correlation is None:
            self.correlation += 1
            correlation = self.correlation
        row = {"start": start, "end": end, "globalTid": tid, "correlationId": correlation}
        table = "CUPTI_ACTIVITY_KIND_DRIVER" if driver else "CUPTI_ACTIVITY_KIND_RUNTIME"
        self.add(table, **row, nameId=self.string(name))
        return correlation

    def _operation(self, table, start, end, correlation, pid, device, stream, **more) -> None:
        row = {
            "start": start,
            "end": end,
            "deviceId": device,
            "streamId": stream,
            "correlationId": correlation,
        }
        self.add(table, **row, globalPid=process(pid), **more)

    def kernel(self, name, start, end, correlation, pid=1, device=0, stream=7, node=None) -> None:
        names = {"demangledName": self.string(name), "shortName": self.string("Kernel2")}
        names |= {"mangledName": self.string("_Z" + name), "graphNodeId": node}
        self._operation(
            "CUPTI_ACTIVITY_KIND_KERNEL", start, end, correlation, pid, device, stream, **names
        )

    def copy(self, kind, start, end, correlation, pid=1, device=0, stream=7) -> None:
        self._operation(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            start,
            end,
            correlation,
            pid,
            device,
            stream,
            copyKind=kind,
            bytes=4,
        )

    def fill(self, start, end, correlation, pid=1, device=0, stream=7) -> None:
        self._operation(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            start,
            end,
            correlation,
            pid,
            device,
            stream,
            value=0,
            bytes=4,
        )

    def graph(self, start, end, correlation, pid=1, device=0, stream=7) -> None:
        """A CUDA graph traced as a whole."""
        row = {"graphId": 3, "graphExecId": 4}
        self._operation(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start, end, correlation, pid, device, stream, **row
        )

    def launch(self, name, at, start, end, tid=None, pid=1, device=0, stream=7) -> None:
        """A kernel that runs from start to end, and its call at `at`, which takes 1 ns."""
        correlation = self.call(at, at + 1, thread(pid) if tid is None else tid)
        self.kernel(name, start, end, correlation, pid, device, stream)

    def write(self, path: Path) -> Path:
        layout = self.layout
        tables = {name: [dict(row) for row in rows] for name, rows in self.rows.items()}
        if layout.version:
            tables["META_DATA_EXPORT"] = [
                {"name": "EXPORT_PRODUCT_VERSION", "value": layout.version}
            ]
        else:
            tables.setdefault("StringIds", [])
        if layout.devices:
            tables["TARGET_INFO_GPU"] = [
                {"id": number, "name": f"Made-up GPU {number}"} for number in range(2)
            ]
        if layout.enums:
            tables["ENUM_CUDA_MEMCPY_OPER"] = [
                {"id": HOST_TO_DEVICE, "name": "CUDA_MEMCPY_KIND_HTOD", "label": "Host-to-Device"},
                {
                    "id": DEVICE_TO_DEVICE,
                    "name": "CUDA_MEMCPY_KIND_DTOD",
                    "label": "Device-to-Device",
                },
            ]
        tables["StringIds"] = [
            {"id": number, "value": text} for text, number in self.strings.items()
        ]
        dropped = set(layout.dropped)
        dropped |= (set() if layout.event_type else {"eventType"}) | (
            set() if layout.global_pid else {"globalPid"}
        )
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as database:
            for name, rows in tables.items():
                columns = [
                    column
                    for column in (rows[0] if rows else {"id": 0, "value": ""})
                    if column not in dropped
                ]
                quoted = ", ".join(f'"{column}"' for column in columns)
                database.execute(f"CREATE TABLE {name} ({quoted})")
                places = ", ".join("?" for _ in columns)
                values = [[row[column] for column in columns] for row in rows]
                database.executemany(f"INSERT INTO {name} VALUES ({places})", values)
        database.close()
        return path
