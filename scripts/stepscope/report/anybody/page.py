"""One offline page: warnings first, then the picture, then the tables."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from stepscope.recordings.text import plain
from stepscope.report.anybody import pictures
from stepscope.report.kit.blocks import Column, Picture, Table
from stepscope.report.kit.document import document, style_of
from stepscope.report.kit.escaping import markdown
from stepscope.report.kit.files import Files
from stepscope.report.kit.formatting import significant
from stepscope.report.kit.table import build
from stepscope.report.kit.webpage import WebBlocks
from stepscope.snapshot import summary as snapshot_summary
from stepscope.trace import summary as trace_summary

ROWS = 5  # times those of the summary
LONG = 15  # rows: a longer table is closed until it is opened
_MIB = 2**20


@dataclass
class Part:
    """What stands below a heading: sentences, a picture, a table."""

    heading: str
    sentences: list[str] = field(default_factory=list)
    picture: Picture | None = None
    table: Table | None = None


def of_trace(tables: dict[str, pd.DataFrame], title: str, templates: Path) -> str:
    """The page of a trace, or of two that are compared, from the tables that analyze_nsys.py makes."""
    parts = [_of_section(section) for section in trace_summary.sections(tables, ROWS)]
    first = [part for part in parts if part.table and part.table.name in ("warnings", "ranges_there")]
    rest = [part for part in parts if part not in first]
    picture = Picture(
        "step",
        "GPU time by category of kernel and phase; below it the step of median length: ranges and CUDA calls of the "
        "host, kernels of the GPU.",
        "Bars of GPU time by category for each phase, and the timeline of one step.",
    )
    draws = pictures.one_step if "categories" in tables else None
    return _page(tables, title, templates, first, rest, picture, draws)


def of_snapshot(tables: dict[str, pd.DataFrame], title: str, templates: Path) -> str:
    """The page of a memory snapshot, from the tables that analyze_snapshot.py makes."""
    said = [line for row in tables["summary"].to_dict("records") for line in snapshot_summary.cautions(row)]
    first = [Part("Warnings", said)] if said else []
    parts = [Part(heading, table=_table(tables, name, heading, columns)) for name, heading, columns in _OF_SNAPSHOTS]
    picture = Picture(
        "memory",
        "What is active after each allocation and free, by what it is for; dashed: what the allocator had reserved.",
        "Stacked areas of memory by category over the events of the recording.",
    )
    rest = [part for part in parts if part.table]
    return _page(tables, title, templates, first, rest, picture, pictures.memory_over_time)


def _page(
    tables: dict[str, pd.DataFrame],
    title: str,
    templates: Path,
    first: list[Part],
    rest: list[Part],
    picture: Picture,
    draws: Callable[[dict], pictures.Drawn | None] | None,
) -> str:
    drawn = draws(tables) if draws else None
    with tempfile.TemporaryDirectory(prefix="stepscope-page-") as folder:
        there = Path(folder)
        if drawn:
            (there / f"{picture.name}.svg").write_bytes(drawn["svg"])
        shown = [Part("Over time", picture=picture)] if drawn else []
        web = WebBlocks(Files(there, there, there, there), style_of(templates))
        text = "\n\n".join([f"# {markdown(plain(title))}", *(_written(part, web) for part in [*first, *shown, *rest])])
        body, headings = web.page(text)
    return document(templates, plain(title), body, [heading for heading in headings if heading[0] == 2])


def _written(part: Part, web: WebBlocks) -> str:
    blocks = [f"## {markdown(plain(part.heading))}", *(markdown(plain(each)) for each in part.sentences)]
    blocks += [web.figure(part.picture)] if part.picture else []
    blocks += [web.table(part.table)] if part.table else []
    return "\n\n".join(blocks)


def _of_section(section: trace_summary.Section) -> Part:
    columns = [
        Column(
            label,
            number=decimals is not None,
            wrap=decimals is None,
            value=key,
            show=lambda value, decimals=decimals: plain(trace_summary.value_text(value, decimals)),
        )
        for key, label, decimals in section.columns
    ]
    rows = [_numbers(row) for row in section.rows]
    said = [section.note] if section.note else []
    return Part(section.heading, said, table=_built(section.name, section.heading, columns, rows))


def _numbers(row: dict) -> dict:
    """Numbers of numpy as Python's, which the kit prints."""
    return {key: value.item() if hasattr(value, "item") else value for key, value in row.items()}


def _built(name: str, caption: str, columns: list[Column], rows: list[dict]) -> Table | None:
    return build(name, plain(caption), columns, rows, legend=False, folded=len(rows) > LONG)


def _mib(value: float) -> str:
    return significant(value / _MIB) if value else "0"


def _share(value: float) -> str:
    return f"{100 * value:.1f}"


def _words(label: str, key: str) -> Column:
    return Column(label, number=False, wrap=True, value=key, show=plain)


def _count(label: str, key: str) -> Column:
    return Column(label, value=key, show=lambda value: f"{value:,.0f}")


def _bytes(label: str, key: str) -> Column:
    return Column(label, "MiB", value=key, show=_mib)


_DEVICE, _SHARE = _count("device", "device"), Column("share", "%", value="share", show=_share)
_WHERE = (_words("category", "category"), _words("module", "module"), _words("line", "frame"))
_WHAT = (_bytes("memory", "bytes"), _count("blocks", "blocks"), _SHARE)
# Table → its heading and columns.
_OF_SNAPSHOTS = (
    (
        "summary",
        "The peak",
        (
            *(_DEVICE, _bytes("peak, requested", "peak_bytes"), _bytes("as allocated, at least", "peak_rounded_bytes")),
            *(_bytes("reserved then", "reserved_at_peak_bytes"), _bytes("most reserved", "peak_reserved_bytes")),
            *(_words("phase", "peak_phase"), _bytes("at the start", "base_bytes"), _bytes("at the end", "end_bytes")),
            _bytes("unknown, from before the recording", "unknown_before_recording_bytes"),
        ),
    ),
    ("peak", "Categories at the peak", (_DEVICE, _words("category", "category"), *_WHAT)),
    ("peak_lines", "Lines at the peak", (_DEVICE, *_WHERE, *_WHAT)),
    (
        "phases",
        "Phases",
        (
            *(_DEVICE, _count("step", "step"), _words("phase", "phase"), _bytes("at its start", "start_bytes")),
            *(_bytes("most", "peak_bytes"), _bytes("at its end", "end_bytes"), _count("allocations", "allocations")),
            _bytes("allocated", "allocated_bytes"),
        ),
    ),
    (
        "largest",
        "The largest allocations",
        (
            *(_DEVICE, _bytes("each", "bytes"), _count("how many", "count"), _count("at the peak", "alive_at_peak")),
            *(*_WHERE, _words("phase", "step_phase")),
        ),
    ),
    ("stacks", "Whole stacks at the peak", (_DEVICE, *_WHAT, _words("category", "category"), _words("stack", "stack"))),
    (
        "segments",
        "Segments at the end, those with the most unused memory first",
        (
            *(_DEVICE, _words("address", "address"), _bytes("size", "bytes"), _bytes("in use", "active_bytes")),
            *(_bytes("unused", "unused_bytes"), Column("unused", "%", value="unused_share", show=_share)),
            *(_bytes("largest unused block", "largest_unused_bytes"), _count("blocks", "blocks")),
        ),
    ),
)


def _table(tables: dict[str, pd.DataFrame], name: str, heading: str, columns: tuple[Column, ...]) -> Table | None:
    rows = [_numbers(row) for row in tables[name].to_dict("records")]
    return _built(name, heading, list(columns), rows)
