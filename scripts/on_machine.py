"""Run a measuring program where it belongs: on a machine of its label's type, on a GPU that nothing else measures on.

    on_machine.py MACHINES PYTHON LABEL PROGRAM [ARGUMENTS ...]

MACHINES is the file in which a run wrote down what it knows of its labels. The program ends with one line if this
machine is not of the type that the label expects. It says so if driver or software are others than those of the
label's newest record. Where several GPUs are visible the program sees a free one alone (CUDA_VISIBLE_DEVICES); only
GPUs of the first one's type are taken: results stand under one name. Where a core is enough, it has one of its own,
too. What it measures is still guarded by the lock that every measuring program takes.
"""

import os
import sys
from pathlib import Path

from stepscope.config import run
from stepscope.machine import arrival, cores, gpus, identity, locks


def main() -> None:
    if len(sys.argv) < 5:
        sys.exit(f"usage: {sys.argv[0]} MACHINES PYTHON LABEL PROGRAM [ARGUMENTS ...]")
    known, python, label, *command = sys.argv[1:]
    try:
        expected = arrival.read(Path(known), label)
    except ValueError as error:
        sys.exit(f"error: {error}")
    own = expected.python
    if own and os.environ.get("STEPSCOPE_PYTHON") != own:  # its torch is the one that counts
        _become([own, *sys.argv[:2], own, label, *command], {"STEPSCOPE_PYTHON": own})
    environment = {}
    try:
        visible = gpus.visible_gpus() if expected.device == "cuda" else []
        arrival.check_type(label, expected, visible[0].name if visible else None)
        difference = arrival.news(expected, identity.identity(expected.device))
    except (ValueError, identity.MachineError) as error:
        sys.exit(f"error: {error}")
    if refused := run.unlockable():
        sys.exit(f"error: {refused}")
    if difference:
        print(
            f"note: {os.uname().nodename} is not as {label} was: {difference}. This cell is measured here; the next "
            f"run measures the other cells of {label} again.",
            file=sys.stderr,
            flush=True,
        )
    uuids = gpus.alike(visible)
    if len(uuids) > 1:
        environment["CUDA_VISIBLE_DEVICES"] = gpu = locks.take_free_gpu(uuids)
        cores.keep_to(command, gpu, uuids)
    _become([python, *command], environment)


def _become(command: list[str], environment: dict[str, str]) -> None:
    try:
        os.execvpe(command[0], command, os.environ | environment)
    except OSError as error:
        sys.exit(f"error: cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
