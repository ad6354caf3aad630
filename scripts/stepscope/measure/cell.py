"""The frame of a measuring program: alone on the device, within its limits, results written as a
record.

Imports torch only once the device is ours, so that a waiting program does not disturb the one that
measures.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from stepscope import files
from stepscope.config import own_models
from stepscope.config.code_digest import Sources, modules_of, packages_of
from stepscope.config.flags import Settings
from stepscope.config.grid import command_of
from stepscope.machine import gpus, identity, locks, process

from . import own_cell, printing, processes, record, scratch
from .found import BESIDE, Found, rows_of, summary
from .telemetry import Telemetry

Measure = Callable[[dict, Telemetry, int], Found]  # of a spec, in the process of a number
EMPTY_GPU_BYTES = 512 * 2**20  # what other programs may hold on a GPU that counts as empty


class Measurement(contextlib.AbstractContextManager):
    """Entering takes the device and prints the spec; finish() writes the record.

    Measuring is done in fresh processes by in_processes(), so that this one never touches the
    device; or, without `processes` in the spec, in this one.

    `tools` are the programs that it uses. `files` is the name of the folder of files that the
    program makes besides its record; it puts them into `self.folder`. Ends the program with one
    line and exit code 1 where the device cannot be had or the results cannot be written.
    """

    def __init__(
        self,
        program: str,
        spec: dict,
        settings: Settings,
        tools: tuple[str, ...] = (),
        files: str | None = None,
    ):
        self.spec = spec
        self._settings = settings
        self._files = files
        self._command = command_of(program, spec)
        self._device = spec["device"]
        # Of the files as they are now, not as they may be when the measurement ends.
        code = Sources().digest(program, modules_of(spec), measured=True)
        with own_cell.or_one_line():
            self._packages = (*packages_of(spec), *own_models.packages_of(spec))
            self._code = own_models.with_files(code, spec)
        self._tools = tools
        self._versions = {name: identity.package_version(name) for name in self._packages}
        self._open = contextlib.ExitStack()
        self._more: dict = {}  # parts of the summary, whatever the study

    def __enter__(self) -> "Measurement":
        with self._open as opened:  # if anything fails it is closed
            self._enter()
            self._open = opened.pop_all()
        return self

    def _enter(self) -> None:
        process.die_with_parent()
        process.adopt_orphans()
        others = process.children()
        visible = [] if self._device == "cpu" else gpus.visible_gpus()
        self._gpu = visible[0].uuid if visible else None
        device = self._gpu or "cpu"
        self._open.push(_end_at_once)  # the last
        self._open.enter_context(own_cell.or_one_line())
        self._open.enter_context(locks.hold(device))
        # For programs that measure under this one's lock.
        self.environment_of_helpers = {locks.HELD: device}
        process.limit_time(self._settings.time_limit)
        process.set_environment(self.spec["threads"])
        before = Telemetry(self._gpu)
        self._used_before = before.memory_used() or 0
        self._others_before = before.processes() or 0
        before.close()
        # Before processes are forked: it takes seconds.
        import torch

        if self._device == "cpu" and "variants" in self.spec:  # some are compiled
            import torch._inductor.compile_fx  # noqa: F401
        growing = self._open.enter_context(_growing(self._settings.out))
        self.folder = growing / "files"
        beside = growing / "scratch"
        self.folder.mkdir()
        beside.mkdir()
        os.environ[scratch.PLACE] = str(beside)
        self._open.callback(os.environ.pop, scratch.PLACE)
        self._open.callback(process.end_children, others)
        printing.configuration(self.spec)
        self._seen: list[dict] = []
        if "processes" not in self.spec:
            self._prepare()
        self._more |= own_cell.look_at(self.spec)

    def _prepare(self) -> None:
        """Make the process that measures ready for it."""
        import torch

        from . import precision

        self.telemetry = Telemetry(self._gpu)
        if self._device == "cuda" and not torch.cuda.is_available():
            sys.exit("error: --device cuda, but torch finds no usable GPU here; use --device cpu")
        torch.set_num_threads(self.spec["threads"])
        precision.configure(self.spec.get("precision", "fp32"))
        if self._device == "cpu":
            process.limit_address_space()
            process.keep_memory()

    def in_processes(self, measure: Measure) -> list[Found]:
        """What `measure`, called with the spec, the telemetry and the process's number from 1,
        finds in each of the spec's processes. Where nothing ran in one, no other is tried."""
        found = []
        for one, seen in processes.each(self.spec["processes"], partial(self._one, measure)):
            found.append(one)
            self._seen.append(seen)
            if not one.is_ok():
                break
        return found

    def _one(self, measure: Measure, number: int) -> tuple[Found, dict]:
        """What one process found, and what it saw of the machine."""
        print(f"process {number} of {self.spec['processes']}", flush=True)
        self._prepare()
        with own_cell.or_one_line():
            found = measure(self.spec, self.telemetry, number)
        for one in found.statuses:
            if one["mode"] not in BESIDE:
                self.check_memory(one["status"])
        return found, self._sight()

    def __exit__(self, kind, error, trace) -> bool | None:
        return self._open.__exit__(kind, error, trace)

    def check_memory(self, status: str) -> None:
        """Running out of memory on a GPU that others had filled is a failure: end with one line."""
        if status == "oom" and self._used_before > EMPTY_GPU_BYTES:
            sys.exit(
                f"error: out of memory, but {self._used_before / 2**30:.1f} GiB of the GPU were"
                " taken before this program started; free the GPU and run again"
            )

    def _sight(self) -> dict:
        """What the process that measured saw: versions and settings, throttling, other processes on
        the GPU."""
        from . import provenance

        now = self.telemetry.processes()
        return {
            "origin": provenance.describe(self._device, self._command, self.telemetry),
            "throttle": self.telemetry.throttle(),
            "others": None if now is None else max(self._others_before, now - 1),
        }

    def finish(self, found: list[Found], more: dict | None = None) -> None:
        """Print what was found, and write files, samples and record, if a folder was given. `more`:
        the study's own parts of the summary."""
        from . import provenance

        rows = rows_of(found)
        content = summary(found) | (more or {}) | self._more
        printing.summary(rows, content)
        if self._settings.out is None:
            return
        if self._files:
            place = self._settings.out / self._files
            shutil.rmtree(place, ignore_errors=True)
            self.folder.rename(place)
        seen = self._seen or [self._sight()]
        origin = seen[0]["origin"] | provenance.times()
        origin["versions"] |= self._versions
        parts = {
            "study": self.spec["study"],
            "spec": self.spec,
            "code": self._code,
            "machine": identity.identity(self._device, self._tools, self._packages),
            "summary": content,
            "telemetry": _readings(rows, seen),
            "provenance": origin,
        }
        with files.or_one_line(self._settings.out):
            record.write(self._settings.out, rows, parts)


