# What the studies share: the checked configuration, the machine, and the registry of cells.
# Needs config.yaml and the presets; makes no files. Only the standard library and what Snakemake itself needs.
import os
import sys
from pathlib import Path

from snakemake.logging import logger

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))

from stepscope.plan import machine as this_machine
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
    DEVICE = this_machine.choose_device(config["device"])
except (ConfigError, this_machine.MachineError) as error:
    sys.exit(str(error))

if Path("results").exists() and not Path("results").is_dir():
    sys.exit(f"{Path('results').resolve()} is no folder; move it away, or choose another --directory")

HARDWARE = this_machine.hardware_label(DEVICE)
THREADS = (1 if DEVICE == "cuda" else this_machine.usable_cores()) if config["threads"] == "auto" else config["threads"]
CONDA = "conda" in {str(method).lower() for method in workflow.deployment_settings.deployment_method}
PYTHON = "python" if CONDA else sys.executable
# Paths of this checkout reach the shell blocks by variables: as params they would make every cell of a moved one stale.
# `measure PROGRAM` runs a measuring program; where there are several GPUs, on one that is free.
SEVERAL_GPUS = DEVICE == "cuda" and len(this_machine.visible_gpus()) > 1
MEASURE = [PYTHON, str(SCRIPTS / "on_free_gpu.py"), PYTHON] if SEVERAL_GPUS else [PYTHON]
shell.prefix('set -euo pipefail; PYTHON={PYTHON:q} SCRIPTS={SCRIPTS:q}; measure() {{ exec {MEASURE:q} "$@"; }}; ')
REGISTRY = Registry(
    config=config,
    device=DEVICE,
    hardware=HARDWARE,
    threads=THREADS,
    environment=ROOT / "envs/measure.yaml" if CONDA else None,
)
# A GPU cell takes the GPU; a CPU cell takes all cores, so that nothing runs beside it.
CELL_GPUS = 1 if DEVICE == "cuda" else 0
CELL_THREADS = 1 if DEVICE == "cuda" else this_machine.usable_cores()


wildcard_constraints:
    hardware=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    context=r"\d+",
    precision="fp32|tf32|bf16|fp16",
    options=r"(/[a-z_]+=[A-Za-z0-9._-]+)*",


MORE_TABLES = {}


def add_study(study, rule, expand, tools=(), tables=()):
    """Register a study's cells; `rule` measures one of them, `tools` are the programs that it uses.

    `tables` are those that a study has besides the two that every study has; its own rule makes them all.
    """
    MORE_TABLES[study] = list(tables)
    try:
        REGISTRY.add(study, rule, expand, tools)
    except (ConfigError, this_machine.MachineError) as error:
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


def begin_run():
    """Keep other runs out of this folder, and count the cells as they come in."""
    refused = RUN_LOCK.take() or unwritable(Path("results"))
    if refused:
        sys.exit(refused)
    records = REGISTRY.records()
    to_measure = {job.output.record for job in workflow.dag.needrun_jobs() if job.rule.name in REGISTRY.rules}
    done = set(records) - to_measure - set(missing(records))
    logger.addHandler(Progress(REGISTRY.rules, total=len(records), done=len(done)))


def say_where_the_report_is():
    """The last line of a run that succeeded."""
    partial_one = any(job.rule.name == "partial" for job in workflow.dag.jobs)
    page = Path("results/partial/report/index.html" if partial_one else "results/report/index.html")
    if page.is_file() and (partial_one or not missing(REGISTRY.records())):
        print(f"The report: {page.resolve()}")


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
        print("`snakemake --cores 1 partial` writes a report of the others and names these;")
        print("`snakemake --cores 1 report` measures these again.")
