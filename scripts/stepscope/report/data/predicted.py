"""What a step of a timing row has to take at the least, by closed forms and the rates that were measured beside it."""

from stepscope.model.traffic import OPTIMIZER_BYTES
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.machines import bandwidth
from stepscope.report.data.profile_parts import product_flops
from stepscope.report.kit.formatting import known
from stepscope.tables.reader import Tables


def products_ms(tables: Tables, row: dict, phase: str = "step") -> float | None:
    """Milliseconds of a phase's matrix products at the measured rate of a large one in the row's precision."""
    flop, rate = product_flops(row, phase), matmul_ceiling(tables["ceilings"], row["hardware"], row["precision"])
    return flop / rate / 1e9 if flop and rate else None


def optimizer_ms(tables: Tables, row: dict, bytes_each: int = OPTIMIZER_BYTES) -> float | None:
    """Milliseconds of AdamW at the measured rate of a large copy; if it moves each of its bytes once, unless told."""
    parameters, rate = row.get("parameters"), bandwidth(tables, row["hardware"], "measured")
    return (
        bytes_each * parameters / rate / 1e6 if known(parameters) and rate else None
    )  # GB/s are 1e6 bytes a millisecond
