"""What no device can do: cells that say so are not used."""

import pandas as pd

from stepscope.results import alone, models
from stepscope.results.cells import MeasuredCell

# FLOP/s of a device: several times what data sheets promise of products in 4 bits. A measured
# ceiling judges closer, where there is one.
FASTEST = 1e17


def too_fast(cells: list[MeasuredCell], samples: pd.DataFrame) -> dict[str, str]:
    """Cells with a step that multiplies faster than any device: why."""
    if samples.empty or "mode" not in samples:  # of ceilings alone
        return {}
    by_name = {cell.name: cell for cell in cells}
    whole = samples[samples["phase"].astype(str) == samples["mode"].astype(str).map(alone.WHOLE)]
    least = whole.groupby(["cell", "mode"], observed=True)["seconds"].min()
    found = {}
    for (name, mode), seconds in least.items():
        work = models.flop(by_name[name], str(mode)) if by_name[name].record else None
        devices = by_name[name].spec.get("devices", 1)
        if work and seconds < work / (devices * FASTEST):
            said = f"{mode} of {seconds:.4g} s is {work / seconds:.4g} FLOP/s"
            found[name] = f"samples.csv is damaged: {said}, which no device reaches"
    return found
