"""What the tables of all studies that run the model have in common."""

from stepscope.axes import NEUTRAL
from stepscope.measure.series import TRAINING_COLUMNS
from stepscope.model.shape import ModelShape
from stepscope.tables.cells import CellResult

KEY = ["cell", "hardware", "size", "context", "precision", "repeat"]
SAMPLES = TRAINING_COLUMNS
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")


def shape_of(cell: CellResult) -> ModelShape:
    """The shape of the cell's model."""
    return ModelShape.of(cell.entry["spec"])


def place_columns(cell: CellResult) -> dict:
    """Columns that say which cell it is: its place in the grid, its options, its model, seed and warm-up."""
    spec = cell.entry["spec"]
    return {
        "cell": cell.name,
        "hardware": cell.name.split("/")[0],
        "size": cell.entry["size"],
        **{key: spec[key] for key in ("context", "batch", "precision")},
        **{key: spec.get(key, neutral) for key, neutral in NEUTRAL.items()},
        **{name: spec[name] for name in SHAPE},
        "parameters": shape_of(cell).parameters,
        "seed": spec["seed"],
        "warmup": spec["warmup"],
    }
