"""What no device can do: cells that say so are not used."""

import pandas as pd

from stepscope.results import alone, models
from stepscope.results.cells import MeasuredCell

# FLOP/s of a device: several times what data sheets promise of products in 4 bits. A measured
# ceiling judges closer, where there is one.
FASTEST = 1e17


def too_fast(cells: list[MeasuredCell], samples: pd.DataFrame) -> dict[str, str]:
    """Cells with a step that multiplies faster than any device: why."""
    by_name = {cell.name: cell for cell in cells}
    whole = samples[samples["phase"] == samples["mode"].map(alone.WHOLE)]
    least = whole.groupby(["cell", "mode"])["seconds"].min().reset_index()
    found = {}
    for row in least.to_dict("records"):
        cell, mode, seconds = by_name[row["cell"]], row["mode"], row["seconds"]
        work = models.flop(cell, mode) if cell.record else None
        if work and seconds < work / (cell.spec.get("devices", 1) * FASTEST):
            said = f"{mode} of {seconds:.4g} s is {work / seconds:.4g} FLOP/s"
            found[cell.name] = f"samples.csv is damaged: {said}, which no device reaches"
    return found
