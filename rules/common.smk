# What the studies share: the checked configuration, the machine, and the registry of cells.
# Needs config.yaml and the presets; makes no files. Only the standard library and what Snakemake itself needs.
import os
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))

from stepscope.machine import gpus, identity
from stepscope.plan import hardware
from stepscope.plan.code_digest import Sources
from stepscope.plan.config import ConfigError, checked, read_yaml, with_preset
from stepscope.plan.registry import Registry
from stepscope.plan.run import missing

SOURCES = Sources(kept_in=Path(".snakemake/stepscope-modules.json"))
try:
    config = checked(
        with_preset(config, workflow.config_settings.overwrite_config, ROOT / "rules/presets"),
        read_yaml(ROOT / "rules/config.schema.yaml"),
    )
    MACHINES = hardware.hardware_of(config)
except (ConfigError, identity.MachineError) as error:
    sys.exit(str(error))

if Path("results").exists() and not Path("results").is_dir():
    sys.exit(f"{Path('results').resolve()} is no folder; move it away, or choose another --directory")

CONDA = "conda" in {str(method).lower() for method in workflow.deployment_settings.deployment_method}
PYTHON = "python" if CONDA else sys.executable
BY_JOBS = any(one.by_jobs for one in MACHINES)
SEVERAL_GPUS = any(one.here and one.device == "cuda" for one in MACHINES) and len(gpus.visible_gpus()) > 1
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
REGISTRY = Registry(
    config=config,
    machines=MACHINES,
    environment=ROOT / "envs/measure.yaml" if CONDA else None,
    sources=SOURCES,
)


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
    except (ConfigError, identity.MachineError) as error:
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
    return SOURCES.digest(program, by_name)


def report_templates():
    """What the report is made from, as paths from the working directory: a moved checkout changes none of them."""
    found = (ROOT / "report").rglob("*.*")
    return sorted(os.path.relpath(path) for path in found if "example" not in path.relative_to(ROOT).parts)


def lost_results():
    """Results, or the plan, that are gone although there is a report: Snakemake would not miss them by itself."""
    written = Path("results/report/index.html").is_file()
    return missing([REGISTRY.plan_path, *REGISTRY.records(), *REGISTRY.samples()]) if written else []
