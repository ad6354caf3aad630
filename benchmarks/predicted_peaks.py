"""Predicted peaks of memory beside those that records hold, cell by cell, and the median error of
each kind.

python benchmarks/predicted_peaks.py [ARCHIVE ...]     without one: the committed records

Held against the prediction is what tensors asked for. cuBLAS' workspaces are counted where a
variant is the first of its process to multiply; later ones find them there, and a record subtracts
what was there. Left out are variants whose record holds less before the optimizer than weights,
gradients and state are: what their process subtracted was freed later.

What the allocator reserved of whole steps is told as a multiple of the prediction: of what ran
first in its process, as all others found pieces of memory there. Told apart are strategies that
share out, which use memory on two streams, steps that are replayed from CUDA graphs, which allocate
in pools of their own, of which `asked` counts nothing, and those in fp8; of these kinds later
variants count, too.
"""

import argparse
import csv
import io
import json
import statistics
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from stepscope.axes import PLAIN_STEP  # noqa: E402
from stepscope.formulas.footprint import Setup  # noqa: E402
from stepscope.formulas.footprint_peak import peak  # noqa: E402
from stepscope.model.shape import ModelShape  # noqa: E402

COMMITTED = (
    "report/example/h200/cells.zip",
    "report/reference/today-h100.zip",
    "report/example/devices/cells.zip",
    "tests/data/devices_h100.zip",  # memory alone, of the same cells on two H100s
    "report/reference/h100.zip",
    "tests/data/h100_smoke.zip",
    "tests/data/cpu_default.zip",
)
WORKSPACE = 32 * 2**20  # of cuBLAS on a Hopper GPU, for each thread that multiplies
# Flags of setups whose memory is reserved otherwise, the first that one has.
OTHERS = ("graphs", "flat", "fp8", "shards-state")
# Strategies of the parallel study that hold what others do.
STRATEGIES = {
    "alone": "alone",
    "naive": "alone",
    "flat": "flat",
    "overlapped": "alone",
    "staged": "alone",
    "sharded": "sharded",
    "ddp": "ddp",
    "zero": "zero-1",
    "fsdp": "fsdp",
}
STUDIES = ("memory", "ladder", "parallel", "profile", "timing")
RESERVED = "reserved"  # the kinds of which begin so
OPTIONS = ("precision", "attention", "optimizer", "loss", "compile", "checkpoint")


@dataclass(frozen=True)
class Row:
    """A variant's peak, bytes. kind: what it is told apart by."""

    kind: str
    cell: str
    variant: str
    mode: str
    measured: float
    predicted: int

    @property
    def error(self) -> float:
        """Relative to what was measured."""
        return self.predicted / self.measured - 1


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("archives", nargs="*", type=Path, help="zip files of results")
    given = flags.parse_args()
    archives = given.archives or [ROOT / name for name in COMMITTED]
    found = [row for archive in archives for row in rows(archive)]
    for row in found:
        print(
            f"{row.kind:18} {row.cell[:52]:52} {row.variant[:16]:16} {row.mode:9}"
            f" {row.measured / 2**30:8.3f} {row.predicted / 2**30:8.3f} GiB {row.error:+8.3%}"
        )
    for kind, errors in by_kind(found).items():
        if kind.startswith(RESERVED):
            told = "{:.3f} to {:.3f} times the prediction, median {:.3f}".format(*multiples(errors))
        else:
            sizes = [abs(error) for error in errors]
            told = f"error: median {statistics.median(sizes):.3%}, at most {max(sizes):.2%}"
        print(f"{kind:18} {len(errors):4} peaks, {told}")


def by_kind(found: list[Row]) -> dict[str, list[float]]:
    """Kind -> its errors."""
    errors: dict[str, list[float]] = {}
    for row in found:
        errors.setdefault(row.kind, []).append(row.error)
    return errors


def multiples(errors: list[float]) -> tuple[float, float, float]:
    """What was measured over what was predicted: the least, the most and the middle."""
    found = [1 / (1 + error) for error in errors]
    return min(found), max(found), statistics.median(found)


