"""What is measured in turns: cells of a plan, or commands of measuring programs."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepscope.config.grid import words_of
from stepscope.machine import identity
from stepscope.turns import TurnsError

# Programs that measure time in processes of their own, one of which can be had by itself.
PROGRAMS = ("time_step", "time_ladder", "time_attention", "measure_ceilings")


@dataclass(frozen=True)
class Turn:
    """A cell to be measured: its name, its program, and the program's flags for one process."""

    name: str
    program: str
    words: tuple[str, ...]
    device: str


def chosen(given: Sequence[str], plan: dict | None) -> list[Turn]:
    """The cells that are meant: a command stands for itself, anything else for the plan's cells whose path holds it;
    nothing for all of them.

    Raises TurnsError for what names none, or one whose program measures no time.
    """
    found: dict[str, Turn] = {}
    if not given and plan is not None:
        found = {entry["cell"]: _turn(entry) for study in plan["studies"].values() for entry in study["cells"]
                 if "processes" in entry["spec"]}  # fmt: skip
    for each in given:
        for turn in [_of_command(each)] if ".py" in each.split("/")[-1].partition(" ")[0] else _of_plan(each, plan):
            found[turn.name] = turn
    if not found:
        raise TurnsError("no cell is given; give names of cells, or commands of measuring programs")
    devices = {turn.device for turn in found.values()}
    if len(devices) > 1:
        raise TurnsError("the cells are of a GPU and of a CPU; measure those of one at a time")
    return list(found.values())


def read_plan(path: Path) -> dict:
    """A plan of the workflow. Raises TurnsError for what is none."""
    try:
        plan = json.loads(path.read_bytes())
        plan["studies"].values()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TurnsError(f"{path} is no plan of the workflow ({error}); `snakemake results/plan` writes one") from None
    return plan


def is_meant(name: str, part: str) -> bool:
    """Whether a part of a path stands in a cell's name, at the borders of its parts."""
    return f"/{part.strip('/').removeprefix('results/')}/" in f"/{name}/"


def _of_plan(part: str, plan: dict | None) -> list[Turn]:
    if plan is None:
        raise TurnsError(
            f"{part!r}: a cell's name needs --plan; or give a command such as 'time_step.py --size nano …'"
        )
    entries = [entry for study in plan["studies"].values() for entry in study["cells"]]
    meant = [entry for entry in entries if is_meant(entry["cell"], part)]
    if not meant:
        like = entries[0]["cell"].partition("/")[2] if entries else "timing/small/ctx512/bf16"
        raise TurnsError(f"{part!r} is part of no cell's path; cells are like {like}")
    turns = [_turn(entry) for entry in meant if "processes" in entry["spec"]]
    if not turns:
        raise TurnsError(
            f"{meant[0]['cell']} is measured by one process that cannot be repeated; choose cells of timing, ladder, "
            "attention or ceilings"
        )
    return turns


def _turn(entry: dict) -> Turn:
    spec = entry["spec"]
    program = Path(shlex.split(entry["command"])[1]).stem
    return Turn(entry["cell"], program, tuple(words_of(spec | {"processes": 1})), spec["device"])


def _of_command(command: str) -> Turn:
    try:
        path, *words = shlex.split(command)
    except ValueError as error:
        raise TurnsError(f"{command!r} is no command: {error}") from None
    program = Path(path).stem
    if program not in PROGRAMS:
        raise TurnsError(
            f"{path} measures no time; the programs that do are {', '.join(f'{each}.py' for each in PROGRAMS)}"
        )
    for taken in ("--processes", "--out"):
        if any(word.partition("=")[0] == taken for word in words):
            raise TurnsError(f"{command!r}: leave out {taken}, which is given to it")
    try:
        given = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == "--device"), "auto")
        device = identity.choose_device(given)
    except identity.MachineError as error:
        raise TurnsError(str(error)) from None
    return Turn(
        shlex.join([f"{program}.py", *words]), program, (*words, "--processes", "1", "--device", device), device
    )
