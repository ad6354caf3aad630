"""The ceilings study's part of the report."""

import pandas as pd

from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Picture, Table, TableCell
from stepscope.report.kit.commands import commands_table
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import machine_labels, machine_places, precision_rank
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[Finding]:
    """The rates that were reached, machine by machine."""
    ceilings = _ordered(tables["ceilings"])
    machines = machine_labels(ceilings["hardware"]) if len(ceilings) else []
    found = [_of_one_machine(ceilings[ceilings["hardware"] == hardware], hardware) for hardware in machines]
    return [each for each in found if each]


def _of_one_machine(own: pd.DataFrame, hardware: str) -> Finding | None:
    numbers, rates, copies = {}, [], []
    for row in own.dropna(subset=["tflops"]).to_dict("records"):
        numbers[row["precision"]] = Number(row["tflops"], (row["cell"],))
        rates.append(f"{{{row['precision']}}} TFLOP/s in {row['precision']}")
    for row in own.dropna(subset=["gb_per_s"]).to_dict("records"):
        numbers[f"copy{len(copies)}"] = Number(row["gb_per_s"], (row["cell"],))
        copies.append(f"{{copy{len(copies)}}} GB/s")
    parts = [f"a large matrix product reaches {formatting.listing(rates)}"] if rates else []
    parts += [f"a large copy moves {formatting.listing(copies)}"] if copies else []
    if not parts:
        return None
    answer = "; ".join(parts) + "."
    return Finding("what does the machine reach at best", answer[0].upper() + answer[1:], numbers, hardware)


def context(tables: Tables) -> dict:
    """What report/sections/ceilings.md.j2 is filled with."""
    ceilings = _ordered(tables["ceilings"])
    where = formatting.listing(machine_labels(ceilings["hardware"]), 3) if len(ceilings) else ""
    caption = "Measured rates of a large matrix product, by precision, and of a large copy, with their 95 % intervals."
    caption += f" {where}." if where else ""
    picture = Picture("ceilings", caption, "Bars of TFLOP/s by precision and of GB/s.")
    return {
        "picture": picture,
        "rates": _table(ceilings),
        "commands_of_cells": commands_table(ceilings, "ceilings"),
    }


def _ordered(ceilings: pd.DataFrame) -> pd.DataFrame:
    if ceilings.empty:
        return ceilings
    place = machine_places(ceilings["hardware"])
    rank = ceilings["precision"].map(precision_rank)
    ranked = ceilings.assign(_place=place, _rank=rank, _copy=ceilings["operation"] == "copy")
    return ranked.sort_values(["_place", "_copy", "_rank"])


def _table(ceilings: pd.DataFrame) -> Table | None:
    lost = ceilings[ceilings["reason"].notna()] if "reason" in ceilings else ceilings.iloc[:0]
    notes = [
        "Median of the time, with its 95 % confidence interval between processes; n: order of the square matrices."
    ]
    notes += [f"{row['operation']}, {row['precision'] or ''}: {row['reason']}" for row in lost.to_dict("records")][:8]
    return table.build("ceilings", "Measured ceilings.", _COLUMNS, ceilings.to_dict("records"), notes)


def _size(row: dict) -> TableCell:
    if formatting.known(row.get("n")):
        return TableCell(f"n = {formatting.count(row['n'])}", sort=row["n"])
    return table.number(row.get("bytes_moved"), lambda value: f"{formatting.gib(value)} GiB")


def _time(row: dict) -> TableCell:
    if not formatting.known(row["median_ms"]):
        return TableCell(badges=table.lost(row)) if table.lost(row) else table.NOTHING
    text = formatting.median_and_interval(row["median_ms"], row["ci_low_ms"], row["ci_high_ms"])
    return TableCell(text, sort=row["median_ms"], badges=("noisy",) if row["noisy"] else ())


def _rate(row: dict) -> TableCell:
    for name, unit in (("tflops", "TFLOP/s"), ("gb_per_s", "GB/s")):
        if formatting.known(row.get(name)):
            return TableCell(f"{formatting.significant(row[name])} {unit}", sort=row[name])
    return table.NOTHING


_COLUMNS = [
    Column("hardware", number=False, value=lambda row: TableCell(row["hardware"] or "", badges=table.marks(row))),
    Column("operation", number=False, value=lambda row: TableCell(row["operation"] or "")),
    Column("precision", number=False, value="precision"),
    Column("size", value=_size),
    Column("time", "ms", value=_time),
    Column("rate", value=_rate),
]
