"""The frame of a measuring program: alone on the device, within its limits, results written as a record.

Imports torch only once the device is ours, so that a waiting program does not disturb the one that measures.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from stepscope import files
from stepscope.config.code_digest import Sources, chosen_modules
from stepscope.config.grid import command_of
from stepscope.machine import gpus, identity, locks
from stepscope.measure import printing, process, processes
from stepscope.measure.telemetry import Telemetry

Outcomes = TypeVar("Outcomes")  # each with a status and the rows of its samples
EMPTY_GPU_BYTES = 512 * 2**20  # what other programs may hold on a GPU that counts as empty


@dataclass(frozen=True)
class Settings:
    """What does not belong to the spec: the output folder (None: only print) and the time limit in minutes."""

    out: Path | None
    time_limit: float


class Cell(contextlib.AbstractContextManager):
    """Entering takes the device and prints the spec; finish() writes the record.

    Where the spec says how many `processes` measure, in_processes() runs them, and this one never touches the device;
    else this one measures.

    `chosen` maps options to the implementations that the program loads by name, `tools` are the programs that it
    uses, `note` is printed below the spec. `files` is the name of the folder of files that the program makes besides
    its record; it puts them into `self.folder`. Ends the program with one line and exit code 1 where the device cannot
    be had or the results cannot be written.
    """

    def __init__(
        self,
        program: str,
        spec: dict,
        settings: Settings,
        chosen: dict[str, str],
        tools: tuple[str, ...] = (),
        files: str | None = None,
        note: str = "",
    ):
        self.spec = spec
        self._settings, self._tools, self._files, self._note = settings, tools, files, note
        self._command = command_of(program, spec)
        self._device = spec["device"]
        # Of the files as they are now, not as they may be when the measurement ends.
        self._code = Sources().measured_digest(program, chosen_modules(chosen))
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Cell":
        process.die_with_parent()
        gpu = next(iter(gpus.visible_gpus()), None) if self._device == "cuda" else None
        device = gpu.uuid if gpu else "cpu"
        self._open.enter_context(locks.hold(device))
        self.environment_of_helpers = {locks.HELD: device}  # for programs that measure under this one's lock
        process.limit_time(self._settings.time_limit)
        process.set_environment(self.spec["threads"])
        self._gpu = gpu.uuid if gpu else None
        watching = Telemetry(self._gpu)
        self._used_before = watching.memory_used() or 0
        self._others_before = watching.processes()
        watching.close()
        import torch  # noqa: F401  (before the processes are forked: it takes seconds)

        if self._files:
            self.folder = self._open.enter_context(_growing(self._settings.out))
        printing.configuration(self.spec, self._note)
        self._seen: list[dict] = []
        if "processes" not in self.spec:
            from stepscope.measure import host

            self._prepare()
            self._before = [host.probe("cpu")]  # the device is not touched before the first step
        return self

    def _prepare(self) -> None:
        """Make the process that measures ready for it."""
        import torch

        from stepscope.measure import precision

        self.telemetry = Telemetry(self._gpu)
        if self._device == "cuda" and not torch.cuda.is_available():
            sys.exit("error: --device cuda, but torch finds no usable GPU here; use --device cpu")
        torch.set_num_threads(self.spec["threads"])
        precision.configure(self.spec["precision"])
        if self._device == "cpu":
            process.limit_address_space()

    def in_processes(self, measure: Callable[[int], Outcomes]) -> list[Outcomes]:
        """What `measure`, called with the process's number from 1, returns in each of the spec's processes.

        That is outcomes, or something that has them as `outcomes`. Their rows get the process's number. What did not
        run in the first process is not tried in another.
        """
        found = []
        for outcomes, seen in processes.each(self.spec["processes"], lambda number: self._one(measure, number)):
            found.append(outcomes)
            self._seen.append(seen)
            if not any(outcome.status == "ok" for outcome in _outcomes(outcomes)):
                break
        return found

    def _one(self, measure: Callable[[int], Outcomes], number: int) -> tuple[Outcomes, dict]:
        """One process's outcomes, and what it saw of the machine."""
        from stepscope.measure import host

        print(f"process {number} of {self.spec['processes']}", flush=True)
        self._prepare()
        outcomes, probes = host.watched(self._device, lambda: measure(number))
        for outcome in _outcomes(outcomes):
            self.check_memory(outcome.status)
            for row in outcome.rows:
                row["process"] = number
        return outcomes, self._sight() | {"host": probes}

    def __exit__(self, *error) -> bool | None:
        return self._open.__exit__(*error)

    def unsupported(self) -> str | None:
        """Why this device cannot run the spec's precision; None if it can."""
        from stepscope.measure import precision

        return precision.unsupported(self.spec["precision"], self._device)

    def check_memory(self, status: str) -> None:
        """Running out of memory on a GPU that others had filled is a failure: end with one line."""
        if status == "oom" and self._used_before > EMPTY_GPU_BYTES:
            sys.exit(
                f"error: out of memory, but {self._used_before / 2**30:.1f} GiB of the GPU were taken before this "
                "program started; free the GPU and run again"
            )

    def _sight(self) -> dict:
        """What the process that measured saw: versions and settings, throttling, other processes on the GPU."""
        from stepscope.measure import provenance

        now = self.telemetry.processes()
        return {
            "origin": provenance.describe(self._device, self._command, self.telemetry),
            "throttle": self.telemetry.throttle(),
            "others": None if now is None else max(self._others_before or 0, now - 1, 0),
        }

    def finish(self, columns: list[str], rows: list[dict], summary: dict, versions: dict | None = None) -> None:
        """Write the files, the samples and the record, if a folder was given; `versions` are those of the study's own
        tools."""
        if self._settings.out is None:
            return
        from stepscope.measure import host, provenance, record

        if self._files:
            _keep(self.folder, self._settings.out / self._files)
        seen = self._seen or [self._sight() | {"host": [*self._before, host.probe(self._device)]}]
        origin = seen[0]["origin"] | provenance.Stopwatch().times()
        origin["versions"] |= versions or {}
        content = {
            "study": self.spec["study"],
            "spec": self.spec,
            "code": self._code,
            "machine": identity.identity(self._device, self._tools),
            "summary": summary,
            "telemetry": _readings(rows, seen),
            "host": _host([probe for one in seen for probe in one.get("host", [])]),
            "provenance": origin,
        }
        try:
            record.write(self._settings.out, columns, rows, content)
        except record.WriteError as error:
            sys.exit(f"error: {error}")