def rows(archive: Path) -> Iterator[Row]:
    """Those of all cells in a zip file that have a closed form."""
    with zipfile.ZipFile(archive) as files:
        for name in sorted(files.namelist()):
            if not name.endswith("record.json"):
                continue
            record = json.loads(files.read(name))
            spec = record.get("spec", {})
            if record["study"] in STUDIES and "d_model" in spec:
                yield from _of_cell(name.removesuffix("/record.json"), record, files)


def _of_cell(cell: str, record: dict, files: zipfile.ZipFile) -> Iterator[Row]:
    spec = record["spec"]
    variants = spec.get("variants", [{"name": "step"}])
    if spec["device"] == "cpu":
        yield from _of_cpu(cell, spec, files)
        return
    for at, variant in enumerate(variants):
        options = spec | variant
        setup = setup_of(options)
        if setup is None or _is_impossible(record, variant["name"]):
            continue
        is_replayed = options.get("compile") == "graphs"
        name = variant["name"]
        for mode, measured in _peaks(record, name, "peak_asked").items():
            threads = 1 if options.get("mode") == "inference" else 2
            size = peak(setup, mode, 0 if at else threads * WORKSPACE).bytes
            if not is_replayed:
                yield Row(kind_of(options), cell, name, mode, measured, size)
        for mode, measured in _peaks(record, name, "peak_reserved").items():
            size = peak(setup, mode, 2 * WORKSPACE).bytes
            of_others = [flag for flag in OTHERS if flag in setup.flags]
            is_first = at == 0 and record["study"] != "parallel"  # where others ran before
            if mode == "step" and (is_first or of_others):
                kind = ", ".join([RESERVED, *of_others[:1]])
                yield Row(kind, cell, name, mode, measured, size)


def _peaks(record: dict, variant: str, quantity: str) -> dict[str, float]:
    """Mode -> the peak in the first process, whose first variant is the spec's."""
    found: dict[str, float] = {}
    for value in record["summary"]["values"]:
        if (value["variant"], value["quantity"]) == (variant, quantity):
            found.setdefault(value["mode"], value["value"])
    return found


def _of_cpu(cell: str, spec: dict, files: zipfile.ZipFile) -> Iterator[Row]:
    """A CPU's peak is that of PyTorch's memory events, in the cell's analysis."""
    name = f"{cell}/analysis/memory_summary.csv"
    setup = setup_of(spec)
    if name not in files.namelist() or setup is None:
        return
    (row,) = csv.DictReader(io.StringIO(files.read(name).decode()))
    mode = str(spec.get("mode", "step"))
    yield Row("uncompiled", cell, "step", mode, float(row["peak"]), peak(setup, mode).bytes)


def setup_of(options: dict) -> Setup | None:
    """None where the closed form does not know the strategy, fp8 that is not compiled, or fp8 with
    a scale a row."""
    strategy = STRATEGIES.get(options.get("strategy", "alone"))
    values = {name: options.get(name, PLAIN_STEP.get(name)) for name in OPTIONS}
    values = {name: value for name, value in values.items() if value is not None}
    unknown = {"fp8_rowwise"} | ({"fp8"} if "compile" not in options else set())
    if strategy is None or values["precision"] in unknown:
        return None
    devices = options.get("devices", 1)
    shape = ModelShape.of(options)
    batch, context = options["batch"], options["context"]
    return Setup(shape, batch, context, **values, strategy=strategy, devices=devices)


def kind_of(options: dict) -> str:
    if options.get("strategy", "alone") != "alone":
        return "sharded"
    return "compiled" if options.get("compile", "none") != "none" else "uncompiled"


def _is_impossible(record: dict, variant: str) -> bool:
    held = record["summary"].get("tables", {}).get("memory", [])
    return any(
        row["variant"] == variant and row["held"] < row["formula"] and row["point"] != "init"
        for row in held
    )


if __name__ == "__main__":
    main()
