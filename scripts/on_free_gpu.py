"""Run a command on one of this machine's GPUs that nothing else measures on, and wait until there is one.

    on_free_gpu.py COMMAND [ARGUMENTS ...]

The command sees that GPU alone (CUDA_VISIBLE_DEVICES). Only GPUs of the first one's type are taken: results stand under
one name. What the command measures is still guarded by the lock that every measuring program takes.
"""

import os
import sys

from stepscope.plan import free_gpu, machine


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} COMMAND [ARGUMENTS ...]")
    uuids = free_gpu.alike(machine.visible_gpus())
    if not uuids:
        sys.exit("error: no NVIDIA GPU is visible here; run the command by itself")
    uuid = free_gpu.take(uuids)
    try:
        os.execvpe(sys.argv[1], sys.argv[1:], os.environ | {"CUDA_VISIBLE_DEVICES": uuid})
    except OSError as error:
        sys.exit(f"error: cannot run {sys.argv[1]}: {error.strerror}")


if __name__ == "__main__":
    main()
