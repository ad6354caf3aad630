"""The precision study's tables: a row a probe, what each probe found, and the sums after every addition."""

from pathlib import Path

from stepscope.tables.cells import CellResult
from stepscope.tables.columns import CELL, HARDWARE, PRECISION, REASON, RUN, SEED, STATUS, run_columns
from stepscope.tables.schema import Group, Table, count, number, text
from stepscope.tables.training import CONTEXT, SHAPE
from stepscope.tables.writer import write_study, write_table

PROBE = text("probe", "`accumulation`, `autocast` or `normalisation`")
KEY = Group("the key of a probe", (CELL, HARDWARE, PROBE))
AUTOCAST = text("autocast", "the 16-bit format that autocast is set to; `fp32`: none")
VARIANT = text("variant", "dtype of the sum += dtype of the addend, and what it is cast to")
OPERATION = text("operation", "`torch LayerNorm`, `own softmax` …")
OPERATOR = (
    text("operator", "operator of PyTorch that ran, in the order of the rows"),
    text("input_dtypes", "dtypes of its inputs"),
    text("output_dtype", "dtype of its output"),
)
OF_MODEL = (*SHAPE, CONTEXT, count("batch", "sequences of a batch"))  # empty where no model of our own ran
STUDY = (
    Table("precision", "a cell", (CELL, HARDWARE, PROBE, PRECISION, SEED, STATUS, REASON, RUN)),
    Table(
        "precision_samples",
        "an addition",
        (KEY, VARIANT, number("step", "", "number of the addition, from 1"), number("sum", "", "the sum after it")),
    ),
)
FOUND = {
    "accumulation": Table(
        "precision_accumulation",
        "a way to add up",
        (
            *(CELL, HARDWARE, VARIANT),
            text("sum_dtype", "dtype of the sum"),
            text("addend_dtype", "dtype that the addend was rounded to"),
            count("times", "additions"),
            number("addend", "", "the addend as rounded"),
            number("sum", "", "the sum after the last addition"),
            number("exact", "", "the sum without rounding"),
            number("last_change", "", "number of the last addition that changed the sum, from 1"),
        ),
    ),
    "dtypes": Table(
        "precision_dtypes",
        "a part of a model",
        (
            CELL,
            HARDWARE,
            text("model", "`toy`: two linear layers; `own`: the Transformer of this project"),
            AUTOCAST,
            text("status", "`ok` or `unsupported`"),
            REASON,
            text("role", "name of the part, with one block for all"),
            text("kind", "its class, or what it computes"),
            count("modules", "modules with this role"),
            *(
                text(name, f"dtypes of its {words}")
                for name, words in (
                    ("parameter", "parameters"),
                    ("buffer", "buffers"),
                    ("input", "inputs"),
                    ("output", "output"),
                    ("output_gradient", "output's gradient"),
                    ("parameter_gradient", "parameters' gradients"),
                )
            ),
            *OF_MODEL,
        ),
    ),
    "attention": Table(
        "precision_attention",
        "an operator of attention",
        (CELL, HARDWARE, AUTOCAST, text("part", "part of attention that it belongs to"), *OPERATOR),
    ),
    "gradients": Table(
        "precision_gradients",
        "a format",
        (
            *(CELL, HARDWARE, AUTOCAST),
            number("loss", "", "loss"),
            number("loss_fp32", "", "loss in fp32"),
            number("zero_share", "share", "share of the gradients' elements that are exactly 0, without the embedding"),
            count("not_finite", "elements that are infinite or no number"),
            number("error", "ratio", "2-norm of the difference to the gradients in fp32, over the 2-norm of those"),
            count("elements", "elements that were compared"),
            *OF_MODEL,
        ),
    ),
    "operators": Table(
        "precision_operators",
        "an operator of an operation under autocast",
        (
            *(CELL, HARDWARE, OPERATION, AUTOCAST),
            text("given", "dtype of the input"),
            text("status", "`ok` or `unsupported`"),
            REASON,
            number("order", "", "place of the operator, from 1"),
            *OPERATOR,
        ),
    ),
    "forced": Table(
        "precision_forced",
        "an operation, input, way to compute it and format",
        (
            *(CELL, HARDWARE, OPERATION),
            text("way", "how it was computed, as `all in the format`, `under autocast`"),
            text("format", "`fp32`, `fp16` or `bf16`"),
            text("quantity", "what is varied in the input"),
            number("value", "", "its value"),
            count("elements", "elements of the input"),
            text("status", "`ok` or `unsupported`"),
            REASON,
            number("error", "ratio", "largest difference to float64, over its largest value; empty: not finite"),
            number("inner", "", "mean of squares, variance or sum inside the operation; may be inf or nan"),
            number("inner_exact", "", "the same in float64"),
            number("sum", "", "sum of the result; may be inf or nan"),
            number("sum_exact", "", "the same in float64"),
            count("infinite", "infinite elements of the result"),
            count("nan", "elements of the result that are no number"),
            count("zero", "elements of the result that are 0"),
            count("zero_exact", "the same in float64"),
        ),
    ),
}
TABLES = (*STUDY, *FOUND.values())
# Table → the parts of a record's summary that it is made of, with what its column `model` says of each.
PARTS = {name: {name: {}} for name in FOUND} | {"dtypes": {"toy": {"model": "toy"}, "model": {"model": "own"}}}


def write(cells: list[CellResult], folder: Path) -> None:
    """Write precision.csv, precision_samples.csv and precision_NAME.csv for each table of FOUND."""
    rows = [row(cell) for cell in cells]
    write_study(folder, STUDY, rows, cells, [[line[name] for name in KEY.names] for line in rows])
    for name, table in FOUND.items():
        write_table(folder, table, rows_of(name, cells))


def row(cell: CellResult) -> dict:
    """One cell: which probe, its status, and what it ran on."""
    found = cell.record.get("summary", {})
    return {
        "cell": cell.name,
        "hardware": cell.hardware,
        "probe": cell.entry["spec"]["probe"],
        "precision": cell.entry["spec"]["precision"],
        "seed": cell.entry["spec"]["seed"],
        "status": found.get("status", cell.status),
        "reason": found.get("reason", cell.reason),
        **run_columns(cell),
    }


def rows_of(name: str, cells: list[CellResult]) -> list[dict]:
    """The rows of one table, of all cells; what a cell ran of our model says which model that was."""
    found = []
    for cell in cells:
        tables = cell.record.get("summary", {}).get("tables", {})
        key = {"cell": cell.name, "hardware": cell.hardware}
        model = {each: value for each, value in cell.entry["spec"].items() if each in FOUND[name].by_name}
        for part, more in PARTS[name].items():
            of_model = {} if part == "toy" else model
            found += [{**key, **of_model, **more, **entry} for entry in tables.get(part, [])]
    return found
