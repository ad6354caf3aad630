"""Does a second run confirm the report's verdicts? The same grid, measured twice and compared; and a planted slowdown.

python benchmarks/second_run.py --folder DIR [--plant backward=0.05 [--cells CELL …]] [--json FILE] [SNAKEMAKE'S FLAGS]
python benchmarks/second_run.py --compare A/results/tables B/results/tables [--json FILE]

With --folder the workflow measures the studies timing, ladder, attention and ceilings twice, into DIR/run1 and
DIR/run2, up to their tables. Called again it goes on where it was cut. Other flags are Snakemake's; without --config
and --configfile the grid is that of the preset `smoke`.

Printed are tables in Markdown, by study and by what limits the series. Of the series: how many 95 % intervals of the
two runs overlap (aim: at least 95 %), how many are called faster or slower in the second run, as one family and with
the larger floors of both (aim: at most 1 %), and how far their medians are apart, as |ln ratio|. Of the verdicts on
precision, 16 bits beside fp32: how many are equal in both runs, how many turned from faster to slower or back (aim:
none), how many are faster or slower in the first run only (lost) or in the second only (gained).

--plant then measures the smallest and the largest timing cell once more with a busy kernel in a phase, which takes so
large a share of that phase's time, and says whether it is found: the planted cells beside those of the second run. The
kernel is no part of a series that lacks the phase; such a series has to stay what it is. In free steps that launches
limit, the GPU may be idle for longer than the kernel takes, and then nothing has become slower.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import planted_step
import two_runs
from stepscope.config.grid import words_of  # two_runs lets Python find it
from stepscope.report.kit.compare import Floors
from stepscope.report.kit.formatting import known
from stepscope.tables import timing
from stepscope.tables.cells import CellResult, read_cells, read_plan
from stepscope.tables.reader import Tables

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ("--config", "preset=smoke")
PLANTED_STEP = ROOT / "benchmarks/planted_step.py"
RUNS = ("run1", "run2")
SHOWN = 10  # names of series of each kind
OF_SERIES = {
    "table": "table",
    "limited_by": "limited by",
    "series": "series",
    "with_intervals": "with intervals",
    "overlapping": "overlapping",
    "overlapping_share": "share",
    "judged": "judged",
    "called": "called faster or slower",
    "called_share": "share",
    "median_difference": "median difference",
    "largest_difference": "largest",
}
OF_VERDICTS = {key: key.replace("_", " ") for key in ("table", "limited_by", "verdicts")} | {
    change: change for change in (two_runs.EQUAL, two_runs.TURNED, two_runs.LOST, two_runs.GAINED, two_runs.OTHER)
}
OF_PLANTED = {
    key: key.replace("_", " ")
    for key in (
        *("cell", "planted", "series", "limited_by", "expected"),
        *("ratio", "low", "high", "margin", "verdict", "outcome"),
    )
}


def main(words: list[str] | None = None) -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    where = flags.add_mutually_exclusive_group(required=True)
    where.add_argument("--folder", type=Path, help="measure there, or go on")
    where.add_argument("--compare", type=Path, nargs=2, metavar="TABLES", help="only compare these folders of tables")
    flags.add_argument("--plant", type=planted, metavar="PHASE=SHARE", help="plant a slowdown, as in backward=0.05")
    flags.add_argument("--cells", nargs="+", help="timing cells to plant it in, as HARDWARE/timing/…")
    flags.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there as well")
    given, of_snakemake = flags.parse_known_args(words)
    if given.compare and (given.plant or of_snakemake):
        flags.error(f"--compare measures nothing; leave out {' '.join(of_snakemake) or '--plant'}")
    if given.cells and not given.plant:
        flags.error("--cells are those of --plant, which is missing")

    if given.folder:
        folders = [measured(given.folder.resolve() / name, of_snakemake) for name in RUNS]
    else:
        folders = given.compare
    found = compared(folders)
    if given.plant:
        phase, share = given.plant
        first, second = (read(folder).floors for folder in folders)
        found["planted"] = find_planted(given.folder.resolve(), phase, share, given.cells, first.larger(second))
        print(f"\n{two_runs.markdown(found['planted'], OF_PLANTED)}\n\n{two_runs.outcomes(found['planted'])}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


def planted(text: str) -> tuple[str, float]:
    """`backward=0.05` as phase and share."""
    phase, _, share = text.partition("=")
    try:
        number = float(share)
    except ValueError:
        number = 0.0
    if phase not in planted_step.METHODS or not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no phase ({', '.join(planted_step.METHODS)}) and a share")
    return phase, number


def measured(folder: Path, given: list[str]) -> Path:
    """The tables of a run in this folder, measured now as far as they are not there; given: flags for Snakemake.

    Ends the program where a cell fails.
    """
    is_configured = any(word.split("=")[0] in ("--config", "-C", "--configfile", "--configfiles") for word in given)
    counts_cores = any(word.split("=")[0] in ("--cores", "-c", "--jobs", "-j") for word in given)
    tables = [f"results/tables/{study}.csv" for study in two_runs.STUDIES]
    where = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
    more = [*given, *(() if counts_cores else ("--cores", "1")), *(() if is_configured else SMOKE)]
    beside = Path(sys.executable).with_name("snakemake")
    snakemake = beside if beside.exists() else shutil.which("snakemake") or sys.exit("snakemake is not installed here")
    folder.mkdir(parents=True, exist_ok=True)
    ended = subprocess.run([str(snakemake), *tables, *where, *more], stdout=sys.stderr)
    if ended.returncode:
        sys.exit(f"error: {folder} is not complete; call this again to go on")
    return folder / "results/tables"


def read(tables: Path) -> two_runs.Run:
    """The run whose tables are in this folder. Ends the program if there are none."""
    if not (tables / "timing.csv").is_file():
        sys.exit(f"error: there is no timing.csv in {tables}")
    return two_runs.run_of(Tables(tables, list(two_runs.STUDIES)))


def compared(folders: list[Path]) -> dict:
    """Print how the runs with these tables agree, and return the numbers."""
    first, second = map(read, folders)
    series, changes = two_runs.repeated(first, second), two_runs.both_verdicts(first, second)
    rows, names = two_runs.summary(series, changes), two_runs.offenders(series, changes)
    print(f"{two_runs.markdown(rows, OF_SERIES)}\n\n{two_runs.markdown(rows, OF_VERDICTS)}")
    for what, which in names.items():
        if which:
            print(f"\n{what} ({len(which)}):")
            print("\n".join(f"- {each}" for each in which[:SHOWN]))
    return {"tables": list(map(str, folders)), "summary": rows, "offenders": names}


def find_planted(base: Path, phase: str, share: float, names: list[str] | None, floors: Floors) -> list[dict]:
    """Measure cells of the second run once more with a slowdown, and judge them beside what they were."""
    results, out = base / RUNS[-1] / "results", base / "planted/results"
    (path,) = (results / "plan").glob("*.json")
    plain = {cell.name: cell for cell in read_cells(read_plan(path), "timing", results)}
    medians = {
        row["cell"]: row[f"{phase}_median_ms"]
        for row in rows_of(results / "tables")
        if known(row[f"{phase}_median_ms"])
    }
    names = names or smallest_and_largest(medians)
    if missing := [name for name in names if name not in medians]:
        sys.exit(f"error: no timing cell has the phase {phase}: {', '.join(missing)}; choose from {', '.join(medians)}")
    seconds = {name: share * medians[name] / 1000 for name in names}
    slowed = {name: planted_cell(out, plain[name], phase, share, seconds[name]) for name in names}
    lines = [timing.row(cell) for cell in (*plain.values(), *slowed.values())]
    two_runs.fill_in(lines, {cell.name for cell in slowed.values()})
    rows = {row["cell"]: row for row in lines}
    both = [two_runs.Planted(phase, seconds[name], rows[name], rows[slowed[name].name]) for name in names]
    return two_runs.judged_planted(both, floors)


def rows_of(tables: Path) -> list[dict]:
    """The rows of the timing table in a folder."""
    return Tables(tables, ["timing"])["timing"].to_dict("records")


def smallest_and_largest(medians: dict[str, float]) -> list[str]:
    """The quickest and the slowest cell, which may be the same one."""
    return list(dict.fromkeys(choose(medians, key=medians.get) for choose in (min, max) if medians))


def planted_cell(results: Path, plain: CellResult, phase: str, share: float, seconds: float) -> CellResult:
    """A cell with its slowdown: measured now, or read where the same spec was measured by the same code before.

    Ends the program if measuring fails.
    """
    entry = plain.entry | {"cell": f"{plain.name}/planted={phase}-{share:g}"}
    folder = results / entry["cell"]
    asked = {"spec": entry["spec"], "code": entry["code"], "seconds": seconds}
    if not is_measured(folder, asked):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "record.json").unlink(missing_ok=True)
        (folder / "asked.json").write_text(json.dumps(asked))
        words = ["--phase", phase, "--seconds", repr(seconds), "--", *words_of(entry["spec"])]
        program = [sys.executable, str(PLANTED_STEP), *words, "--out", str(folder)]
        with (folder / "measure.log").open("w") as log:
            ended = subprocess.run(program, stdout=log, stderr=subprocess.STDOUT)
        if ended.returncode:
            sys.exit(f"{(folder / 'measure.log').read_text()[-2000:]}\nerror: {entry['cell']} was not measured")
    record, samples = json.loads((folder / "record.json").read_text()), (folder / "samples.csv").read_text()
    return CellResult(entry, "measured", record, tuple(samples.splitlines()), folder=folder, noisy=plain.noisy)


def is_measured(folder: Path, asked: dict) -> bool:
    """Whether there is a record here of what is asked for now."""
    return (folder / "record.json").exists() and json.loads((folder / "asked.json").read_text()) == asked


if __name__ == "__main__":
    main()