def _outcomes(found: object) -> list:
    return getattr(found, "outcomes", found)


def _readings(rows: list[dict], seen: list[dict]) -> dict:
    """Range of the clock, highest power and temperature, throttling, other processes."""
    clocks = sorted(row["sm_clock_mhz"] for row in rows if row.get("sm_clock_mhz") is not None)
    power = [row["power_w"] for row in rows if row.get("power_w") is not None]
    heat = [row["temperature_c"] for row in rows if row.get("temperature_c") is not None]
    others = [one["others"] for one in seen if one["others"] is not None]
    return {
        "sm_clock_min_mhz": clocks[0] if clocks else None,
        "sm_clock_median_mhz": clocks[len(clocks) // 2] if clocks else None,
        "power_max_w": max(power, default=None),
        "temperature_max_c": max(heat, default=None),
        "throttle": list(dict.fromkeys(reason for one in seen for reason in one["throttle"])),
        "other_processes": max(others, default=None),
    }


def _host(probes: list[dict]) -> dict[str, list[float]]:
    """Seconds of the fixed loops, two of each process, in their order; empty where nothing was probed.

    A probe from before the device was touched has no launches.
    """
    names = dict.fromkeys(name for probe in probes for name in probe)
    return {name: [probe[name] for probe in probes if name in probe] for name in names}


@contextlib.contextmanager
def _growing(out: Path | None) -> Iterator[Path]:
    """Where files grow: beside their place, so that they can be renamed; a temporary folder without `out`.

    Ends the program with one line if nothing can be written there.
    """
    with files.or_one_line(out):
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".growing.") as folder:
            yield Path(folder)


def _keep(folder: Path, place: Path) -> None:
    """Rename the files to their place, whole; what was there before is replaced."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place, copy_function=os.rename)
