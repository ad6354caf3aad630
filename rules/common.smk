# What the studies share: the checked configuration, the machine, and the registry of cells.
# Needs config.yaml and the presets; makes no files. Only the standard library and what Snakemake itself needs.
import json
import os
import shlex
import sys
from pathlib import Path

from snakemake.logging import logger

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))

from stepscope.plan import arrival, hardware, machine, slurm
from stepscope.plan.code_digest import code_digest, keep_in
from stepscope.plan.config import ConfigError, checked, read_yaml, with_preset
from stepscope.plan.registry import Registry
from stepscope.plan.run import Progress, RunLock, missing, unwritable

keep_in(Path(".snakemake/stepscope-modules.json"))
try:
    config = checked(
        with_preset(config, workflow.config_settings.overwrite_config, ROOT / "rules/presets"),
        read_yaml(ROOT / "rules/config.schema.yaml"),
    )
    MACHINES = hardware.hardware_of(config)
except (ConfigError, machine.MachineError) as error:
    sys.exit(str(error))

if Path("results").exists() and not Path("results").is_dir():
    sys.exit(f"{Path('results').resolve()} is no folder; move it away, or choose another --directory")

CONDA = "conda" in {str(method).lower() for method in workflow.deployment_settings.deployment_method}
PYTHON = "python" if CONDA else sys.executable
BY_JOBS = any(one.by_jobs for one in MACHINES)
SEVERAL_GPUS = any(one.here and one.device == "cuda" for one in MACHINES) and len(machine.visible_gpus()) > 1
SEEN = Path(".snakemake/stepscope-machines.json")
# Paths of this checkout reach the shell blocks by variables: as params they would make every cell of a moved one stale.
# `measure LABEL PROGRAM …` runs a measuring program for a label's cell: by itself, or, where a job may have come to
# another machine than was meant or there are several GPUs, by a program that looks at the machine first.
MEASURE = [PYTHON, str(SCRIPTS / "on_machine.py"), str(SEEN), PYTHON] if BY_JOBS or SEVERAL_GPUS else [PYTHON]
FORGET_LABEL = "" if BY_JOBS or SEVERAL_GPUS else "shift; "
shell.prefix(
    "set -euo pipefail; PYTHON={PYTHON:q} SCRIPTS={SCRIPTS:q}; "
    'measure() {{ {FORGET_LABEL}exec {MEASURE:q} "$@"; }}; '
)
REGISTRY = Registry(config=config, machines=MACHINES, environment=ROOT / "envs/measure.yaml" if CONDA else None)


wildcard_constraints:
    hardware=hardware.measured_pattern(MACHINES),
    context=r"\d+",
    precision="fp32|tf32|bf16|fp16",
    options=r"(/[a-z_]+=[A-Za-z0-9._-]+)*",


MORE_TABLES = {}


def add_study(study, rule, expand, tools=None, tables=(), parts=()):
    """Register a study's cells; `rule` measures one of them, `tools(device)` are the programs that it uses.

    `tables` are those that a study has besides the two that every study has; its own rule makes them all. `parts` are
    the parts of a cell's folder that its tables need besides record and samples.
    """
    MORE_TABLES[study] = list(tables)
    try:
        REGISTRY.add(study, rule, expand, tools, parts)
    except (ConfigError, machine.MachineError) as error:
        sys.exit(str(error))


def planned_cell(folder):
    """The cell of a folder; ends the run with one line if no grid holds it."""
    try:
        return REGISTRY.cell(folder)
    except ConfigError as error:
        sys.exit(str(error))


def cell_params(folder):
    """What makes a cell stale: `cell` is its spec as flags, `code` the code that it runs and the machine's type."""

    def of_cell(look_up):
        return lambda wildcards: look_up(planned_cell(folder.format(**wildcards)))

    return {
        "cell": of_cell(lambda cell: cell.flags),
        "code": of_cell(lambda cell: f"{REGISTRY.code(cell)} {REGISTRY.machine_json(cell)}"),
    }


def cell_message(text):
    """What a cell's job is announced with; it names the machine where there are several."""
    return f"{text} on {{wildcards.hardware}}" if len(MACHINES) > 1 else text


OUTDATED = set()


def cell_inputs(folder):
    """No file: a cell needs none. Snakemake asks before it decides what to run, which is when it has to hear of a cell
    that was measured on another machine than the newest of its label: it is then made again, as --forcerun does.
    """

    def of_cell(wildcards):
        cell = folder.format(**wildcards)
        if cell in OUTDATED:
            workflow.dag.forcefiles.add(f"{cell}/record.json")
        return []

    return of_cell


def cell_resources(folder):
    """What a cell's job takes: GPUs, minutes, and what Slurm is asked for; functions of the wildcards."""

    def of_cell(key):
        return lambda wildcards: _job(hardware.job_resources, folder, wildcards)[key]

    return {key: of_cell(key) for key in hardware.asked_of_any(MACHINES)}


def cell_cpus(folder):
    """Processor cores of a cell's job, as a function of the wildcards."""
    return lambda wildcards: _job(hardware.job_cpus, folder, wildcards)


def _job(ask, folder, wildcards):
    cell = planned_cell(folder.format(**wildcards))
    return ask(REGISTRY.hardware(cell), config, cell.study, cell.size)


