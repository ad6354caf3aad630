"""What the attention study's figures draw: its rows in order, of one shape a machine, and what has no number."""

import pandas as pd

from stepscope import colours
from stepscope.axes import LOWER_RIGHT
from stepscope.report.kit.formatting import listing
from stepscope.report.kit.order import column, machine_places, ordered, precision_rank

DIRECTIONS = ("forward", "backward")
NUMBERS = ("d_head", "tokens", "batch", "keys", "window", "length", "median_ms", "ci_low_ms", "ci_high_ms", "tflops",
           "before_backward_bytes", "peak_bytes")  # fmt: skip
NEEDED = ["hardware", "implementation", "precision", "direction", "d_head", "length"]
SHAPE = ["tokens", "batch", "width", "causal", "kv_heads", "keys", "mask", "window"]
TOGETHER = ("fp32", "tf32")  # precisions whose lines share their panels


def measured(tables) -> pd.DataFrame:
    """The study's rows by machine, implementation, precision, d_head, length and direction.

    NUMBERS are positive floats, else missing. Times and rates are those of rows that are `ok`, which no other row is.
    Added: `width`, heads × d_head, 0 without a dimension of heads; `kv_heads` where they are not as many; `mask` where
    it is causal to the last key; `doubtful`: noisy, or the clock was held down.
    """
    table = tables["attention"]
    rows = pd.DataFrame({name: column(table, name) for name in NEEDED})
    numbers = {name: pd.to_numeric(column(table, name), errors="coerce").astype(float) for name in NUMBERS}
    rows = rows.assign(
        **{name: values.where((values > 0) & (values < float("inf"))) for name, values in numbers.items()}
    )
    heads, kv_heads = (
        pd.to_numeric(column(table, name), errors="coerce").fillna(0.0) for name in ("heads", "key_value_heads")
    )
    status, throttle = column(table, "status"), column(table, "throttle")
    rows = rows.assign(
        width=heads * rows["d_head"],
        causal=column(table, "causal").fillna("no"),
        mask=column(table, "mask").where(column(table, "mask") == LOWER_RIGHT, ""),
        kv_heads=kv_heads.where((kv_heads != heads) & (kv_heads > 0)),
        status=status.where((status != "ok") | rows["median_ms"].notna(), None).fillna("missing").astype(str),
        doubtful=(column(table, "noisy").astype(str) == "True") | (throttle.notna() & (throttle != "")),
        _machine=machine_places(rows["hardware"]),
        _rank=[colours.attention_rank(name) for name in rows["implementation"]],
        _precision=[precision_rank(name) for name in rows["precision"]],
    )
    rows.loc[rows["tokens"].notna(), "batch"] = float("nan")  # it follows from the length
    times = ["median_ms", "ci_low_ms", "ci_high_ms", "tflops"]
    rows[times] = rows[times].where(rows["status"] == "ok")
    rows = rows.dropna(subset=NEEDED)
    rows = rows[rows["direction"].isin(DIRECTIONS)].drop_duplicates(NEEDED + SHAPE)
    order = ["_machine", "_rank", "_precision", "d_head", "length"]
    return rows.sort_values(order, kind="stable").drop(columns=order[:3]).reset_index(drop=True)


def of_one_shape(rows: pd.DataFrame, varying_batch: bool) -> pd.DataFrame:
    """Each machine's rows of the shape that has the most results, of those whose batch is so, else of any."""
    return pd.concat([_fullest(own, varying_batch) for _, own in rows.groupby("hardware", sort=False)] or [rows])


def _fullest(own: pd.DataFrame, varying_batch: bool) -> pd.DataFrame:
    plain = own[own[["kv_heads", "keys", "window"]].isna().all(axis=1) & (own["mask"] == "")]
    own = plain if plain["status"].isin(["ok", "oom"]).any() else own
    wanted = own[own["tokens"].notna() == varying_batch]
    own = wanted if wanted["status"].isin(["ok", "oom"]).any() else own
    groups = [group for _, group in own.groupby(SHAPE, dropna=False)]
    return max(groups, key=lambda group: (int((group["status"] == "ok").sum()), len(group)), default=own)


def shape_words(rows: pd.DataFrame) -> str:
    """`batch 8, no dimension of heads, not causal`, for each shape that the rows have."""
    shapes = rows[SHAPE].drop_duplicates().itertuples(index=False)
    return "; ".join(dict.fromkeys(_shape_words(shape) for shape in shapes))


def _shape_words(shape) -> str:
    many = f"batch × length = {shape.tokens:,.0f}" if shape.tokens > 0 else f"batch {shape.batch:,.0f}"
    heads = f"heads × d_head = {shape.width:,.0f}" if shape.width else "no dimension of heads"
    parts = [many, heads, ("causal" if shape.causal == "yes" else "not causal") + " to the last key" * bool(shape.mask)]
    parts += [f"{shape.kv_heads:,.0f} key and value heads"] if shape.kv_heads > 0 else []
    parts += [f"{shape.keys:,.0f} keys"] if shape.keys > 0 else []
    return ", ".join([*parts, f"window {shape.window:,.0f}"] if shape.window > 0 else parts)


def precision_groups(rows: pd.DataFrame) -> list[list[str]]:
    """The precisions of each row of panels: 16-bit ones by themselves and first, fp32 beside tf32."""
    names = ordered(rows["precision"], key=precision_rank)
    together = [name for name in names if name in TOGETHER]
    return [[name] for name in names if name not in TOGETHER] + ([together] if together else [])


def series(rows: pd.DataFrame) -> list[tuple[str, str, str, pd.DataFrame]]:
    """(name, implementation, precision, rows) of each line of a panel; the name has the precision if there are two."""
    several = rows["precision"].nunique() > 1
    return [
        (f"{implementation} {precision}" if several else implementation, implementation, precision, own)
        for (implementation, precision), own in rows.groupby(["implementation", "precision"], sort=False)
    ]


def without_number(rows: pd.DataFrame, number: str, along: str = "length") -> list[str]:
    """Lines such as `unsupported: flex, triton at 4,096`: what has no number for another reason than memory.

    along: the column of the x axis, which tells where, if it is not everywhere.
    """
    gone = rows[rows[number].isna() & ~rows["status"].isin(["ok", "oom"])]
    found: dict[str, list[str]] = {}
    for name, implementation, precision, own in series(rows):
        lost = gone[(gone["implementation"] == implementation) & (gone["precision"] == precision)]
        for status, places in lost.groupby("status")[along]:
            some = "" if len(places) == len(own) else f" at {listing([f'{each:,.0f}' for each in places], 2)}"
            found.setdefault(status, []).append(name + some)
    return [f"{status}: {each}" for status, names in found.items() for each in _wrapped(names)]


def _wrapped(names: list[str], most: int = 2) -> list[str]:
    """Names, so many a line; what goes beyond three lines is counted."""
    lines = [", ".join(names[at : at + most]) for at in range(0, len(names), most)]
    more = len(names) - 3 * most
    return [*lines[:3], f"{more} more"] if more > 0 else lines
