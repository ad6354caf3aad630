"""The precision study's tables besides precision.csv, and their columns after `cell` and `hardware`."""

SAMPLES = ("variant", "step", "sum")
_MODEL = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "context", "batch")
COLUMNS = {
    "accumulation": ("variant", "sum_dtype", "addend_dtype", "times", "addend", "sum", "exact", "last_change"),
    "dtypes": (
        *("model", "autocast", "status", "reason", "role", "kind", "modules", "parameter", "buffer", "input"),
        *("output", "output_gradient", "parameter_gradient", *_MODEL),
    ),
    "attention": ("autocast", "part", "operator", "input_dtypes", "output_dtype"),
    "gradients": ("autocast", "loss", "loss_fp32", "zero_share", "not_finite", "error", "elements", *_MODEL),
    "operators": (
        *("operation", "autocast", "given", "status", "reason", "order", "operator", "input_dtypes", "output_dtype"),
    ),
    "forced": (
        *("operation", "way", "format", "quantity", "value", "elements", "status", "reason", "error", "inner"),
        *("inner_exact", "sum", "sum_exact", "infinite", "nan", "zero", "zero_exact"),
    ),
}
TABLES = tuple(COLUMNS)
# Table → the parts of a record's summary that it is made of, with what its column `model` says of each.
PARTS = {name: {name: {}} for name in COLUMNS} | {"dtypes": {"toy": {"model": "toy"}, "model": {"model": "own"}}}
