"""Every table of every study. Standard library only: the workflow's rules import it."""

from stepscope.tables import (
    attention,
    ceilings,
    ladder,
    memory,
    models,
    precision,
    profile,
    published,
    timing,
    warmup,
)
from stepscope.tables.schema import Table

# Study → its tables: a row a cell, the samples, and what else it has, in the order in which they are written.
STUDIES: dict[str, tuple[Table, ...]] = {
    "timing": timing.TABLES,
    "ceilings": ceilings.TABLES,
    "profile": profile.TABLES,
    "memory": memory.TABLES,
    "attention": attention.TABLES,
    "precision": precision.TABLES,
    "warmup": warmup.TABLES,
    "ladder": ladder.TABLES,
}
# Section of the report → its tables, which no single study's cells make.
COLLECTED: dict[str, tuple[Table, ...]] = {
    "models": (models.TABLE,),
    "published": (published.TABLE,),
}
TABLES = {table.name: table for tables in (*STUDIES.values(), *COLLECTED.values()) for table in tables}


def more_tables(study: str) -> list[str]:
    """Names of a study's tables besides that of its cells and that of its samples."""
    return [table.name for table in STUDIES[study][2:]]
