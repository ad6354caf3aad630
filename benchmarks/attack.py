"""Hostile files in the place of good ones: each has to be refused in one line, or to do no harm.

python benchmarks/attack.py [--kinds records samples] [--count 300] [--seed 0] [--folder DIR]

Good cells are those of report/example/llama. Of each input a copy of one of them is spoilt, by a
draw that the seed repeats, and the tables are made of it by a process of its own, within 30 s and 4
GiB. Prints a table, a row a kind of input, and what came out otherwise than it should:

  tried      inputs
  refused    the cell, or the run, is named in one line that says why
  warned     used, with a line that says what cannot be
  harmless   used, and no number of the tables is impossible
  wrong      used without a word, and a number of the tables is impossible
  traceback, hang, memory, outside (files that were written elsewhere): defects

Exit code 1 if there is one of the last five. A kind is a function of KINDS that spoils a cell;
what it draws from is one random.Random.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

# Once, for all inputs: each is tried in a fork of this process.
import aggregate  # noqa: E402
import pandas as pd  # noqa: E402

SECONDS, BYTES = 30, 4 * 2**30
VERDICTS = ("refused", "warned", "harmless", "wrong", "traceback", "hang", "memory", "outside")
DEFECTS = VERDICTS[3:]
INSTANT, YEAR = 1e-7, 3.2e7  # s between which a time may lie
TIMES = ("time", "host_free_time", "busy_time", "first_step_time")
# Text that stands for a value in JSON, some of which JSON does not have.
HOSTILE = (
    *("null", "true", "[]", "{}", '""', '"NaN"', "-1", "0", "1e-12", "1e308", "-1e308", "1e999"),
    *("NaN", "Infinity", "1" + "0" * 400, '"' + "x" * 10_000 + '"', '"\\u0000"', "[" * 5000),
    *('["a", {"b": null}]', '{"status": "ok"}', '"../../outside"', '"<script>alert(1)</script>"'),
)
FIELDS = ("", "-1", "0", "1e-12", "1e308", "inf", "nan", "abc", '"', "\0", "1;2", "9" * 400)


@dataclass
class Cell:
    """A cell's folder, with its record and samples as they were written."""

    folder: Path

    @property
    def record(self) -> dict:
        return json.loads((self.folder / "record.json").read_text())

    def write_record(self, text: str) -> None:
        (self.folder / "record.json").write_text(text)

    @property
    def samples(self) -> list[list[str]]:
        lines = (self.folder / "samples.csv").read_text().splitlines()
        return [line.split(",") for line in lines]

    def write_samples(self, text: str) -> None:
        """Write samples, with their digest in the record: as if they had been measured."""
        content = text.encode(errors="surrogateescape")
        (self.folder / "samples.csv").write_bytes(content)
        record = self.record
        record["samples_sha256"] = hashlib.sha256(content).hexdigest()
        self.write_record(json.dumps(record))

    def write_rows(self, rows: list[list[str]]) -> None:
        self.write_samples("".join(",".join(row) + "\n" for row in rows))


# Each spoils a cell and says how.
Spoiler = Callable[[Cell, random.Random], str]


