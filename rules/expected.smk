# What a run will cost: printed before it, followed while it goes, held against what it took when it has ended.
# Needs the cells; makes results/tables/estimate.csv when a run begins, and nothing else.
import contextlib
import shutil

from stepscope.machine.memory import capacity
from stepscope.config import estimate, summary
from stepscope.config.time_left import TimeLeft
from stepscope.tables import estimate as estimate_table
from stepscope.tables.staleness import stale_cells

PARTS = {study.name: study.analysis.of if study.analysis else None for study in STUDIES}


@functools.cache
def known(label):
    """What is known of a machine before a run."""
    one = REGISTRY.machines[label]
    return estimate.read_known(label, one.device, PARTS, RESULTS, capacity(one.device) if one.here else None)


def expected(cells):
    """Cell → what it is expected to cost."""
    cells = list(cells)
    by_label = {label: [cell for cell in cells if cell.label == label] for label in REGISTRY.machines}
    found = [one for label, own in by_label.items() if own for one in estimate.estimates(own, known(label))]
    return {one.cell.name: one for one in found}


def cells_at_once():
    """How many cells run together here; None for those that a cluster's jobs measure."""
    if BY_JOBS:
        return None
    most = len(gpus.alike(gpus.visible_gpus())) if SEVERAL_GPUS else 1
    return snakemake_internals.jobs_at_once(workflow, "gpu", most)


def planned_machines():
    """Each machine with its cells, those that are to be measured among them."""
    stale = stale_cells(json.loads(REGISTRY.plan), RESULTS, PARTS)
    cells = {cell.name: cell for of_study in REGISTRY.studies.values() for cell in of_study}
    costs = expected(cells[name] for name in stale)
    return [
        summary.Machine(
            label=one.label,
            name=one.expect or one.label if not one.here else machine_name(one.device),
            capacity=known(one.label).capacity,
            cells={
                study: sum(cell.label == one.label for cell in of_study) for study, of_study in REGISTRY.studies.items()
            },
            todo=[
                summary.Todo(found.why, found.reason, costs[name])
                for name, found in stale.items()
                if cells[name].label == one.label
            ],
            at_once=cells_at_once(),
            used=not one.measured,
        )
        for one in MACHINES
    ]


def machine_name(device):
    """Name of the machine's GPU, or of its CPU."""
    return gpus.visible_gpus()[0].name if device == "cuda" else identity.cpu_name()


def say_plan(wildcards=None):
    """Print the plan and end, before anything runs."""
    how = "--workflow-profile profiles/slurm" if BY_JOBS else "--cores 1"
    command = f"snakemake {how} report{given_flags()}"
    free = shutil.disk_usage(Path("results") if Path("results").is_dir() else Path.cwd()).free
    print(summary.page(config["preset"], planned_machines(), free, command), flush=True)
    SOURCES.save()
    sys.exit(0)


RUN = {}  # of a run that has begun: what its cells are expected to cost, and who follows them


def follow_cells(to_measure, total, done):
    """Print the cells as they come in with the time left, and write down what is expected of them."""
    names = [str(Path(record).parent.relative_to("results")) for record in to_measure]
    found = expected(REGISTRY.cell(name) for name in sorted(names))
    left = TimeLeft({name: one.seconds for name, one in found.items()}, cells_at_once())
    progress = snakemake_internals.Progress(REGISTRY.rules, total, done, left)
    snakemake_internals.follow(progress)
    RUN.update(expected=found, progress=progress)
    if found and not snakemake_internals.only_touches(workflow):
        with contextlib.suppress(OSError):  # a full disk is named by what cannot do without room
            planned = [cell.name for of_study in REGISTRY.studies.values() for cell in of_study]
            estimate_table.write(found.values(), planned, Path("results/tables"))


def say_how_long_it_took():
    """One line: how long the run's cells took, and how long they were expected to."""
    if not RUN or not RUN["progress"].ended:
        return
    ended = RUN["progress"].ended
    took = {name: estimate.seconds_taken(Path("results") / name) for name in ended}
    print(estimate.against(RUN["expected"], took))
