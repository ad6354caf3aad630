"""Print the page that says what every column of every table is: docs/tables.md, from the fields of stepscope.tables."""

import argparse
from collections.abc import Iterator

from stepscope.tables import columns, registry, training
from stepscope.tables.schema import Field, Group, Table

# Columns of several studies' tables, described once.
SHARED = (training.PLACE, training.KEY, training.SAMPLES, columns.STATISTICS, columns.RUN)
COLLECTED = {  # headings
    "models": "Models of one's own",
    "published": "Published figures",
    "estimate": "What a run was expected to take",
}
INTRODUCTION = """\
<!-- Written by `python scripts/describe_tables.py > docs/tables.md`; edit the fields in scripts/stepscope/tables. -->
# The tables

Every study writes `results/tables/STUDY.csv`, `STUDY_samples.csv` with every sample, and some more. A table has all of
its columns in this order, numbers in full, and an empty field where there is no value. Types: `text`; `number`; `flag`,
which is `True` or `False`. A unit `share` is a number from 0 to 1, `ratio` one quantity over another.

Read a table with any CSV reader; this project reads them with
`stepscope.tables.reader.Tables("results/tables", ["timing"])["timing"]`, a pandas frame with these types."""


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(page())


def page() -> str:
    """The page in Markdown, without the last line's end."""
    parts = [INTRODUCTION, "## Columns that several tables have"]
    for group in SHARED:
        parts += [f"### {_capitalised(group.title)}", _table(map(_row, group.members))]
    for study, tables in registry.STUDIES.items():
        parts.append(f"## Study `{study}`")
        for table in tables:
            parts += _described(table)
    for section, tables in registry.COLLECTED.items():
        parts += [f"## {COLLECTED[section]}", *(row for each in tables for row in _described(each))]
    return "\n\n".join(parts)


def _described(table: Table) -> Iterator[str]:
    """A table: what a row is, what its columns are repeated for, and its columns."""
    yield f"### `{table.name}.csv`"
    yield f"A row is {table.row}."
    for group in table.parts:
        if isinstance(group, Group) and group.starts:
            starts = (f"- `{start.removesuffix('_')}`: {words}" for start, words in group.starts.items())
            yield "\n".join([f"`<{group.title}>` is each of", "", *starts])
    yield _table(row for part in table.parts for row in _rows_of(part))


def _rows_of(part: Field | Group) -> Iterator[str]:
    """The rows of a field or of a group's; of one that is described above only where that is."""
    if isinstance(part, Field):
        yield _row(part)
    elif part in SHARED:
        names = part.names
        link = f"[{part.title}](#{part.title.replace(' ', '-')})"
        yield f"| `{names[0]}` … `{names[-1]}` | | | {link}, {len(names)} columns |"
    else:
        start = f"<{part.title}>_" if part.starts else ""
        yield from (_row(each, start) for each in part.members)


def _row(field: Field, start: str = "") -> str:
    meaning = field.meaning.replace("|", "\\|") + (" (not in older tables)" if field.is_optional else "")
    return f"| `{start}{field.name}` | {field.kind} | {field.unit} | {meaning} |"


def _table(rows: Iterator[str]) -> str:
    return "\n".join(["| column | type | unit | meaning |", "|---|---|---|---|", *rows])


def _capitalised(title: str) -> str:
    return title[:1].upper() + title[1:]


if __name__ == "__main__":
    main()
