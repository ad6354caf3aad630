# What holds for a run as a whole: that it is alone in its folder, and what it says.
# Makes no files but what its jobs read of the machines.
import json
import shlex

from stepscope.machine import arrival, slurm
from stepscope.config.hardware import wrong_baseline
from stepscope.config.run import RunLock, tell_jobs, unlockable, unwritable

RUN_LOCK = RunLock()


def say_what_is_outdated():
    """One line for each machine that nodes have outgrown."""
    for label in dict.fromkeys(name.partition("/")[0] for name in OUTDATED):
        differences = [text for name, text in OUTDATED.items() if name.startswith(f"{label}/")]
        print(
            f"{label}: {len(differences)} {'cell was' if len(differences) == 1 else 'cells were'} measured on another "
            f"machine than the newest ({differences[0]}); to be measured again",
            file=sys.stderr,
        )


say_what_is_outdated()


def begin_run():
    """Keep other runs out of this folder, and count the cells as they come in."""
    to_measure = snakemake_internals.to_measure(workflow, REGISTRY.rules)
    compares, reports = (snakemake_internals.has_rule(workflow, name) for name in ("compare", "write_report"))
    refused = RUN_LOCK.take() or unwritable(Path("results")) or wrong_baseline(config, compares, reports)
    if to_measure and not refused:
        refused = wrong_executor()
        if not refused:
            asked = snakemake_internals.executor_settings(workflow)
            only_touches = snakemake_internals.only_touches(workflow)
            by_slurm = BY_JOBS and not only_touches
            refused = slurm.complaint(MACHINES, Path.cwd(), asked) if by_slurm else unlockable()
    if refused:
        print(refused, file=sys.stderr)
        sys.exit(2 if compares else 1)
    tell_jobs(given_flags())
    if BY_JOBS or SEVERAL_GPUS:
        arrival.write(SEEN, MACHINES, REGISTRY.seen())
    if BY_JOBS and not snakemake_internals.only_touches(workflow):
        # A job that ends before its program starts must not be told by the log of another attempt.
        for record in to_measure:
            Path(record).with_name("measure.log").unlink(missing_ok=True)
    records = REGISTRY.records()
    done = set(records) - to_measure - set(missing(records))
    follow_cells(to_measure, total=len(records), done=len(done))


def wrong_executor():
    """One line if cells for a cluster's jobs were to be measured here, or cells of this machine by jobs."""
    local = [one.label for one in MACHINES if one.here]
    jobs_here = snakemake_internals.runs_jobs_here(workflow)
    if BY_JOBS and jobs_here and not snakemake_internals.only_touches(workflow):
        label = next(one.label for one in MACHINES if one.by_jobs)
        return (
            f"config key hardware.{label}: its cells are measured by Slurm's jobs; run with --workflow-profile "
            "profiles/slurm, or give it measure: false to use the results that are there"
        )
    if local and not jobs_here:
        return (
            f"config key hardware: {local[0]} would be this machine, but jobs run on others; name a type of GPU and "
            f"how Slurm finds it, as in `a100: {{gpu_model: a100}}`"
        )
    return None


def say_where_the_report_is():
    """The last lines of a run that succeeded."""
    say_how_long_it_took()
    partial_one = snakemake_internals.has_rule(workflow, "partial")
    page = Path("results/partial/report/index.html" if partial_one else "results/report/index.html")
    if snakemake_internals.has_rule(workflow, "make_archive"):
        print(f"The archive: {Path(f'results/archive/{ARCHIVE}.zip').resolve()}")
    if page.is_file() and (partial_one or not missing(REGISTRY.records())):
        print(f"The report: {page.resolve()}")


def say_what_ab_found():
    """The table of both sides, at the end of a run that was asked for it."""
    if AB is not None and snakemake_internals.has_rule(workflow, "ab"):
        print(Path(f"results/ab/{AB.name}/ab.txt").read_text(), end="")


def end_comparison():
    """Say what the comparison found, and end the run with its exit code."""
    if not snakemake_internals.has_rule(workflow, "compare"):
        return
    print(Path("results/compare/compare.log").read_text(), end="")
    code = int(Path("results/compare/exit_code").read_text())
    if code in (0, 1, 3):
        print(f"The comparison: {Path('results/compare/index.html').resolve()}")
    sys.exit(code)


def given_flags():
    """The configuration that this run was given, as flags; with its folder, if that is not the project's."""
    folder = Path.cwd()
    elsewhere = f" --snakefile {shlex.quote(str(ROOT / 'Snakefile'))} --directory {shlex.quote(str(folder))}"
    files = snakemake_internals.given_files(workflow)
    paths = [os.path.relpath(path) if folder == ROOT else str(Path(path).resolve()) for path in files]
    keys = [f"{key}={as_word(value)}" for key, value in snakemake_internals.given_values(workflow).items()]
    return (
        ("" if folder == ROOT else elsewhere)
        + (f" --configfile {shlex.join(paths)}" if paths else "")
        + (f" --config {shlex.join(keys)}" if keys else "")
    )


def as_word(value):
    """A value as Snakemake reads it from the command line."""
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def say_what_is_missing():
    """The last lines of a run in which a job failed."""
    say_how_long_it_took()
    if is_full(Path("results")):
        print(f"error: the disk of {Path('results').resolve()} is full; make room and run again, nothing is lost")
    records = REGISTRY.records()
    lost = missing(records)
    if lost:
        print(f"{len(records) - len(lost)} of {len(records)} cells; without a result:")
        for record in lost[:20]:
            print(f"  {Path(record).parent}  (log: {Path(record).with_name('measure.log')})")
        if len(lost) > 20:
            print(f"  and {len(lost) - 20} more")
        how = "--workflow-profile profiles/slurm" if BY_JOBS else "--cores 1"
        print(f"`snakemake --cores 1 partial{given_flags()}` writes a report of the others and names these;")
        print(f"`snakemake {how} report{given_flags()}` measures these again.")


onstart:
    begin_run()


onsuccess:
    say_where_the_report_is()
    say_what_ab_found()
    end_comparison()


onerror:
    say_what_is_missing()
