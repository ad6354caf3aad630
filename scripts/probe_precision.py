"""Probe what formats of 16 bits do to numbers: added up, under autocast, in normalisations.

--probe accumulation adds 0.01 a thousand times in fp32, fp16, bf16 and mixtures of them. --probe
autocast prints the dtypes of a toy model's parameters, activations and gradients under fp16 and
bf16 autocast. --probe normalisation prints what comes out where LayerNorm, RMSNorm, softmax and
cross-entropy are forced into 16 bits, against float64. Nothing is timed. With --out it also writes
record.json and samples.csv.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import itertools
import sys

from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.measure.cell import Measurement


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    with Measurement(studies.PRECISION.file, spec, settings) as running:
        from stepscope.measure import (
            precision_accumulation,
            precision_autocast,
            precision_normalisation,
        )
        from stepscope.measure.found import Found

        probes = {
            "accumulation": precision_accumulation.measure,
            "autocast": precision_autocast.measure,
            "normalisation": precision_normalisation.measure,
        }
        tables = probes[spec["probe"]](spec)
        for table in tables.values():
            _say(table)
        found = Found()
        found.status(spec["probe"])
        running.finish([found], {"tables": tables})


def _say(table: list[dict]) -> None:
    """Print a table's rows under one heading, columns as wide as they need."""
    columns = list(dict.fromkeys(itertools.chain(*table)))
    lines = [columns, *([_short(row.get(key)) for key in columns] for row in table)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
    print(flush=True)


def _short(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    keys = ("probe", "precision")
    spec, settings, error = flags.read(__doc__, words, studies.PRECISION, keys)
    if spec["precision"] != "fp32":
        error("--precision is that of what is not under autocast; use fp32")
    return spec, settings


if __name__ == "__main__":
    main()
    process.leave()
