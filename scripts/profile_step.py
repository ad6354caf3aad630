"""Profile a few training steps of a Transformer: one cell, recorded by Nsight Systems or
torch.profiler.

Warm-up steps come first, outside the recording. With --profiler nsys the program starts itself
again behind `nsys profile`; with none it only opens the capture range and the NVTX ranges, so that
any profiler can be put in front of it by hand. It prints the phases' times by the host's clock,
taken in the same profiled steps, in milliseconds. With --out it also writes record.json,
samples.csv and the trace; `analyze_nsys.py` makes tables of the trace.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import shutil
import sys
from pathlib import Path

from stepscope.axes import option
from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.config.profilers import tools
from stepscope.machine import identity, process
from stepscope.measure import nsys
from stepscope.measure.cell import Measurement


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    device = spec["device"]
    with Measurement(
        studies.PROFILE.file, spec, settings, tools=tools(device), files="trace"
    ) as running:
        from stepscope.measure import profiled_steps
        from stepscope.measure.found import Found, Outcome
        from stepscope.measure.workload import unsupported

        tool, first = _tool(spec), None
        reason = unsupported(spec) or (nsys.missing(device) if tool == "nsys" else None)
        trace: dict[str, str | None] = {"profiler": tool, "version": None, "file": None}
        if reason:
            found = Found()
            refused = Outcome("unsupported", reason)
            found.status(profiled_steps.NAME, refused, mode=option(spec, "mode"))
        elif tool == "nsys":
            program = Path(__file__).resolve()
            found = nsys.record(
                spec, program, running.folder, running.environment_of_helpers, trace
            )
        else:
            path = running.folder / "trace.json.gz"
            profiler = profiled_steps.capture_range(device)
            if tool == "torch":
                profiler = profiled_steps.torch_profiler(device, path)
            found, first = profiled_steps.measure(spec, running.telemetry, profiler)
            if path.is_file():
                trace |= {"version": identity.torch_version(), "file": path.name}
        for one in found.statuses:
            running.check_memory(one["status"])
        for part in first["parts"] if first else []:
            of_first, steady = 1000 * part["first_seconds"], 1000 * part["steady_seconds"]
            print(f"{part['part']:<28}{of_first:>12,.1f} ms{steady:>12,.1f} ms")
        more = {"trace": trace} | ({"first": first} if first else {})
        running.finish([found], more)


def _tool(spec: dict) -> str:
    """The profiler that `auto` stands for here, or the one that was asked for. The first step of a
    process is seen by torch.profiler alone."""
    if spec["profiler"] != "auto":
        return spec["profiler"]
    if spec.get("start") == "cold":
        return "torch"
    return "nsys" if spec["device"] == "cuda" and shutil.which("nsys") else "torch"


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    keys = (*flags.MODEL, *flags.OPTIONS, *flags.FIXED, "profiler", "start", *flags.NSYS)
    spec, settings, error = flags.read(__doc__, words, studies.PROFILE, keys, warmup=5, steps=5)
    if "start" in spec and spec["profiler"] not in ("auto", "torch"):
        error(f"--start cold needs torch.profiler; leave out --profiler {spec['profiler']}")
    return spec, settings


if __name__ == "__main__":
    main()
    process.leave()
