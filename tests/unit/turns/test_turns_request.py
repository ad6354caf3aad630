"""What the configuration asks of `snakemake ab`."""

import json
import sys

import pytest
from stepscope.turns import TurnsError
from stepscope.turns.request import requested

ENTRY = {
    "spec": {"study": "timing", "processes": 3, "device": "cpu"},
    "command": "python scripts/time_step.py --device cpu",
    "code": "0123",
}
PLAN = json.dumps(
    {"studies": {"timing": {"cells": [ENTRY | {"cell": f"{label}/timing/small/fp32"} for label in ("box", "theirs")]}}}
)
NONE = {"a_commit": None, "b_commit": None, "a_python": None, "b_python": None, "cells": []}


@pytest.fixture
def ask(fake):
    """A function of the keys that are given."""
    return lambda here="box", **keys: requested(NONE | keys, lambda: PLAN, here, fake)


def test_without_a_key_nothing_is_asked_for(ask):
    assert ask() is None


def test_two_commits_and_the_cells_of_the_machine_at_hand(ask):
    found = ask(a_commit="old", b_commit="new", cells="timing, small")
    assert [entry["cell"] for entry in found.entries] == ["box/timing/small/fp32"] and found.device == "cpu"
    assert len(found.commits["a"]) == len(found.commits["b"]) == 40 and found.code == ""
    assert found.name.startswith(f"{found.commits['a'][:8]}-{found.commits['b'][:8]}-")


def test_the_files_as_they_are_count_by_their_digest(ask):
    found = ask(a_commit="old", b_commit="worktree", cells=["timing"])
    assert found.commits["b"] is None and found.code == "0123"


def test_two_environments_run_the_files_as_they_are(ask):
    found = ask(b_python=sys.executable, cells="timing")
    assert found.commits == {"a": None, "b": None} and found.pythons == {"a": "", "b": sys.executable}
    assert found.name != ask(a_commit="worktree", b_commit="worktree", cells="timing").name


def test_a_hash_of_digits_is_a_number_on_the_command_line(ask):
    with pytest.raises(TurnsError, match="config key a_commit: there is no commit '1234567'"):
        ask(a_commit=1234567, b_commit="old", cells="timing")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"a_commit": "old", "cells": "timing"}, "config key b_commit: give a commit, or worktree, as in"),
        ({"cells": "timing"}, "config key a_commit: give a commit, or worktree, as in"),
        ({"a_commit": "old", "b_commit": "new"}, "config key cells: give parts of cells' paths, as in"),
        ({"a_commit": "old", "b_commit": "new", "cells": "x"}, "config key cells: 'x' is part of no cell's path"),
        ({"a_commit": "old", "b_commit": "new", "cells": "theirs"}, "config key cells: 'theirs' is part of no cell's"),
        ({"b_python": "/none", "cells": "timing"}, "config key b_python: /none does not run"),
        ({"a_commit": "old", "b_commit": "new", "cells": "timing", "here": None}, "config key hardware: two sides are"),
    ],
)
def test_what_cannot_be_is_one_line_with_its_key(ask, keys, reason):
    with pytest.raises(TurnsError) as error:
        ask(**keys)
    assert str(error.value).startswith(reason) and str(error.value).isprintable()
