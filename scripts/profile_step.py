"""Profile a few training steps of a Transformer: one cell, recorded by Nsight Systems or torch.profiler.

Warm-up steps come first, outside the recording. With --profiler nsys the program starts itself again behind
`nsys profile`; with none it only opens the capture range and the NVTX ranges, so that any profiler can be put in front
of it by hand. It prints the phases' times by the host's clock, taken in the same profiled steps, in milliseconds. With
--out it also writes record.json, samples.csv and the trace; `analyze_nsys.py` makes tables of the trace.
"""

import contextlib
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stepscope.measure import arguments, cell, cell_arguments, nsys, printing, process, record
from stepscope.model.chosen import CHOSEN_BY_NAME
from stepscope.model.shape import ModelShape
from stepscope.plan import machine
from stepscope.plan.axes import NEUTRAL
from stepscope.plan.grid import command_of, flags_of
from stepscope.plan.profilers import NSYS_NEUTRAL, tools
from stepscope.trace import TraceError, nsys_export

PROGRAM = "profile_step.py"
COLUMNS = [
    "mode",
    "kind",
    "step",
    "phase",
    "warmup",
    "seconds",
    "event_seconds",
    "sm_clock_mhz",
    "power_w",
    "temperature_c",
]
NSYS_FLAGS = [f"nsys_{key}" for key in NSYS_NEUTRAL]


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    shape = ModelShape(spec["d_model"], spec["d_ff"], spec["num_layers"], spec["num_heads"], spec["vocab_size"])
    chosen = {option: spec.get(option, NEUTRAL[option]) for option in CHOSEN_BY_NAME}
    device, command = spec["device"], command_of(PROGRAM, spec)
    with cell.Cell(PROGRAM, spec, settings, command, chosen, tools(device)) as running, _folder(settings.out) as folder:
        printing.configuration(spec, f"parameters: {shape.parameters / 1e6:,.3f} M")
        from stepscope.measure import profiled_steps, profilers, steps

        tool = _tool(spec)
        reason = running.unsupported() or _missing(tool, device)
        trace = {"profiler": tool, "version": None, "file": None, "attempts": []}
        if reason:
            outcome = steps.Outcome(spec.get("mode", NEUTRAL["mode"]), "unsupported", reason)
            rows, summary = [], steps.summary([outcome])
        elif tool == "nsys":
            rows, summary = _under_nsys(spec, folder, running.environment_of_helpers, trace)
        else:
            path = folder / "trace.json.gz"
            profiler = profilers.TorchProfiler(device, path) if tool == "torch" else profilers.Profiler(device)
            outcome = profiled_steps.measure(spec, running.telemetry, profiler)
            rows, summary = outcome.rows, steps.summary([outcome])
            if path.is_file():
                trace |= {"version": machine.torch_version(), "file": path.name}
        for mode, found in summary["modes"].items():
            running.check_memory(found["status"])
            if found["status"] != "ok":
                print(f"{mode}: {found['status']}: {found['reason']}")
        if summary["phases"]:
            printing.series_header()
        for entry in summary["phases"]:
            printing.series(entry["mode"], entry["kind"], entry["phase"], entry)
        _keep(folder, settings.out)
        running.finish(COLUMNS, rows, summary | {"trace": trace}, {tool: trace["version"]} if tool == "nsys" else None)


def _tool(spec: dict) -> str:
    """The profiler that `auto` stands for here, or the one that was asked for."""
    if spec["profiler"] != "auto":
        return spec["profiler"]
    return "nsys" if spec["device"] == "cuda" and shutil.which("nsys") else "torch"


def _missing(tool: str, device: str) -> str | None:
    """Why this tool cannot be had here; None if it can."""
    if tool != "nsys":
        return None
    if device == "cpu":
        return "nsys records the work of a GPU; on a CPU use --profiler torch"
    return None if shutil.which("nsys") else "nsys is not on the PATH; install Nsight Systems, or use --profiler torch"


@contextlib.contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Where the trace grows: beside its place, so that it can be renamed, or in a temporary folder without --out."""
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".trace.") as folder:
            yield Path(folder)
    except OSError as error:
        sys.exit(f"error: cannot write {error.filename or out}: {error.strerror}")


def _keep(folder: Path, out: Path | None) -> None:
    """Rename the trace's folder to its place; what was there before is replaced."""
    if out is None:
        return
    shutil.rmtree(out / "trace", ignore_errors=True)
    shutil.copytree(folder, out / "trace", copy_function=os.rename)


