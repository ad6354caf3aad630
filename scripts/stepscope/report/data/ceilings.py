"""The ceilings study's rates, which other studies are held against."""

import pandas as pd


def matmul_ceiling(ceilings: pd.DataFrame, hardware: str, precision: str) -> float | None:
    """The measured rate of a large matrix product (TFLOP/s) on a machine in exactly this precision."""
    if ceilings.empty:
        return None
    own = ceilings[(ceilings["operation"] == "matmul") & (ceilings["hardware"] == hardware)]
    rates = own.loc[own["precision"] == precision, "tflops"].dropna()
    return float(rates.max()) if len(rates) else None
