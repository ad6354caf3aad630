"""The memory study's tables beside memory.csv and memory_samples.csv. Standard library only: rules name them too."""

from stepscope.snapshot.table_names import COLUMNS as OF_SNAPSHOTS

FORMULA = ("largest", "saved")  # these get a column `formula`: what predicts the size
ADDED = {
    "accounting": ("item", "predicted_bytes", "measured_bytes", "formula"),
    "predicted": ("category", "module", "name", "count", "bytes", "formula"),  # all that is alive at the predicted peak
}
COLUMNS = {name: (*columns, *(["formula"] * (name in FORMULA))) for name, columns in OF_SNAPSHOTS.items()} | ADDED
TABLES = tuple(COLUMNS)
