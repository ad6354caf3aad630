"""What no device can do: cells that say so are not used."""

import pandas as pd

from stepscope.results import alone, data_sheets, models
from stepscope.results.cells import MeasuredCell, precision_of

# FLOP/s of a device without a data sheet: several times what these promise of products in 4 bits.
FASTEST = 1e17
# Times a data sheet's peak: FLOP of a model of one's own are counted as if no mask saved any.
_MARGIN = 2


def too_fast(cells: list[MeasuredCell], samples: pd.DataFrame) -> dict[str, str]:
    """Cells with a step that multiplies faster than any device: why."""
    by_name = {cell.name: cell for cell in cells}
    whole = samples[samples["phase"] == samples["mode"].map(alone.WHOLE)]
    least = whole.groupby(["cell", "variant", "mode"])["seconds"].min().reset_index()
    found = {}
    for row in least.to_dict("records"):
        cell, mode, seconds = by_name[row["cell"]], row["mode"], row["seconds"]
        work = models.flop(cell, mode) if cell.record else None
        sheet = data_sheets.peak_for_mfu(
            cell.hardware.get("gpu"), precision_of(cell, row["variant"])
        )
        fastest = _MARGIN * sheet if sheet else FASTEST
        if work and seconds < work / (cell.spec.get("devices", 1) * fastest):
            said = f"{mode} of {seconds:.4g} s is {work / seconds:.4g} FLOP/s"
            found[cell.name] = f"samples.csv is damaged: {said}, which no device reaches"
    return found
