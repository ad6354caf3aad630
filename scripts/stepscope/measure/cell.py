"""The frame of a measuring program: alone on the device, within its limits, results written as a record.

Imports torch only once the device is ours, so that a waiting program does not disturb the one that measures.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stepscope.machine import gpus, identity, locks
from stepscope.measure import printing, process
from stepscope.measure.telemetry import Telemetry
from stepscope.plan.code_digest import Sources, chosen_modules
from stepscope.plan.grid import command_of

EMPTY_GPU_BYTES = 512 * 2**20  # what other programs may hold on a GPU that counts as empty


@dataclass(frozen=True)
class Settings:
    """What does not belong to the spec: the output folder (None: only print) and the time limit in minutes."""

    out: Path | None
    time_limit: float


class Cell(contextlib.AbstractContextManager):
    """Entering takes the device, prepares torch and prints the spec; finish() writes the record.

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
        self.telemetry = Telemetry(gpu.uuid if gpu else None)
        self._used_before = self.telemetry.memory_used() or 0
        self._others_before = self.telemetry.processes()
        import torch

        from stepscope.measure import precision

        if self._device == "cuda" and not torch.cuda.is_available():
            sys.exit("error: --device cuda, but torch finds no usable GPU here; use --device cpu")
        torch.set_num_threads(self.spec["threads"])
        precision.configure(self.spec["precision"])
        if self._device == "cpu":
            process.limit_address_space()
        if self._files:
            self.folder = self._open.enter_context(_growing(self._settings.out))
        printing.configuration(self.spec, self._note)
        return self

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

    def finish(self, columns: list[str], rows: list[dict], summary: dict, versions: dict | None = None) -> None:
        """Write the files, the samples and the record, if a folder was given; `versions` are those of the study's own
        tools."""
        if self._settings.out is None:
            return
        from stepscope.measure import provenance, record

        if self._files:
            _keep(self.folder, self._settings.out / self._files)
        origin = provenance.describe(self._device, self._command, self.telemetry) | provenance.Stopwatch().times()
        origin["versions"] |= versions or {}
        content = {
            "study": self.spec["study"],
            "spec": self.spec,
            "code": self._code,
            "machine": identity.identity(self._device, self._tools),
            "summary": summary,
            "telemetry": self._readings(rows),
            "provenance": origin,
        }
        try:
            record.write(self._settings.out, columns, rows, content)
        except record.WriteError as error:
            sys.exit(f"error: {error}")

    def _readings(self, rows: list[dict]) -> dict:
        """Range of the clock, highest power and temperature, throttling, other processes."""
        clocks = sorted(row["sm_clock_mhz"] for row in rows if row.get("sm_clock_mhz") is not None)
        power = [row["power_w"] for row in rows if row.get("power_w") is not None]
        heat = [row["temperature_c"] for row in rows if row.get("temperature_c") is not None]
        now = self.telemetry.processes()
        others = None if now is None else max(self._others_before or 0, now - 1, 0)
        return {
            "sm_clock_min_mhz": clocks[0] if clocks else None,
            "sm_clock_median_mhz": clocks[len(clocks) // 2] if clocks else None,
            "power_max_w": max(power, default=None),
            "temperature_max_c": max(heat, default=None),
            "throttle": self.telemetry.throttle(),
            "other_processes": others,
        }


@contextlib.contextmanager
def _growing(out: Path | None) -> Iterator[Path]:
    """Where files grow: beside their place, so that they can be renamed; a temporary folder without `out`.

    Ends the program with one line if nothing can be written there.
    """
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".growing.") as folder:
            yield Path(folder)
    except OSError as error:
        sys.exit(f"error: cannot write {error.filename or out}: {error.strerror}")


def _keep(folder: Path, place: Path) -> None:
    """Rename the files to their place, whole; what was there before is replaced."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place, copy_function=os.rename)
