"""fp32 throughout, with TF32 off."""

from stepscope.model.about import Precision

from . import Format

ABOUT = Precision(label="fp32", colour="blue", data_sheet="fp32", tolerance=1e-4)
FORMAT = Format(dtype="float32", bytes=4)
