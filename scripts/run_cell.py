"""Measure one cell for the workflow: on a machine of its label's type, by its study's program,
whole or not at all.

    run_cell.py LABEL --cell SPEC --code "DIGEST MACHINE" --time-limit MINUTES --out DIR

SPEC and MACHINE are JSON. The program, whose plain flags are printed, measures into
results/.measured; what it has finished is linked into DIR. If a run was killed after a cell had
finished and before Snakemake had noted that, Snakemake asks for the cell again: it is then taken
from there. On a machine that is not of the type that the label expects, nothing is measured. Where
several GPUs are visible the program sees a free one alone, of the first one's type.
"""

from stepscope.machine.process import STARTER, die_with_starter

die_with_starter()

import argparse
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from stepscope.config.grid import command_of, words_of
from stepscope.config.run import KEPT
from stepscope.config.studies import BY_NAME
from stepscope.machine import gpus, identity, labels, locks, process

SCRIPTS = Path(__file__).resolve().parent


def main() -> None:
    given = arguments()
    spec = json.loads(given.cell)
    code, machine = given.code.split(" ", 1)
    kept = KEPT / given.out.relative_to("results")
    if is_finished(kept, spec, code, json.loads(machine)):
        print(f"measured before, by a run that was killed: taken from {kept}")
    else:
        shutil.rmtree(kept, ignore_errors=True)
        program = BY_NAME[spec["study"]].file
        words = [
            str(SCRIPTS / program),
            *words_of(spec),
            "--time-limit",
            str(given.time_limit),
            "--out",
            str(kept),
        ]
        python, environment = prepared(given.label, spec)
        print("$", command_of(program, spec), flush=True)
        environment = os.environ | environment | {STARTER: str(os.getpid())}
        if failed := process.run_logged([python, *words], environment):
            sys.exit(failed if failed > 0 else 128 - failed)
    take(kept, given.out)


def arguments() -> argparse.Namespace:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("label", help="the machine's, a name under the config key hardware")
    flags.add_argument("--cell", required=True, metavar="JSON", help="the cell's spec")
    flags.add_argument(
        "--code", required=True, help="digest of its code, a blank, and the machine's type as JSON"
    )
    flags.add_argument(
        "--time-limit", type=float, required=True, help="minutes after which to give up"
    )
    flags.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the cell's folder in results/"
    )
    return flags.parse_args()


def is_finished(kept: Path, spec: dict, code: str, machine: dict | None) -> bool:
    """Whether a folder holds the whole result of this spec, measured by this code on this type of
    machine."""
    try:
        record = json.loads((kept / "record.json").read_bytes())
        digest = hashlib.sha256((kept / "samples.csv").read_bytes()).hexdigest()
        is_same = (record["spec"], record["code"], record["samples_sha256"]) == (spec, code, digest)
        return is_same and all(
            record["machine"].get(key) == value for key, value in (machine or {}).items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def prepared(label: str, spec: dict) -> tuple[str, dict[str, str]]:
    """(the interpreter that measures, what changes in its environment); ends the program where it
    cannot."""
    machine = labels.told(label)
    try:
        machine.check_type()
    except identity.MachineError as error:
        sys.exit(f"error: {error}")
    visible = gpus.visible_gpus() if spec["device"] == "cuda" else []
    uuids, devices = gpus.alike(visible), spec.get("devices", 1)
    if len(uuids) < 2:
        return machine.python, {}
    # Several are the first ones, taken in their order: two programs cannot wait for each other.
    wanted = [uuids] if devices == 1 else [[uuid] for uuid in uuids[:devices]]
    taken = ",".join(locks.take_free_gpu(each) for each in wanted)
    return machine.python, {"CUDA_VISIBLE_DEVICES": taken}


def take(kept: Path, out: Path) -> None:
    """Put what was measured into the cell's folder, the record last; as links, so that both hold
    it."""
    out.mkdir(parents=True, exist_ok=True)
    finished = kept.glob("[!.]*")  # not what a killed program of another user's may have left
    for path in sorted(finished, key=lambda path: path.name == "record.json"):
        place = out / path.name
        shutil.rmtree(place, ignore_errors=True)
        if path.is_dir():
            shutil.copytree(path, place, copy_function=link)
        else:
            place.unlink(missing_ok=True)
            link(path, place)


def link(path: str | Path, place: str | Path) -> None:
    """A second name for a file, or its copy where the file system has none."""
    try:
        os.link(path, place)
    except OSError:
        shutil.copy2(path, place)


if __name__ == "__main__":
    main()
