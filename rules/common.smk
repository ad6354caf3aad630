# What the rules share: the checked configuration, the machines, the cells, and what is asked of each.
# Needs config.yaml and the presets; makes no files. Only the standard library and what Snakemake itself needs.
import functools
import gc
import inspect
import json
import os
import shlex
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "scripts"
# A plan of thousands of cells makes millions of objects that all stay. Python's collector would look through them again
# and again, for a third of the time that planning takes.
gc.set_threshold(50_000, 20, 20)

from stepscope.axes import PRECISIONS
from snakemake.exceptions import WorkflowError
from stepscope.files import complaint, is_full, write_whole
from stepscope.machine import gpus, identity
from stepscope.config import archives, hardware, snakemake_internals
from stepscope.config.code_digest import Sources
from stepscope.config.config import ConfigError, validated, with_preset
from stepscope.config.published import published_files
from stepscope.config.registry import Registry
from stepscope.config.run import missing, unusable
from stepscope.config.studies import CHAPTERS, COMPARISONS, DRAWN, STUDIES
from stepscope.config.training import figure_name
from stepscope.tables.cells import finished_cells
from stepscope.tables.registry import more_tables
from stepscope.turns import TurnsError
from stepscope.turns import request as turns

if refused := unusable(str(ROOT)) or unusable(sys.executable):
    sys.exit(refused)
if Path("results").exists() and not Path("results").is_dir():
    sys.exit(f"{Path('results').resolve()} is no folder; move it away, or choose another --directory")

CONDA = snakemake_internals.uses_conda(workflow)
SOURCES = Sources(kept_in=Path(".snakemake/stepscope-modules.json"))
try:
    config = validated(
        with_preset(config, snakemake_internals.given_config(workflow), ROOT / "rules/presets"),
        ROOT / "rules/config.schema.yaml",
    )
    only_looks = snakemake_internals.is_asked_for(workflow, "plan")
    RESULTS = (archives.looked_at if only_looks else archives.unpack)(config["hardware"])
    MACHINES = hardware.hardware_of(config, RESULTS)
    environment = ROOT / "envs/measure.yaml" if CONDA else None
    REGISTRY = Registry(config, MACHINES, STUDIES, environment=environment, sources=SOURCES, results=RESULTS)
    REGISTRY.check_results()
    PUBLISHED = published_files(config, ROOT / "report/published")
    HERE = next((one.label for one in MACHINES if one.here), None)
    AB = turns.requested(config, lambda: REGISTRY.plan, HERE, ROOT)
except (ConfigError, TurnsError, identity.MachineError) as error:
    sys.exit(str(error))

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
# Cell → in what its machine differs from the newest of its label, where nodes of a cluster measure: to be made again.
OUTDATED = REGISTRY.outdated() if BY_JOBS and snakemake_internals.is_main_process(workflow) else {}
# Whether a run may have been killed before Snakemake had noted that a cell is finished.
WAS_KILLED = snakemake_internals.is_main_process(workflow) and snakemake_internals.was_killed(workflow)


wildcard_constraints:
    hardware=hardware.measured_pattern(MACHINES),
    context=r"\d+",
    precision="|".join(PRECISIONS),
    options=r"(/[a-z_]+=[A-Za-z0-9._-]+)*",


# Rules are made in loops over the studies. A lambda there would see the last study only, so that functions of a job's
# wildcards come from the functions below, which are called once for each study.


def of_cell(study, look_up):
    """A function of a job's wildcards: what `look_up` says of its cell. A cell that no grid holds ends the run."""

    def of_wildcards(wildcards):
        try:
            return look_up(REGISTRY.cell(study.folder.format(**wildcards)))
        except ConfigError as error:
            sys.exit(str(error))

    of_wildcards.__signature__ = inspect.signature(of_wildcards)  # Snakemake asks for it three times a cell
    return of_wildcards


def cell_params(study):
    """What makes a cell stale: `cell` is its spec as flags, `code` the code that it runs and the machine's type."""
    return {
        "cell": of_cell(study, lambda cell: cell.flags),
        "code": of_cell(study, cell_code),
    }


def cell_code(cell):
    """The code that a cell runs and the type of its machine, as a param."""
    return f"{REGISTRY.code(cell)} {REGISTRY.machine_json(cell)}"


def cell_message(text):
    """What a cell's job is announced with; it names the machine where there are several."""
    return f"{text} on {{wildcards.hardware}}" if len(MACHINES) > 1 else text


@functools.cache
def take_over_finished_cells():
    """Let Snakemake take cells as measured that were finished when their run was killed.

    It would remove their results, as it does with all that it has not noted as made. But a record comes last, and says
    by its digest, spec, code and machine whether it is that of the cell.
    """
    cells = {cell.name: (study, cell) for study in STUDIES for cell in REGISTRY.studies[study.name]}
    outputs = {name: cell_outputs(*found) for name, found in cells.items()}
    cut = snakemake_internals.in_the_making(workflow, [path for paths in outputs.values() for path in paths])
    names = {name for name, paths in outputs.items() if cut.intersection(paths)}
    for name in finished_cells(json.loads(REGISTRY.plan), names, Path("results")) if names else []:
        study, cell = cells[name]
        if all(map(os.path.exists, outputs[name])):
            params = [cell.flags, cell_code(cell)]
            snakemake_internals.note_as_made(workflow, study.program, outputs[name], params)
            print(f"results/{name} was finished when its run was killed: not measured again", file=sys.stderr)


def cell_outputs(study, cell):
    """What the job of a cell makes."""
    parts = [study.analysis.of] if study.analysis else []
    return [f"results/{cell.name}/{part}" for part in (*parts, "record.json", "samples.csv")]