def _under_nsys(spec: dict, folder: Path, environment: dict[str, str], trace: dict) -> tuple[list[dict], dict]:
    """Run this program behind nsys until there are kernels in the capture; (rows, summary) of the run that counted.

    Fills in `trace`. An empty capture, with which some pairs of driver and nsys end without an error, is tried again
    in the known ways; if none helps, the mode is `unsupported`. Ends the program if the measured program failed.
    """
    mode = spec.get("mode", NEUTRAL["mode"])
    trace["version"] = machine.tool_version("nsys")
    plain = {key: value for key, value in spec.items() if key not in NSYS_FLAGS}
    with tempfile.TemporaryDirectory() as scratch:
        inner = [sys.executable, str(Path(__file__).resolve())]
        inner += [*flags_of(plain | {"profiler": "none"}).split(), "--out", scratch]
        for name, chosen in nsys.attempts(spec):
            report = folder / "trace.nsys-rep"
            words = nsys.command(shutil.which("nsys"), chosen, report.with_suffix(""), inner)
            code, said = nsys.run(words, environment, process.die_with_parent)
            written = (Path(scratch) / "record.json").is_file()
            if code and written:  # the program ended well, nsys did not
                trace["attempts"].append({"tried": name, "gave": said[:200]})
                continue
            if code or not written:
                sys.exit(f"error: the profiled program failed (exit code {code}): {said}")
            rows, inner_record = record.read(Path(scratch))
            summary = inner_record["summary"]
            if summary["modes"][mode]["status"] != "ok":
                report.unlink(missing_ok=True)
                return rows, summary
            gave = _captured(report, folder / "trace.sqlite")
            trace["attempts"].append({"tried": name, "gave": gave or "kernels"})
            if gave is None:
                trace |= {"file": "trace.sqlite", "options": " ".join(f"--{k}={v}" for k, v in chosen.items())}
                return rows, summary
            print(f"nsys, {name}: {gave}", flush=True)
    tried = "; ".join(f"{attempt['tried']}: {attempt['gave']}" for attempt in trace["attempts"])
    for path in folder.iterdir():
        path.unlink()
    reason = f"{trace['version']} recorded no kernels here ({tried}); use --profiler torch"
    summary["modes"][mode] |= {"status": "unsupported", "reason": reason}
    summary["phases"] = []
    return [], summary


def _captured(report: Path, path: Path) -> str | None:
    """Export the report; what is wrong with it, None if there are kernels in it."""
    if not report.is_file():
        return "no report"
    try:
        nsys_export.export(report, path)
    except TraceError as error:
        return str(error).removeprefix(f"{report}: ")[:200]
    with contextlib.closing(sqlite3.connect(path)) as database:
        try:
            count = database.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
        except sqlite3.Error:
            count = 0
    return None if count else "an empty capture"


def parse(words: list[str]) -> tuple[dict, cell.Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what is no part of it."""
    flags = arguments.parser(__doc__)
    cell_arguments.add_cell(flags)
    arguments.add_running(flags, fixed_steps=True)
    group = flags.add_argument_group("profiler")
    group.add_argument(
        "--profiler",
        choices=["auto", "nsys", "torch", "none"],
        default="auto",
        help="auto: nsys on a GPU if it is on the PATH, else torch.profiler",
    )
    group.add_argument("--nsys-trace", default="cuda,nvtx", help="what nsys traces; also osrt, cublas, cudnn")
    group.add_argument("--nsys-python-backtrace", choices=["none", "cuda"], default="none", help="Python's stack")
    group.add_argument(
        "--nsys-pytorch",
        choices=["none", "autograd-nvtx", "autograd-shapes-nvtx"],
        default="none",
        help="ranges of autograd's operators",
    )
    group.add_argument("--nsys-cuda-memory-usage", choices=["false", "true"], default="false", help="the GPU's memory")
    group.add_argument("--nsys-cuda-graph-trace", choices=["node", "graph"], default="node", help="CUDA graphs")
    given = flags.parse_args(words)
    cell_arguments.resolve_shape(given, flags)
    arguments.resolve_running(given, flags)
    spec = cell_arguments.cell_spec("profile", given, flags, ["warmup", "steps", "profiler"])
    spec |= {name: getattr(given, name) for name in NSYS_FLAGS if getattr(given, name) != flags.get_default(name)}
    return spec, cell.Settings(out=given.out, time_limit=given.time_limit)


if __name__ == "__main__":
    main()
