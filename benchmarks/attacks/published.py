"""Files of published figures: what the workflow asks of them, and the tables with them."""

import csv
import io
import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from stepscope.config import ConfigError
from stepscope.config.published import published_files

from attacks import cells
from attacks.trying import Attempt
from attacks.values import FIELDS, no_file, spoilt_bytes

PUBLISHED = cells.ROOT / "report/published"
MOST = 1e18
MORE = ("-5", "1e308", "-0.0", "0x10", "1_000", "½", "=1+1", "<b>x</b>", "yes", "ms", "fp32")


def published(place: Path) -> Callable:
    """A function that makes an attempt with a file of published figures."""
    good = cells.Good(place)
    name = next(name for name in good.names if "/timing/" in name)

    def attempt(work: Path, draw: random.Random) -> Attempt:
        path = draw.choice(sorted(PUBLISHED.glob("*.csv")))
        good.one(name, work)
        file = work / path.name
        file.write_bytes(path.read_bytes())
        way = draw.choice((*["field"] * 5, "column", "column", "bytes", "no file"))
        if way == "no file":
            how = no_file(file, draw)
        elif way == "bytes":
            how, content = spoilt_bytes(path.read_bytes(), draw)
            file.write_bytes(content)
        else:
            how = spoil(file, way, draw)

        def run() -> None:
            try:
                published_files({"published": [file.name]}, place / "none")
            except ConfigError as error:
                raise SystemExit(str(error)) from None
            cells.tabulate(file.name)

        return Attempt(
            how=f"{path.name}: {how}", run=run, wrong=lambda: impossible(work / "tables")
        )

    return attempt


def spoil(file: Path, way: str, draw: random.Random) -> str:
    """A few fields of a column are others, or the column is gone, called otherwise or there
    twice."""
    rows = list(csv.reader(io.StringIO(file.read_text())))
    place = draw.randrange(len(rows[0]))
    name = rows[0][place]
    field = draw.choice((*FIELDS, *MORE))
    if way == "field":
        if draw.random() < 0.4:
            place = rows[0].index("value")
            name = "value"
        for row in draw.sample(rows[1:], draw.choice((1, len(rows) - 1))):
            row[place] = field
    else:
        field = draw.choice(("gone", "renamed", "twice", "a field more"))
        for row in rows[:1] if field == "renamed" else rows:
            if field == "gone":
                del row[place]
            elif field == "renamed":
                row[place] = f"{name}s"
            elif field == "twice" or row is not rows[0]:
                row.append(row[place])
    made = io.StringIO()
    csv.writer(made).writerows(rows)
    file.write_text(made.getvalue())
    return f"{name}: {field[:20]!r}"


def impossible(tables: Path) -> str:
    """A published value in the tables that nothing can have, or one of our own."""
    # Text may look like a number that pandas cannot hold.
    table = pd.read_csv(tables / "published.csv", usecols=["value"])
    for value in table["value"].dropna():
        if not 0 <= value < MOST:
            return f"published value {value}"
    return cells.impossible_number(tables)
