"""Our measurement of a published cell: the same shape, context, batch, precision and phase, on one of our machines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stepscope.axes import IMPLEMENTATIONS
from stepscope.report.data.attention import Setting, setting_of
from stepscope.report.data.warmup import is_profiled
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import with_order
from stepscope.tables.reader import Tables

_SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "context", "batch")
_MEMORY = {"peak allocated": "allocated", "peak reserved": "reserved"}
_SIXTEEN_BITS = ("bf16", "fp16")
_COMPARED = ("mean", "median", "max", "value")  # of a published figure; spreads have no partner


FIRST_STEP = "that mean holds the first step, which no GPU's rate foretells"


@dataclass(frozen=True)
class Partner:
    """What we measured of a published cell. value: in ms, bytes or TFLOP/s, None without one. row: of our table.

    prefix: of the row's columns of the series that was timed. differs: why the two are not of the same thing after all;
    else empty. name: what of ours it is, where that is not the published one's.
    """

    value: float | None
    row: Mapping
    prefix: str = ""
    differs: str = ""
    name: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.row["cell"],)

    @property
    def limited_by(self) -> str | None:
        return self.row.get(f"{self.prefix}limited_by")

    @property
    def is_unsteady(self) -> bool:
        """Whether its processes differ by more than chance allows."""
        return self.row.get(f"{self.prefix}unsteady") is True


class Partners:
    """The tables of a machine, by what published figures name."""

    def __init__(self, tables: Tables, hardware: str):
        self._timing = _by_place(_plain(tables["timing"], hardware))
        cold = [row for row in _plain(tables["warmup"], hardware) if row["warmup"] == 0 and not is_profiled(row)]
        self._cold = _by_place(cold)
        self._attention = _own(tables["attention"], hardware)
        self._sums = {row["variant"]: row for row in _own(tables["precision_accumulation"], hardware)}

    def of(self, figure: Mapping) -> Partner | None:
        """Ours of a published figure; None where it was not measured here."""
        if figure["statistic"] not in _COMPARED:
            return None
        if figure["quantity"] == "sum":
            own = self._sums.get(figure["name"])
            return own and Partner(own["sum"], own)
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
            own,
            f"{phase}_",
            differs or _differs_in_status(figure),
        )

    def _of_warmup(self, figure: Mapping) -> Partner | None:
        """After warm-up the timing study's, of several processes; of a mean from the first step on ours of the same."""
        if not known(figure["warmup"]):
            return None
        if figure["warmup"] > 0:
            return self._of_model(figure, self._timing)
        found = self._of_model(figure, self._cold)
        return found and replace(found, differs=found.differs or FIRST_STEP)

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
    return Partner(value if is_measured else None, row, differs=differs, name=name)


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
    """Those of sizes: a model of one's own is not what anybody published."""
    return {_place(row): row for row in rows if known(row.get("d_model"))}


def _place(row: Mapping, precision: str = "") -> tuple:
    return (*(row.get(name) for name in _SHAPE), precision or row["precision"])
