"""From records to tables: series with intervals, verdicts between variants, and what is no time."""

import pandas as pd

# Text is kept in one way, whether or not pyarrow happens to be installed: with it, empty columns
# of text can neither be joined nor added.
pd.set_option("mode.string_storage", "python")
