"""Probe what formats of 16 and 8 bits do to numbers: added up, under autocast, in
normalisations.

--probe accumulation adds 0.01 a thousand times in fp32, fp16, bf16 and mixtures of them. --probe
autocast prints the dtypes of parameters, activations and gradients of a toy model and of a
Transformer under fp16 and bf16 autocast. --probe normalisation prints which operators of LayerNorm,
RMSNorm and softmax autocast runs in fp32, and what comes out where they are forced into 16 bits,
against float64. Nothing is timed. With --out it also writes record.json and samples.csv.
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
            memory,
            precision_accumulation,
            precision_autocast,
            precision_normalisation,
        )
        from stepscope.measure.found import Found, Outcome

        probes = {
            "accumulation": precision_accumulation.measure,
            "autocast": precision_autocast.measure,
            "normalisation": precision_normalisation.measure,
        }
        try:
            tables = probes[spec["probe"]](spec)
        except Exception as error:
            if not memory.is_out_of_memory(error):
                raise
            sys.exit(
                f"error: {memory.reason(error)}; look at a smaller size, or fewer tokens (config"
                " key precision)"
            )
        rows = [row for table in tables.values() for row in table]
        for table in tables.values():
            _say(table)
        found, probe = Found(), spec["probe"]
        if all(row.get("status") == "unsupported" for row in rows):
            found.status(probe, Outcome("unsupported", rows[0]["reason"]))
        else:
            found.status(probe)
        running.finish([found], [probe], {"tables": tables})


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
    model = tuple(
        key
        for key in flags.MODEL
        if key not in ("model", "model_keys", "step", "step_keys", "key_value_heads", "window")
    )
    is_of_model = any(word.removeprefix("--probe=") == "autocast" for word in words)
    keys = ("probe", "precision", *(model if is_of_model else ()))
    spec, settings, error = flags.read(__doc__, words, studies.PRECISION, keys, context=64, batch=2)
    if spec["precision"] != "fp32":
        error("--precision is that of what is not under autocast; use fp32")
    return spec, settings


if __name__ == "__main__":
    main()
    process.leave()