def _end_at_once(_kind, error: BaseException | None, _trace) -> None:
    """Where a program is interrupted, or fails while there are threads that Python would wait
    for."""
    is_interrupted = isinstance(error, KeyboardInterrupt)
    if is_interrupted or (error and process.has_other_threads()):
        process.end_at_once(error)


def _readings(rows: list[dict], seen: list[dict]) -> dict:
    """The clock, highest power and temperature, throttling, other processes."""

    def read(name: str) -> list[float]:
        return sorted(row[name] for row in rows if row.get(name) is not None)

    clocks = read("sm_clock_mhz")
    reasons = [reason for one in seen for reason in one["throttle"]]
    others = [one["others"] for one in seen if one["others"] is not None]
    return {
        "sm_clock_median_mhz": clocks[len(clocks) // 2] if clocks else None,
        "power_max_w": max(read("power_w"), default=None),
        "temperature_max_c": max(read("temperature_c"), default=None),
        "throttle": list(dict.fromkeys(reasons)),
        "other_processes": max(others, default=None),
    }


@contextlib.contextmanager
def _growing(out: Path | None) -> Iterator[Path]:
    """Where files grow: beside their place, so that they can be renamed; a temporary folder without
    `out`. What a killed program has left there goes.

    Ends the program with one line if nothing can be written there, then or later.
    """
    with files.or_one_line(out):
        if out is None:
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder)
            return
        # with the rights of all that is made: another user of the group may have to remove it
        out.mkdir(parents=True, exist_ok=True)
        growing = out / ".growing"
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir()
        try:
            yield growing
        finally:
            shutil.rmtree(growing, ignore_errors=True)
            with contextlib.suppress(OSError):  # what holds results is not empty
                out.rmdir()