def cell_inputs(study):
    """No file: a cell needs none. But Snakemake asks before it decides what to run, which is when it has to hear of
    finished and of outdated cells.
    """

    def of_wildcards(wildcards):
        if WAS_KILLED:
            take_over_finished_cells()
        cell = study.folder.format(**wildcards)
        if cell.removeprefix("results/") in OUTDATED:
            snakemake_internals.measure_again(workflow, f"{cell}/record.json")
        return []

    return of_wildcards if OUTDATED or WAS_KILLED else []


def cell_resources(study):
    """What a cell's job takes: GPUs, minutes, what Slurm is asked for; and the program that measures.

    That is no param, because another param would make every cell stale, and it is not written into the shell block,
    because the block is read when a job runs: the loop over the studies would have come to the last by then.
    """

    @functools.cache
    def asked(label, size):
        return hardware.job_resources(REGISTRY.machines[label], config, study.name, size)

    return {"program": study.program} | {
        key: constant_or_function(study, lambda cell, key=key: asked(cell.label, cell.size)[key])
        for key in hardware.asked_of_any(MACHINES)
    }


def cell_cpus(study):
    """Processor cores of a cell's job."""

    @functools.cache
    def asked(label, size):
        return hardware.job_cpus(REGISTRY.machines[label], config, study.name, size)

    return constant_or_function(study, lambda cell: asked(cell.label, cell.size))


def constant_or_function(study, look_up):
    """What `look_up` says of all the study's cells if it is the same, which saves Snakemake a call for each; else, or
    if that is None, which only a function may say to Snakemake, a function of the wildcards.
    """
    values = {look_up(cell) for cell in REGISTRY.studies[study.name]}
    same = len(values) == 1 and None not in values
    return values.pop() if same else of_cell(study, look_up)


def study_tables(study, folder="results"):
    """The tidy tables of a study."""
    names = [study.name, f"{study.name}_samples", *more_tables(study.name)]
    return [f"{folder}/tables/{name}.csv" for name in names]


def write_plan(path, log):
    """Write the plan; sys.exit() instead of an exception would leave Snakemake waiting for the job for ever."""
    try:
        REGISTRY.write_plan(path)
        Path(log).write_text(f"{REGISTRY.count} cells\n")
    except OSError as error:
        raise WorkflowError(f"error: {complaint(error, Path(path).parent)}") from None


@functools.cache
def report_code(program, *by_name):
    """Digest of the code that a reporting job runs."""
    return SOURCES.digest(program, by_name)


def lost_results():
    """Results, or the plan, that are gone although there is a report: Snakemake would not miss them by itself."""
    written = Path("results/report/index.html").is_file()
    return missing([REGISTRY.plan_path, *REGISTRY.records(), *REGISTRY.samples()]) if written else []


def templates():
    """What the report is made from, as paths from the working directory: a moved checkout changes none of them.

    The published figures are not among them: they reach the report as a table.
    """
    parts = [part for part in (ROOT / "report").iterdir() if part.name not in ("example", "published")]
    files = [file for part in parts for file in (part.rglob("*.*") if part.is_dir() else [part])]
    return sorted(map(os.path.relpath, files))


def figures(section):
    """Names of a section's figures, each with the name of its caption."""
    of_cells = REGISTRY.studies[section.name] if section in STUDIES and section.draws_cells else []
    return {name: name for name in section.figures} | {
        figure_name(cell.name): f"{section.name}_cell" for cell in of_cells
    }


def figure_outputs(section, folder):
    """A section's figures as outputs of its drawing rule, to be shown by `snakemake --report` too."""
    outputs = {}
    for name, caption in figures(section).items():
        outputs[name] = report(
            f"{folder}/figures/{name}.svg",
            category=section.category,
            labels={"figure": name.removeprefix(f"{section.name}_").replace("_", " ")},
            caption=f"../report/snakemake_captions/{caption}.rst",
        )
        outputs |= {f"{name}_{suffix}": f"{folder}/figures/{name}.{suffix}" for suffix in ("png", "pdf")}
    return outputs


def section_tables(section, folder):
    """The tables that a section's figures are made of."""
    return [study_tables(study, folder) for study in STUDIES if study is section or study.name in section.reads]


def cells_to_read(study):
    """What a study's tables are made of, if there must be no gaps. A function: Snakemake then takes them up only once."""
    folders = [f"results/{cell.name}" for cell in REGISTRY.studies[study.name]]
    parts = ["record.json", "analysis"] if study.analysis else ["record.json"]
    return lambda wildcards: [f"{folder}/{part}" for part in parts for folder in folders]


# The records of people's own models, which models.csv is made of.
OWN_MODELS = [
    f"results/{cell.name}/record.json" for cells in REGISTRY.studies.values() for cell in cells if "model" in cell.spec
]


def partial_plan(wildcards):
    """A function, because it takes a look at every cell: only a partial report needs that."""
    return REGISTRY.partial_plan_path


def ab_page(wildcards):
    """What was found of two sides that were measured in turns; ends the run if no sides were given."""
    if AB is None:
        sys.exit(f"config keys a_commit and b_commit: give what is to be measured in turns, {turns.HOW}")
    return [f"results/ab/{AB.name}/ab.txt", f"results/ab/{AB.name}/index.html"]


def compared_with():
    """The baseline and the machines that belong together, as flags."""
    paired = [f"--paired {shlex.quote(f'{old}={new}')}" for old, new in config["paired"].items()]
    return " ".join([shlex.quote(config["baseline"] or ""), *paired, *["--strict"] * config["strict"]])
