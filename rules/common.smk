# What the rules share: the checked configuration, the machines, the cells, and what is asked of
# each. Needs config.yaml and the presets; makes no files. Only the standard library and what
# Snakemake itself needs.
import functools
import hashlib
import json
import re
import shlex

from stepscope.axes import BUILT
from stepscope.model.formats import PRECISIONS
from stepscope.config import hardware
from stepscope.config import Complaints, ConfigError
from stepscope.config.config import validated
from stepscope.config.published import published_files
from stepscope.config.registry import Registry
from stepscope.config.run import in_memory, measuring, unready, unusable
from stepscope.config.studies import STUDIES
from stepscope.files import write_whole
from stepscope.machine import identity, labels

refused = unusable(str(PROJECT)) or unusable(sys.executable)
if refused := refused or unready(Path.cwd()):
    sys.exit(refused)
CONDA = "conda" in map(str, workflow.deployment_settings.deployment_method)
WRONG = Complaints()
try:
    config = validated(config, PROJECT / "rules/config.schema.yaml")
    with WRONG.noted():
        PUBLISHED = published_files(config, PROJECT / "report/published")
    with WRONG.noted():
        MACHINES = hardware.hardware_of(config)
        environment = PROJECT / "envs/measure.yaml" if CONDA else None
        CELLS = Registry(config, MACHINES, STUDIES, environment=environment)
    WRONG.tell()
except (ConfigError, identity.MachineError) as error:
    sys.exit(str(error))

# Shell blocks find the programs by a variable: a path as a param would make every cell of a moved
# checkout stale. The interpreter that runs Snakemake comes first on the PATH; an environment of
# conda, or a container, puts its own before.
paths = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
os.environ.update(STEPSCOPE=str(PROJECT / "scripts"), PATH=os.pathsep.join(paths))
os.environ.setdefault("STEPSCOPE_COMMAND", shlex.join(["snakemake", *measuring(sys.argv[1:])]))
# The plan is copied by a shell block: a `run` block would be another Snakemake, which goes on when
# this one is killed.
os.environ.update(STEPSCOPE_PLAN=in_memory(CELLS.plan))
labels.tell(MACHINES)
LABELS = [one.label for one in MACHINES]
# Resources that are named to Snakemake: a key that no machine has would hide what the user's own
# profile sets for it.
ASKED = {"gpu", "minutes", "runtime"}.union(
    *(["mem_mb", *one.asked] for one in MACHINES if one.by_jobs)
)
HERE = next((one for one in MACHINES if one.here), None)


if idle := CELLS.idle_models():
    devices = " and ".join(dict.fromkeys(one.device for one in MACHINES))
    print(f"note: no grid of {devices} has these models: {', '.join(idle)}", file=sys.stderr)


wildcard_constraints:
    hardware="|".join(re.escape(one.label) for one in MACHINES if one.measured) or "-",
    context=r"\d+",
    precision="|".join([*PRECISIONS, BUILT]),
    options=r"(/[a-z_]+=[A-Za-z0-9._-]+)*",


MEASURED = set()  # the studies that a rule measures


def cell_params(folder):
    """The two params that make a cell stale: its spec, and its code with its machine's type.

    folder: `results/…` with wildcards. The params are functions of the wildcards alone: Snakemake
    does not remember one that is derived from an input or output.
    """
    MEASURED.add(folder.split("/")[2])

    def param(what):
        def of_wildcards(wildcards):
            try:
                cell = CELLS.cell(folder.format(**wildcards))
            except ConfigError as error:  # in no grid
                sys.exit(str(error))
            return what(cell)

        return of_wildcards

    return {"cell": param(lambda cell: cell.json), "code": param(CELLS.code_and_machine)}


def asked(key):
    """A function that says what a cell's job asks for under a key: gpu, minutes, mem_mb, what Slurm
    is asked for …"""

    def of_wildcards(wildcards, rulename):
        # By the end of the rule's name: a workflow that uses this one puts a prefix before it.
        study = next(study.name for study in STUDIES if rulename.endswith(study.program))
        machine, size = CELLS.machines[wildcards.hardware], wildcards.get("size")
        options = [part.partition("=") for part in (wildcards.get("options") or "").split("/")]
        devices = next((int(value) for name, _, value in options if name == "devices"), 1)
        return hardware.job_resources(machine, config, study, size, devices).get(key)

    return of_wildcards


def cpus(study):
    """A function that says how many processor cores a cell's job takes."""
    return lambda wildcards: hardware.job_cpus(
        CELLS.machines[wildcards.hardware], config, study, wildcards.get("size")
    )


def cells_to_read(*parts):
    """These parts of all cells, where their study has them; of those that are there if nothing is
    to be measured."""
    paths = [
        f"results/{name}/{part}"
        for study in STUDIES
        for part in parts
        if part != "analysis" or study.analysis
        for name in CELLS.names(study.name)
    ]
    return paths if config["measure"] else [path for path in paths if os.path.exists(path)]


def logs_of_missing():
    """The logs of cells that were not measured, where nothing is to be measured: they say why."""
    logs = [f"results/{name}/measure.log" for name in CELLS.missing()]
    return [] if config["measure"] else [path for path in logs if os.path.exists(path)]


@functools.cache
def code_of(program, *packages):
    """Digest of a program of the report, and of all modules of packages that it loads by name."""
    files = [path for name in packages for path in (PROJECT / "scripts" / name).rglob("*.py")]
    modules = [
        ".".join(path.relative_to(PROJECT / "scripts").with_suffix("").parts) for path in files
    ]
    return CELLS.sources.digest(
        f"{program}.py", tuple(name for name in modules if not name.endswith("__init__"))
    )


def templates():
    """What the pages are filled into and quote, as paths from the working directory: a moved
    checkout changes none of them."""
    patterns = (
        "*.html",
        "*.css",
        "chapters/*.j2",
        "explorer/*",
        "fits/*",
        "vendor/*.js",
        "reference/*.json",
    )
    found = [path for pattern in patterns for path in PROJECT.glob(f"report/{pattern}")]
    return sorted(map(os.path.relpath, found))


def data_of_results():
    """Schemas, data sheets and cards that `aggregate` reads."""
    files = (PROJECT / "scripts/stepscope/results").iterdir()
    return sorted(os.path.relpath(path) for path in files if path.suffix in (".csv", ".json"))


def compared_with(wildcards):
    """The results folder that `compare` sets ours beside; ends the run where the configuration
    names none."""
    complaint = "config key baseline: compare needs a results folder; give --config baseline=PATH"
    return config["baseline"] or sys.exit(complaint)


def write_plan(path, log):
    """Write down what `aggregate` is to expect."""
    write_whole({Path(path): [CELLS.plan], Path(log): [f"{len(CELLS.names())} cells\n"]})
