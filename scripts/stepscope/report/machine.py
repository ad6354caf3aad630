"""What ran and on what: the same for every study, from the columns that all tables have."""

import pandas as pd

from stepscope.report.data.machines import at_once, every_cell, processes
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Box, Column, Table, TableCell
from stepscope.report.kit.order import machine_labels, ordered
from stepscope.tables.reader import Tables

_BAD = ("missing", "failed")
_OF_LOST = ("cell", "status", "reason")
_STATUSES = ("ok", "oom", "unsupported", "failed", "missing")
_OWN_BATCHES = ("attention",)  # studies whose batch follows from the operation, not from the model's training
_FACTS = (
    ("device", "device_name", None),
    ("device memory", "device_memory_bytes", lambda value: f"{formatting.gib(value)} GiB"),
    ("devices seen (UUID)", "device_uuid", str),
    ("driver", "driver", None),
    ("power limit", "power_limit_w", lambda value: f"{value:,.0f} W"),
    ("CPU threads", "threads", formatting.count),
    ("CPUs that a cell may use", "cpus", formatting.count),
    ("Python", "python", None),
    ("PyTorch", "torch", None),
    ("CUDA", "cuda", None),
    ("Triton", "triton", None),
    ("profiler", "profiler_version", str),
    ("git commit", "git_commit", formatting.commit),
)


def incomplete_box(tables: Tables) -> Box | None:
    """The box that names the cells that a partial report lacks; None where it lacks none."""
    cells = every_cell(tables)
    lost = cells[cells["status"].isin(_BAD)]
    if lost.empty:
        return None
    rows = [row | {"analysis_log": _analysis_log(tables, row)} for row in lost.to_dict("records")]
    columns = [
        *(Column(name, number=False, value=lambda row, name=name: TableCell(row[name] or "")) for name in _OF_LOST),
        Column("log", number=False, value=lambda row: _log_cell(row["log"])),
        Column("of the analysis", number=False, value=lambda row: _log_cell(row["analysis_log"]), optional=True),
    ]
    sentence = f"{len(lost):,} of {len(cells):,} cells are missing or failed; every number below is of the others."
    made = table.build("incomplete", "Cells without a result", columns, rows)
    return Box("This report is partial.", sentence, made)


def _analysis_log(tables: Tables, row: dict) -> str | None:
    """The log of the analysis of a cell that was measured, and so is lost for want of it, if there is one."""
    path = f"{row['cell']}/analysis.log"
    was_measured = row["started"] is not None
    return path if was_measured and (tables.folder.parent / path).is_file() else None


def _log_cell(log: str | None) -> TableCell:
    return TableCell("log", link=log) if log else TableCell("")


def overview(tables: Tables) -> list[tuple[str, str]]:
    """Facts on the whole run: (name, value)."""
    cells = every_cell(tables)
    facts = []
    for study in tables.studies:
        statuses = cells.loc[cells["study"] == study, "status"].value_counts()
        kinds = [f"{statuses[name]:,} {name}" for name in _STATUSES if statuses.get(name, 0)]
        count = f"{statuses.sum():,} {'cell' if statuses.sum() == 1 else 'cells'}" + (
            f" ({', '.join(kinds)})" if kinds else ""
        )
        facts.append((f"Study {study}", count))
    days = cells["started"].dropna().astype(str).str[:16].str.replace("T", " ")
    if len(days):
        facts.append(("Measured", days.min() if days.min() == days.max() else f"{days.min()} to {days.max()} (UTC)"))
    seconds = cells["duration_s"].astype(float).sum()
    if seconds:
        facts.append(("Time spent measuring", formatting.duration(seconds)))
    facts += older_code(cells)
    facts += _together(cells)
    counts = processes(tables)
    if counts:
        each = [f"{study} {formatting.listing(list(map(str, own)))}" for study, own in counts.items()]
        facts.append(("Processes that measured a series of a cell", "; ".join(each)))
    vocabulary = "Vocabulary" if tables["models"].empty else "Vocabulary of the sizes"
    names = {"Batch size": "batch", vocabulary: "vocab_size", "Warm-up steps": "warmup", "Seed": "seed"}
    for name, key in names.items():
        own = cells[~cells["study"].isin(_OWN_BATCHES)] if key == "batch" else cells
        values = [formatting.count(value) for value in ordered(own[key].astype(float))]
        if values:
            facts.append((name, ", ".join(values)))
    marks = [formatting.percent(value) for value in ordered(cells["noise_mark"].astype(float))]
    if marks:
        facts.append(("Noise mark", f"± {', '.join(marks)} of the median"))
    return facts


def older_code(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """How many cells were measured by other code than is there now, if any."""
    older = int((cells["is_current"] == "no").sum()) if "is_current" in cells else 0
    return [("Cells that older code measured", f"{older:,} of {len(cells):,}")] if older else []


def _together(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """How many cells of a machine ran while another one did: what shares its host is measured less surely."""
    found = at_once(cells)
    lines = []
    for hardware, names in found.items():
        every = len(cells[(cells["hardware"] == hardware) & cells["started"].notna()])
        where = f" on {hardware}" if len(found) > 1 else ""
        lines.append(f"{len(names) if names else 'none'} of {every:,}{where}")
    return [("Cells that ran while another cell ran on the machine", "; ".join(lines))] if lines else []


def machine_table(tables: Tables) -> Table:
    """A column a hardware label; several values of one label are all listed."""
    cells = every_cell(tables)
    labels = machine_labels(cells["hardware"])
    rows = []
    for name, key, shown in _FACTS:
        texts = [_values(cells.loc[cells["hardware"] == hardware, key], shown) for hardware in labels]
        if any(texts):
            rows.append({"fact": name} | dict(zip(labels, texts, strict=True)))
    columns = [Column("fact", number=False, value="fact")]
    columns += [Column(hardware, number=False, wrap=True, value=hardware) for hardware in labels]
    caption = "The machines and their software. Where cells differ, each value is listed."
    return table.build("machine", caption, columns, rows) or Table("machine", caption, columns, [])


def _values(values: pd.Series, shown) -> str:
    distinct = ordered(values, key=str)
    text = ", ".join(str(value) if shown is None else shown(value) for value in distinct)
    return f"{len(distinct):,}: {text}" if shown is str and len(distinct) > 1 else text


def sizes_table(tables: Tables) -> Table | None:
    """The model sizes that were measured, with what their names mean; None where only own models were."""
    shape = ["size", "d_model", "d_ff", "num_layers", "num_heads", "parameters"]
    frames = [tables[study] for study in tables.studies]
    frames = [frame[shape] for frame in frames if set(shape) <= set(frame.columns)]
    if not frames:
        return None
    sizes = pd.concat(frames).dropna(subset=["d_model"]).drop_duplicates().sort_values("parameters")
    columns = [
        Column("size", number=False, value=lambda row: TableCell(row["size"] or "")),
        *(Column(name, value=name, show=formatting.count) for name in shape[1:]),
    ]
    rows = sizes.to_dict("records")
    built = table.build("sizes", "Model sizes.", columns, rows)
    return built or (Table("sizes", "Model sizes.", columns, []) if tables["models"].empty else None)
