"""What a cell that runs a model or steps of one's own adds to its frame: what was built stands in
the record, and what is the file's fault is one line.

A model is looked at in a process of its own, on the CPU or without any memory at all: the device
is not touched, and nothing has run in the process that measures.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator

from stepscope.config import own_models
from stepscope.machine import process
from stepscope.machine.locks import HELD
from stepscope.model.own.reference import ModelError

from . import processes


def look_at(spec: dict) -> dict:
    """`model`, a part of the summary: what the model of a spec is. {} of a cell without one, and of
    one below the program that has shown it."""
    if "model" not in spec:
        return {}
    if HELD in os.environ:
        return {"model": None}
    (found,) = processes.each(1, lambda _: looked_at(spec))
    said = "not looked at: the host's memory does not hold it"
    if found:
        said = f"{found['parameters']:,} parameters"
    print(f"model       {spec['model']}, {said}", flush=True)
    return {"model": found}


@contextlib.contextmanager
def or_one_line() -> Iterator[None]:
    """Within it an error for which a model or step of one's own is to blame ends the program with
    one line."""
    try:
        yield
    except ModelError as error:
        sys.exit(f"error: {error}")


def looked_at(spec: dict) -> dict | None:
    """What the model of a spec is; None of one that the host has not the memory for.

    Ends the program with one line where it cannot be built or run at all.
    """
    from . import memory

    # By name, so that no other cell depends on it.
    assembled = importlib.import_module("stepscope.model.own.assembled")
    keys = own_models.keys_of(spec)
    process.limit_address_space()
    try:
        with or_one_line():
            return assembled.describe(
                spec["model"], keys, spec["context"], spec["batch"], spec["seed"]
            )
    except Exception as error:
        if not memory.is_out_of_memory(error):
            raise
        return None
