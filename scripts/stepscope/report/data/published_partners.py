"""Our measurement of a published cell: the same shape, context, batch, precision and phase, on one of our machines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stepscope.axes import IMPLEMENTATIONS
from stepscope.report.data.attention import Setting, setting_of
from stepscope.report.kit.formatting import count, known
from stepscope.report.kit.order import with_order
from stepscope.tables.reader import Tables

_SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "context", "batch")
_MEMORY = {"peak allocated": "allocated", "peak reserved": "reserved"}
_SIXTEEN_BITS = ("bf16", "fp16")
_COMPARED = ("mean", "median", "max", "value")  # of a published figure; spreads have no partner


@dataclass(frozen=True)
class Partner:
    """What we measured of a published cell. value: in ms, bytes or TFLOP/s, None without one. cells: where it is from.

    differs: why the two are not of the same thing after all; else empty. name: what of ours it is, where that is not
    the published one's.
    """

    value: float | None
    cells: tuple[str, ...]
    limited_by: str | None = None
    differs: str = ""
    name: str = ""


class Partners:
    """The tables of a machine, by what published figures name."""

    def __init__(self, tables: Tables, hardware: str):
        self._timing = _by_place(_plain(tables["timing"], hardware))
        self._warmup = _plain(tables["warmup"], hardware)
        self._attention = _own(tables["attention"], hardware)
        self._sums = {row["variant"]: row for row in _own(tables["precision_accumulation"], hardware)}

    def of(self, figure: Mapping) -> Partner | None:
        """Ours of a published figure; None where it was not measured here."""
        if figure["statistic"] not in _COMPARED:
            return None
        if figure["quantity"] == "sum":
            own = self._sums.get(figure["name"])
            return own and Partner(own["sum"], (own["cell"],))
        if figure["study"] == "attention":
            return self._of_attention(figure)
        if figure["name"]:
            return None  # of a kernel or a part: those are named by the library of the GPU's generation
        if figure["study"] in ("timing", "memory"):
            return self._of_model(figure, self._timing)
        return self._of_warmup(figure) if figure["study"] == "warmup" else None

    def _of_model(self, figure: Mapping, rows: Mapping[tuple, dict]) -> Partner | None:
        """A phase's time or peak of memory in the same precision; of TF32 else that in fp32, which differs."""
        own, differs = rows.get(_place(figure)), ""
        if own is None and figure["precision"] == "tf32":
            own, differs = rows.get(_place(figure, "fp32")), "it multiplied in TF32, ours in fp32 proper"
        phase = figure["phase"]
        if own is None or not phase or not _fits(figure, own):
            return None
        status = own.get(f"{phase}_status")
        if figure["quantity"] == "time":
            column = f"{phase}_{'median' if figure['statistic'] == 'median' else 'mean'}_ms"
        elif figure["quantity"] in _MEMORY:
            column = f"{phase}_peak_{_MEMORY[figure['quantity']]}_bytes"
        else:
            return None
        value = own.get(column)
        is_measured = known(value) and value > 0
        if not is_measured and status != "oom":
            return None
        return Partner(
            value if is_measured and status != "oom" else None,
            (own["cell"],),
            own.get(f"{phase}_limited_by"),
            differs or _differs_in_status(figure),
        )

    def _of_warmup(self, figure: Mapping) -> Partner | None:
        """The mean after as many steps of warm-up. It depends on how many steps it is over."""
        rows = _by_place([row for row in self._warmup if row["warmup"] == figure["warmup"]])
        found = self._of_model(figure, rows)
        if found is None:
            return None
        steps = rows[_place(figure)].get("steps")
        if known(steps) and figure["samples"] == steps:
            return found
        theirs = count(figure["samples"]) if known(figure["samples"]) else "an unknown number of"
        differs = f"a mean that holds the first steps is over {theirs} steps there, over {count(steps)} here"
        return Partner(found.value, found.cells, found.limited_by, found.differs or differs)

    def _of_attention(self, figure: Mapping) -> Partner | None:
        """The same implementation at the same point; of one that is not ours the fastest of all of ours there."""
        point = {name: figure[name] for name in ("d_head", "length", "causal", "direction")}
        alike = [row for row in self._attention if all(row.get(name) == value for name, value in point.items())]
        groups = _number(figure["kv_heads"])
        rows = [row for row in alike if _has_heads(setting_of(row), groups)]
        if figure["implementation"] in IMPLEMENTATIONS:
            same = ("implementation", "precision", "batch")
            rows = [row for row in rows if all(row.get(name) == figure[name] for name in same) and not row["heads"]]
            return _attention_partner(figure, rows[0]) if rows and not _number(figure["heads"]) else None
        rows = [row for row in rows if row["precision"] == figure["precision"] or _both_sixteen(row, figure)]
        rows = [row for row in rows if known(row.get("tflops"))]
        if not rows:
            return None
        exact = [row for row in rows if _number(row["heads"]) == _number(figure["heads"])
                 and row["batch"] == figure["batch"] and setting_of(row).kv_heads == groups]  # fmt: skip
        best = max(exact or rows, key=lambda row: row["tflops"])
        differs = "" if exact else "the numbers of heads or of sequences differ"
        return _attention_partner(figure, best, differs, f"{best['implementation']}, {best['precision']}")


def _has_heads(own: Setting, groups: float) -> bool:
    """Whether nothing is special of a shape but, perhaps, that K and V have as many heads as these."""
    return own.kv_heads in (0, groups) and not replace(own, kv_heads=0).is_special


def _attention_partner(figure: Mapping, row: Mapping, differs: str = "", name: str = "") -> Partner | None:
    column = {
        "time": "median_ms" if figure["statistic"] == "median" else "mean_ms",
        "rate": "tflops",
        "memory before backward": "before_backward_bytes",
    }.get(figure["quantity"])
    value = row.get(column) if column else None
    is_measured = known(value) and value > 0
    if column is None or not (is_measured or row["status"] == "oom"):
        return None
    differs = differs or _differs_in_status(figure)
    return Partner(value if is_measured else None, (row["cell"],), row.get("limited_by"), differs, name)


def _differs_in_status(figure: Mapping) -> str:
    return "" if figure["status"] in ("ok", "oom") else f"its status is {figure['status']}"


def _both_sixteen(row: Mapping, figure: Mapping) -> bool:
    """Formats of 16 bits have the same peak rate."""
    return row["precision"] in _SIXTEEN_BITS and figure["precision"] in _SIXTEEN_BITS


def _fits(figure: Mapping, own: Mapping) -> bool:
    """Whether the vocabularies agree, where both are known."""
    both = figure["vocab_size"], own.get("vocab_size")
    return not all(map(known, both)) or both[0] == both[1]


def _number(value: object) -> float:
    """A count, 0 where there is none."""
    return value if known(value) else 0


def _own(frame, hardware: str) -> list[dict]:
    return [row for row in frame.to_dict("records") if row["hardware"] == hardware]


def _plain(frame, hardware: str) -> list[dict]:
    """First runs of a machine's training cells, all options neutral."""
    rows = with_order(frame).to_dict("records")
    return [row for row in rows if row["hardware"] == hardware and row["repeat"] == 1 and not row["options"]]


def _by_place(rows: list[dict]) -> dict[tuple, dict]:
    return {_place(row): row for row in rows}


def _place(row: Mapping, precision: str = "") -> tuple:
    return (*(row.get(name) for name in _SHAPE), precision or row["precision"])
