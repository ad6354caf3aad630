"""What `snakemake ab` was asked for, by the configuration's keys a_commit, b_commit, a_python, b_python and cells."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.turns import TurnsError, cells, sides

KEYS = ("a_commit", "b_commit", "a_python", "b_python", "cells")
HOW = "as in `snakemake --cores 1 ab --config a_commit=main b_commit=worktree cells=timing/small`"


@dataclass(frozen=True)
class Request:
    """Two sides and their cells. name: of the folder in results/ab. commits: by side, None for the files as they are.
    pythons: by side, empty for the Python of this run. entries: of the plan. code: digests of the cells' code where a
    side is the files as they are, else empty. device: of all cells.
    """

    name: str
    commits: dict[str, str | None]
    pythons: dict[str, str]
    entries: list[dict]
    code: str
    device: str

    @property
    def plan(self) -> str:
        """JSON of a plan with these cells alone."""
        return json.dumps({"studies": {"ab": {"cells": self.entries}}}, sort_keys=True)

    @property
    def sides(self) -> str:
        """JSON of what was asked for, for Snakemake to see a change."""
        return json.dumps([self.commits, self.pythons, self.code], sort_keys=True)


def requested(config: dict, plan: Callable[[], str], here: str | None, project: Path) -> Request | None:
    """What was asked for, None if none of the keys is given.

    plan: gives the plan as JSON. here: label of the machine at hand, if anything is measured on it. Raises TurnsError,
    in one line that names the key.
    """
    if not any(config[key] for key in KEYS):
        return None
    if here is None:
        raise TurnsError("config key hardware: two sides are measured in turns on the machine at hand, and none is it")
    pythons = {"a": config["a_python"] or "", "b": config["b_python"] or ""}
    given = {
        side: str(config[f"{side}_commit"] or (sides.WORKTREE if any(pythons.values()) else "")) for side in ("a", "b")
    }
    for side, commit in given.items():
        if not commit:
            raise TurnsError(f"config key {side}_commit: give a commit, or {sides.WORKTREE}, {HOW}")
    entries = _entries(_parts(config["cells"]), json.loads(plan()), here)
    commits = {side: _checked(f"{side}_commit", sides.commit_of, project, commit) for side, commit in given.items()}
    for side, python in pythons.items():
        if python:
            _checked(f"{side}_python", sides.checked_python, python)
    names = [entry["cell"] for entry in entries]
    mark = hashlib.sha256(json.dumps([names, pythons]).encode()).hexdigest()[:6]
    short = [commit[:8] if commit else sides.WORKTREE for commit in commits.values()]
    code = " ".join(entry["code"] for entry in entries) if None in commits.values() else ""
    return Request("-".join([*short, mark]), commits, pythons, entries, code, entries[0]["spec"]["device"])


def _checked(key: str, check: Callable[..., Any], *given: object) -> Any:
    """What a check returns; its complaint names the key."""
    try:
        return check(*given)
    except TurnsError as error:
        raise TurnsError(f"config key {key}: {error}") from None


def _parts(given: str | list[str]) -> list[str]:
    """Parts of paths, from a list or from words between commas."""
    return given if isinstance(given, list) else [part.strip() for part in given.split(",") if part.strip()]


def _entries(parts: list[str], plan: dict, here: str) -> list[dict]:
    """The plan's cells of the machine at hand that are meant."""
    own = [entry for study in plan["studies"].values() for entry in study["cells"]]
    own = [entry for entry in own if entry["cell"].startswith(f"{here}/")]
    if not parts:
        raise TurnsError(f"config key cells: give parts of cells' paths, {HOW}")
    turns = _checked("cells", cells.chosen, parts, {"studies": {"ab": {"cells": own}}})
    return [entry for entry in own if entry["cell"] in {turn.name for turn in turns}]
