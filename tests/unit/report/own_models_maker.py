"""Made-up rows of models of one's own, beside those of sizes."""

from pathlib import Path

import page_one_maker as made
import pandas as pd
import synthetic_profile
from stepscope.tables.models import TABLE
from stepscope.tables.reader import Tables

SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
MODEL = "models/mine.py:build"
PARAMETERS = 216


def size_row(size="s", context=128, step=20.0, precision="fp32", **more) -> dict:
    """The timing study's row of a size: synthetic_profile.SHAPE, batch 4."""
    name = f"gpu/timing/{size}/ctx{context}/{precision}"
    return made.timed(
        synthetic_profile.cell(precision), step, **({"size": size, "context": context, "cell": name} | more)
    )


def own_row(size="mine", context=128, step=20.0, flop=1e9, **more) -> dict:
    """The same of a model of one's own; flop: of a step."""
    nothing = dict.fromkeys(SHAPE)
    own = {"model": MODEL, "model_flop": flop, "parameters": PARAMETERS}
    return size_row(size, context, step, **(nothing | own | more))


def about(size="mine", context=128, **more) -> dict:
    """A row of models.csv."""
    row = {"cell": f"gpu/timing/{size}/ctx{context}/fp32", "hardware": "gpu", "size": size, "context": context}
    row |= {"batch": 4, "model": MODEL, "keys": '{"layers": 2}', "class": "Stack", "parameters": PARAMETERS}
    row |= {
        "trainable": PARAMETERS,
        "inputs": "token ids of 11",
        "loss": "cross-entropy",
        "vocab_size": 11,
        "blocks": 2,
    }
    row |= {"block_class": "Linear", "block_path": "layers", "ranges_by": "hooks", "ranges": "block, FFN"}
    row |= {"flops_counter": 1e9, "flops_formula": 1e9, "flops_disagree": False, "flops_from": "counter"}
    return row | more


def write(folder: Path, timing=(), models=(), **more) -> Tables:
    """The tables as CSV files."""
    tables = made.write(folder, timing=timing, **more)
    if models:
        pd.DataFrame(list(models), columns=TABLE.columns).to_csv(folder / "models.csv", index=False)
    return tables


def as_own(frames: dict[str, pd.DataFrame], sizes: set[str]) -> None:
    """Make models of one's own of these sizes of the timing study; all of them where none is named."""
    timing = frames["timing"]
    own = timing["size"].isin(sizes) if sizes else timing["size"].notna()
    timing["model"] = own.map({True: MODEL, False: None})
    timing["model_flop"] = (timing["step_tflops"] * timing["step_median_ms"] * 1e9).where(own)
    timing.loc[own, list(SHAPE)] = None
    rates = [name for name in ("inference_tflops", "forward_tflops") if name in timing]
    timing.loc[own, rates] = None