def study_tables(study):
    """The tidy tables of a study."""
    return [f"results/tables/{study}.csv", f"results/tables/{study}_samples.csv", *MORE_TABLES[study]]


def planned(wildcards):
    """The plan; a function, because studies may be added after the rule that asks."""
    return REGISTRY.plan_path


REPORT_FIGURES = []


def figure_outputs(study, names, category, captions=None):
    """A study's figures as outputs of its drawing rule, to be shown by `snakemake --report` too.

    `captions`: the caption's name of each figure that has none of its own name; figures may share one.
    """
    outputs = {}
    for name in names:
        outputs[name] = report(
            f"results/figures/{name}.svg",
            category=category,
            labels={"figure": name.removeprefix(f"{study}_").replace("_", " ")},
            caption=f"../report/captions/{(captions or {}).get(name, name)}.rst",
        )
        outputs[f"{name}_png"] = f"results/figures/{name}.png"
        REPORT_FIGURES.append(f"results/figures/{name}.svg")
    return outputs


def report_code(program, *by_name):
    """Digest of the code that a reporting job runs."""
    return code_digest(program, by_name)


def report_templates():
    """What the report is made from, as paths from the working directory: a moved checkout changes none of them."""
    found = (ROOT / "report").rglob("*.*")
    return sorted(os.path.relpath(path) for path in found if "example" not in path.relative_to(ROOT).parts)


def lost_results():
    """Results, or the plan, that are gone although there is a report: Snakemake would not miss them by itself."""
    written = Path("results/report/index.html").is_file()
    return missing([REGISTRY.plan_path, *REGISTRY.records(), *REGISTRY.samples()]) if written else []


RUN_LOCK = RunLock()


def check_machines():
    """Once all studies are there: refuse machines without results, and measure again what nodes have outgrown."""
    empty = REGISTRY.without_results()
    if empty:
        sys.exit(
            f"config key hardware.{empty[0]}: measure: false, but results/{empty[0]} holds no cell of the grids; "
            "copy its results there, or remove the entry"
        )
    lacking = REGISTRY.without_cells()
    if lacking:
        sys.exit(
            f"no machine under hardware has results of the study {lacking[0]}, and none is to be measured; copy those "
            "results too, or measure them"
        )
    if BY_JOBS and workflow.is_main_process:
        outdated = REGISTRY.outdated()
        for label in dict.fromkeys(name.partition("/")[0] for name in outdated):
            differences = [text for name, text in outdated.items() if name.startswith(f"{label}/")]
            print(
                f"{label}: {len(differences)} {'cell was' if len(differences) == 1 else 'cells were'} measured on another "
                f"machine than the newest ({differences[0]}); to be measured again",
                file=sys.stderr,
            )
        OUTDATED.update(f"results/{name}" for name in outdated)


def begin_run():
    """Keep other runs out of this folder, and count the cells as they come in."""
    to_measure = {job.output.record for job in workflow.dag.needrun_jobs() if job.rule.name in REGISTRY.rules}
    refused = RUN_LOCK.take() or unwritable(Path("results"))
    if to_measure and not refused:
        refused = wrong_executor()
        if BY_JOBS and not refused:
            refused = slurm.complaint(MACHINES, Path.cwd(), workflow.executor_settings)
    if refused:
        sys.exit(refused)
    if BY_JOBS or SEVERAL_GPUS:
        arrival.write(SEEN, MACHINES, REGISTRY.seen())
    if BY_JOBS:  # a job that ends before its program starts must not be told by the log of another attempt
        for record in to_measure:
            Path(record).with_name("measure.log").unlink(missing_ok=True)
    records = REGISTRY.records()
    done = set(records) - to_measure - set(missing(records))
    logger.addHandler(Progress(REGISTRY.rules, total=len(records), done=len(done)))


def wrong_executor():
    """One line if cells for a cluster's jobs were to be measured here, or cells of this machine by jobs."""
    local = [one.label for one in MACHINES if one.here]
    if BY_JOBS and workflow.local_exec and not workflow.touch:
        label = next(one.label for one in MACHINES if one.by_jobs)
        return (
            f"config key hardware.{label}: its cells are measured by Slurm's jobs; run with --workflow-profile "
            "profiles/slurm, or give it measure: false to use the results that are there"
        )
    if local and not workflow.local_exec:
        return (
            f"config key hardware: {local[0]} would be this machine, but jobs run on others; name a type of GPU and "
            f"how Slurm finds it, as in `a100: {{gpu_model: a100}}`"
        )
    return None


def say_where_the_report_is():
    """The last line of a run that succeeded."""
    partial_one = any(job.rule.name == "partial" for job in workflow.dag.jobs)
    page = Path("results/partial/report/index.html" if partial_one else "results/report/index.html")
    if page.is_file() and (partial_one or not missing(REGISTRY.records())):
        print(f"The report: {page.resolve()}")


def given_flags():
    """The configuration that this run was given, as flags."""
    settings = workflow.config_settings
    files = " ".join(shlex.quote(os.path.relpath(path)) for path in settings.configfiles)
    said = {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.config.items()}
    keys = " ".join(shlex.quote(f"{key}={value}") for key, value in said.items())
    return (f" --configfile {files}" if files else "") + (f" --config {keys}" if keys else "")


def say_what_is_missing():
    """The last lines of a run in which a job failed."""
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