def _places(value: object, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all parts of a record."""
    if path:
        yield path
    items: list = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))[:20]
    for key, inner in items:
        yield from _places(inner, (*path, key))


def _at(record: dict, path: tuple) -> tuple:
    """(what holds a part, its key there)."""
    holder = record
    for key in path[:-1]:
        holder = holder[key]
    return holder, path[-1]


def spoil_value(cell: Cell, draw: random.Random) -> str:
    """A part of the record is another value."""
    record = cell.record
    path = draw.choice(list(_places(record)))
    text = draw.choice(HOSTILE)
    holder, key = _at(record, path)
    holder[key] = "@here@"
    cell.write_record(json.dumps(record).replace('"@here@"', text))
    return f"{'.'.join(map(str, path))} = {text[:30]}"


def spoil_key(cell: Cell, draw: random.Random) -> str:
    """A part of the record is gone, or called otherwise, or there twice."""
    record = cell.record
    path = draw.choice(list(_places(record)))
    holder, key = _at(record, path)
    way = draw.choice(("gone", "renamed", "numbers in another unit"))
    if way == "gone":
        del holder[key]
    elif way == "renamed" and isinstance(holder, dict):
        holder[f"{key} "] = holder.pop(key)
    elif isinstance(holder[key], int | float):
        holder[key] = holder[key] * draw.choice((1e-12, 1e6, 1e12, -1))
    cell.write_record(json.dumps(record))
    return f"{'.'.join(map(str, path))} {way}"


def spoil_text(cell: Cell, draw: random.Random) -> str:
    """The bytes of the record are others."""
    path = cell.folder / "record.json"
    content = path.read_bytes()
    place = draw.randrange(len(content))
    made = {
        "cut": content[:place],
        "a byte": content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :],
        "twice": content * 2,
        "UTF-16": content.decode().encode("utf-16"),
        "empty": b"",
        "a list": b"[" + content + b"]",
        "deep": b'{"a":' * 100_000,
    }
    way = draw.choice(list(made))
    path.write_bytes(made[way])
    return f"bytes: {way}"


def spoil_file(cell: Cell, draw: random.Random) -> str:
    """One of the two files is none."""
    path = cell.folder / draw.choice(("record.json", "samples.csv"))
    way = draw.choice(("pipe", "endless", "folder", "gone", "loop", "unreadable name"))
    path.unlink()
    if way == "pipe":
        os.mkfifo(path)
    elif way == "endless":
        path.symlink_to("/dev/zero")
    elif way == "folder":
        path.mkdir()
    elif way == "loop":
        path.symlink_to(path.name)
    elif way == "unreadable name":
        path.symlink_to("x" * 200)
    return f"{path.name}: {way}"


def spoil_cell(cell: Cell, draw: random.Random) -> str:
    """The record is that of another cell, or of another machine."""
    record = cell.record
    key = draw.choice(("study", "device", "hardware", "spec", "peaks"))
    if key == "study":
        record["study"] = draw.choice(("memory", "timing", "attention", "nothing"))
    elif key == "device":
        record["machine"]["device"] = "cpu"
    elif key == "hardware":
        record["provenance"]["hardware"]["device"] = "cpu"
    elif key == "spec":
        name = draw.choice(sorted(record["spec"]))
        record["spec"][name] = 12345
    else:
        for value in record["summary"]["values"]:
            if value["quantity"].startswith("peak_"):
                value["value"] *= 1000
    cell.write_record(json.dumps(record))
    return f"of another cell: {key}"


def spoil_field(cell: Cell, draw: random.Random) -> str:
    """A few fields of the samples are others."""
    rows = cell.samples
    column = draw.randrange(len(rows[0]))
    field = draw.choice(FIELDS)
    for row in draw.sample(rows[1:], draw.choice((1, 3, len(rows) - 1))):
        row[column] = field
    cell.write_rows(rows)
    return f"{rows[0][column]} = {field[:20]!r}"


def spoil_column(cell: Cell, draw: random.Random) -> str:
    """A column of the samples is gone, called otherwise, or there twice."""
    rows = cell.samples
    column = draw.randrange(len(rows[0]))
    name = rows[0][column]
    way = draw.choice(("gone", "renamed", "twice", "a field more"))
    for row in rows[:1] if way == "renamed" else rows:
        if way == "gone":
            del row[column]
        elif way == "renamed":
            row[column] = name.upper()
        elif way == "twice":
            row.append(row[column])
        elif row is not rows[0]:
            row.append("1")
    cell.write_rows(rows)
    return f"column {name}: {way}"


def spoil_number(cell: Cell, draw: random.Random) -> str:
    """There are fewer samples than were asked for, or their times are others."""
    header, *rows = cell.samples
    where = {name: place for place, name in enumerate(header)}
    way = draw.choice(("none", "one", "one process", "all warm-up", "a thousandth", "a picosecond"))
    if way == "none":
        rows = []
    elif way == "one":
        rows = rows[:1]
    elif way == "one process":
        rows = [row for row in rows if row[where["process"]] == "1"]
    elif way == "all warm-up":
        for row in rows:
            row[where["warmup"]] = "True"
    else:
        factor = 1e-3 if way == "a thousandth" else 1e-12
        for row in rows:
            row[where["seconds"]] = repr(factor * float(row[where["seconds"]]))
    cell.write_rows([header, *rows])
    return f"samples: {way}"


KINDS: dict[str, tuple[Spoiler, ...]] = {
    "records": (spoil_value, spoil_value, spoil_value, spoil_key, spoil_text, spoil_cell),
    "samples": (spoil_field, spoil_field, spoil_column, spoil_number, spoil_file),
}


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    flags.add_argument("--count", type=int, default=300, help="inputs of each kind (%(default)s)")
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--folder", type=Path, help="where to work (a temporary folder)")
    given = flags.parse_args()
    with contextlib.ExitStack() as stack:
        place = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = {kind: attacked(kind, given.count, given.seed, place) for kind in given.kinds}
    print(table(found))
    for kind, outcomes in found.items():
        for verdict, how, said in outcomes:
            if verdict in DEFECTS:
                print(f"{kind}: {verdict}: {how}: {said}")
    verdicts = {verdict for outcomes in found.values() for verdict, _, _ in outcomes}
    sys.exit(bool(verdicts & set(DEFECTS)))


def table(found: dict[str, list[tuple[str, str, str]]]) -> str:
    """Inputs of each kind, and how many of them came out how, as Markdown."""
    lines = [f"| kind | tried | {' | '.join(VERDICTS)} |", "|---" * (2 + len(VERDICTS)) + "|"]
    for kind, outcomes in found.items():
        counts = Counter(verdict for verdict, _, _ in outcomes)
        numbers = [len(outcomes), *(counts[verdict] for verdict in VERDICTS)]
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def attacked(kind: str, count: int, seed: int, place: Path) -> list[tuple[str, str, str]]:
    """(verdict, what was spoilt, what was said) of each input of a kind."""
    good = place / "good"
    shutil.rmtree(good, ignore_errors=True)
    with zipfile.ZipFile(ROOT / "report/example/llama/cells.zip") as cells:
        cells.extractall(good)
    plan = json.loads((good / "plan.json").read_text())
    names = sampled(plan)
    found = []
    for number in range(count):
        draw = random.Random(f"{seed} {kind} {number}")
        name = draw.choice(names)
        work = place / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(good / name, work / "results" / name)
        (work / "results/plan.json").write_text(json.dumps(only(plan, name)))
        how = draw.choice(KINDS[kind])(Cell(work / "results" / name), draw)
        verdict, said = tried(work)
        found.append((verdict, f"{name}: {how}", said))
    return found


def sampled(plan: dict) -> list[str]:
    """The plan's cells whose samples become series."""
    studies = ("timing", "ladder", "attention", "ceilings")
    return [one["cell"] for study in studies for one in plan["studies"][study]["cells"]]


def only(plan: dict, name: str) -> dict:
    """The plan of one cell."""
    study = name.split("/")[1]
    (cell,) = (one for one in plan["studies"][study]["cells"] if one["cell"] == name)
    return plan | {"studies": {study: plan["studies"][study] | {"cells": [cell]}}}


def tried(work: Path) -> tuple[str, str]:
    """(verdict, what was said) of the tables of a results folder."""
    before = listed(work.parent, work)
    log = work / "log"
    child = os.fork()
    if child == 0:
        aggregated(work, log)
    handle = os.pidfd_open(child)
    ended = select.select([handle], [], [], SECONDS)[0]
    os.close(handle)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    said = log.read_text(errors="replace") if log.exists() else ""
    last = (said.strip().splitlines() or [""])[-1][:200]
    if not ended:
        return "hang", last
    if "MemoryError" in said or os.WIFSIGNALED(status):
        return "memory", last
    if "Traceback" in said:
        return "traceback", last
    if listed(work.parent, work) != before:
        return "outside", str(listed(work.parent, work) - before)
    lines = [line for line in said.splitlines() if line.startswith(("error: ", "WARNING: "))]
    if os.waitstatus_to_exitcode(status) or any("not used: " in line for line in lines):
        return ("refused", last) if len(lines) == 1 else ("traceback", f"{len(lines)} lines")
    if lines:
        return "warned", lines[0][:200]
    impossible = impossible_number(work / "tables")
    return ("wrong", impossible) if impossible else ("harmless", "")


def aggregated(work: Path, log: Path) -> None:
    """Make the tables in this process, which ends with that."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    sys.stdout = sys.stderr = os.fdopen(descriptor, "w", buffering=1)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    code = 0
    try:
        sys.argv = ["aggregate.py", "--plan", "results/plan.json", "--results", "results"]
        sys.argv += ["--out", "tables", "--published"]
        os.chdir(work)
        aggregate.main()
    except SystemExit as error:
        code = 1
        print(error.code)
    except BaseException:
        code = 1
        print(traceback.format_exc())
    sys.stdout.flush()
    os._exit(code)


def listed(folder: Path, without: Path) -> set[Path]:
    """The files of a folder, but those of one in it."""
    return {path for path in folder.iterdir() if path != without}


def impossible_number(tables: Path) -> str:
    """A number of the tables that nothing can have; empty where there is none."""
    series = pd.read_csv(tables / "series.csv", keep_default_na=False, na_values=[""])
    for row in series[series["status"] == "ok"].to_dict("records"):
        value = row["median"]
        said = f"{row['quantity']} of {row['cell']} is {value}"
        if value != value or not 0 <= value < float("inf"):
            return said
        if row["quantity"] in TIMES and value and not INSTANT <= value <= YEAR:
            return said
        if row["quantity"] == "mfu" and value > 1:
            return said
    return ""


if __name__ == "__main__":
    main()
