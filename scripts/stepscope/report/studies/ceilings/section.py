"""The ceilings study's part of the report."""

import pandas as pd

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Picture, Table
from stepscope.report.kit.order import machine_labels, machine_places, precision_rank
from stepscope.report.kit.table import badge_legend, marks, number
from stepscope.report.provenance import commands_table
from stepscope.tables.reader import Tables


def findings(tables: Tables) -> list[str]:
    """The rates that were reached, hardware by hardware."""
    ceilings = _ordered(tables["ceilings"])
    sentences = []
    for hardware in machine_labels(ceilings["hardware"]) if len(ceilings) else []:
        own = ceilings[ceilings["hardware"] == hardware]
        products = own.dropna(subset=["tflops"])
        pairs = zip(products["tflops"], products["precision"], strict=True)
        rates = [f"{formatting.significant(rate)} TFLOP/s in {precision}" for rate, precision in pairs]
        copies = [f"{formatting.significant(rate)} GB/s" for rate in own["gb_per_s"].dropna()]
        parts = [f"a large matrix product reaches {formatting.listing(rates)}"] if rates else []
        parts += [f"a large copy moves {formatting.listing(copies)}"] if copies else []
        if parts:
            place = f"On {hardware} " if ceilings["hardware"].nunique() > 1 else ""
            text = "; ".join(parts) + "."
            sentences.append(place + text if place else text[0].upper() + text[1:])
    return sentences


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
    if ceilings.empty:
        return None
    columns = [Column(name, number=False) for name in ("hardware", "operation", "precision")]
    columns += [Column("size"), Column("time", "ms"), Column("rate")]
    rows = []
    for row in ceilings.to_dict("records"):
        names = [
            Cell(row["hardware"] or "", badges=marks(row)),
            Cell(row["operation"] or ""),
            Cell(row["precision"] or "–"),
        ]
        rows.append([*names, _size(row), _time(row), _rate(row)])
    lost = ceilings[ceilings["reason"].notna()] if "reason" in ceilings else ceilings.iloc[:0]
    notes = ["Median of the time with its 95 % bootstrap confidence interval; n: order of the square matrices."]
    notes += [f"{row['operation']}, {row['precision'] or ''}: {row['reason']}" for row in lost.to_dict("records")][:8]
    return Table("ceilings", "Measured ceilings.", columns, rows, notes + badge_legend(rows))


def _size(row: dict) -> Cell:
    if formatting.known(row.get("n")):
        return Cell(f"n = {formatting.count(row['n'])}", sort=row["n"])
    return number(row.get("bytes_moved"), lambda value: f"{formatting.gib(value)} GiB")


def _time(row: dict) -> Cell:
    if not formatting.known(row["median_ms"]):
        status = row.get("status")
        return Cell(badges=(status,)) if status and status != "ok" else Cell("–")
    text = formatting.median_and_interval(row["median_ms"], row["ci_low_ms"], row["ci_high_ms"])
    return Cell(text, sort=row["median_ms"], badges=("noisy",) if row["noisy"] else ())


def _rate(row: dict) -> Cell:
    for name, unit in (("tflops", "TFLOP/s"), ("gb_per_s", "GB/s")):
        if formatting.known(row.get(name)):
            return Cell(f"{formatting.significant(row[name])} {unit}", sort=row[name])
    return Cell("–")
