"""Steps of a loop that one does not own, as of a trainer: clock, peak, joules, a trace and a memory
snapshot, written to a folder.

    with stepscope.record("out", steps=20) as recorded:
        for batch in batches:
            ...
            recorded.step()  # where a step ends
"""

import contextlib
import json
import pickle
import statistics
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import torch

from stepscope.machine import gpus
from stepscope.step import phases_seen_by

from . import memory, scratch
from .clock import Clock
from .memory_recorders import recorder
from .telemetry import Telemetry

TRACED = 3  # steps after the timed ones; then one for the snapshot
LEAST_SECONDS = 1.0  # of steps whose energy is read


class Recorded(contextlib.AbstractContextManager):
    """Records the steps of a loop, one after another: `warmup` that are not looked at, `steps`
    timed as the loop runs them, a few in `trace.json.gz`, one in `snapshot.pickle`; later ones run
    as without it.

    out: a folder, which is made. device: "cuda" or "cpu"; by default the GPU, if there is one.
    `steps.json` holds seconds of each step, the peak in bytes, and joules a step. is_done: whether
    all is written. In a loop on several devices one process alone records.
    """

    def __init__(
        self, out: str | Path, steps: int = 20, warmup: int = 5, device: str | None = None
    ):
        for name, value, least in (("steps", steps, 1), ("warmup", warmup, 0)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"record({name}={value!r}): give a whole number from {least} on")
        if device not in (None, "cuda", "cpu"):
            raise ValueError(f"record(device={device!r}): give 'cuda', 'cpu' or nothing")
        self.out = Path(out)
        self.is_done = False
        self._steps = steps
        self._warmup = warmup
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._clock = Clock(self._device)
        self._course = self._recording()

    def __enter__(self) -> "Recorded":
        self.out.mkdir(parents=True, exist_ok=True)
        next(self._course)
        return self

    def step(self) -> None:
        """A step of the loop has ended."""
        next(self._course, None)

    def close(self) -> None:
        """Record no more; a part that is not whole is not written."""
        self._course.close()
        if not self.is_done:
            print(f"stepscope: the loop ended before all was recorded in {self.out}", flush=True)

    def __exit__(self, *error: object) -> None:
        self.close()

    def _recording(self) -> Generator[None, None, None]:
        """Goes on at each step's end."""
        for _ in range(self._warmup):
            yield
        yield from self._timed()
        with scratch.profiler(self._device) as profile, _ranges():
            for _ in range(TRACED):
                with torch.profiler.record_function("step"):
                    yield
            self._clock.synchronize()
        scratch.write_trace(profile, self.out / "trace.json.gz")
        history = recorder(self._device)
        history.start()
        try:
            with _ranges():
                yield
            self._clock.synchronize()
            snapshot, _ = history.stop()
        finally:
            history.abandon()
        with (self.out / "snapshot.pickle").open("wb") as file:
            pickle.dump(snapshot, file)
        self.is_done = True

    def _timed(self) -> Iterator[None]:
        """The steps that are timed; each is waited for."""
        visible = gpus.visible_gpus() if self._device == "cuda" else []
        telemetry = Telemetry(visible[0].uuid if visible else None)
        memory.reset_peaks(self._device)
        self._clock.synchronize()
        joules = telemetry.energy()
        seconds: list[float] = []
        at = time.perf_counter()
        for _ in range(self._steps):
            yield
            self._clock.synchronize()
            now = time.perf_counter()
            seconds.append(now - at)
            at = now
        later = telemetry.energy()
        spent = None
        if joules is not None and later is not None and sum(seconds) >= LEAST_SECONDS:
            spent = (later - joules) / self._steps
        told = {
            "device": self._device,
            "torch": torch.__version__,
            "seconds": seconds,
            "median": statistics.median(seconds),
            "peaks": memory.peaks(self._device),
            "joules": spent,
        }
        (self.out / "steps.json").write_text(json.dumps(told, indent=1))
        telemetry.close()


def _ranges() -> contextlib.AbstractContextManager:
    """Within it a phase is a range of torch.profiler, which snapshots of a GPU show, too."""
    return phases_seen_by(torch.profiler.record_function)
