"""The machine and its ceilings, and places: a size at a context and batch, with what a step must
compute and move."""

import math
from collections.abc import Iterable
from functools import cached_property

from stepscope.formulas.flops import linear_step_flops
from stepscope.formulas.traffic import OPTIMIZER_BYTES, WRITTEN_OUT_BYTES
from stepscope.model.formats import FORMATS
from stepscope.model.shape import ModelShape
from stepscope.report.kit.data import Data, Row, number, of_series, once
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    exact,
    minus,
    over,
    plus,
    scaled,
    time_of,
    value_of,
)
from stepscope.results.alone import LAUNCH_LIMITED
from stepscope.results.models import AT_LEAST

MIXED = [name for name, one in FORMATS.items() if one.is_autocast]
# Bytes that naive attention moves for each score, as stepscope.model.attention.naive and .softmax
# are written, each operation reading and writing whole tensors (batch × heads × context × context);
# under autocast, and in fp32, where all numbers take 4.
SCORE_MASK = {True: 2 + 2, False: 4 + 4}
# The product writes 2; mask 2 + 2; maximum 2; minus it 2 + 4; exp 4 + 4; sum 4; times the
# reciprocal 4 + 4; cast 4 + 2; the product reads 2.
SCORE_FORWARD = {True: 42, False: 48}
# The product writes 2 and reads 2; cast 2 + 4; two gradients of that multiplication 4 + 4 and
# 8 + 4; sum 4; the sum's gradient added 4 + 4; that of exp 8 + 4; cast 4 + 2; two products read 2.
SCORE_BACKWARD = {True: 64, False: 60}
SCORE_BYTES = {mixed: SCORE_FORWARD[mixed] + SCORE_BACKWARD[mixed] for mixed in (True, False)}
STATE_BYTES = 4 * 4  # of a parameter in fp32, its gradient and two moments
# Well-known models by the width of their blocks, beside which a size is told.
AS_WIDE = {768: "GPT-2 small", 1600: "GPT-2 XL", 2560: "GPT-3 2.7B", 4096: "Llama 3 8B"}
LLAMA_BLOCKS = 32  # of Llama 3 8B (Grattafiori et al. 2024, table 3)
SIZES = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")  # of this project's model


@frozen
class Machine:
    """rates: the most FLOP/s of a large product by precision, in a burst; sustained: over seconds.

    copy: bytes a second of a large copy, reads and writes counted; memory_rate: those that the data
    sheet promises.
    """

    name: Name
    is_gpu: bool
    threads: Maybe
    memory: Maybe
    rates: dict[str, Quantity]
    sustained: dict[str, Quantity]
    copy: Maybe
    memory_rate: Maybe

    def rate(self, precision: str) -> Maybe:
        """The ceiling of a precision; that of fp32 for one that was not measured on a CPU."""
        return self.rates.get(precision)


def measured_rate(row: Row) -> Quantity:
    """A row of the ceilings, without its interval: it is a best, no mean."""
    rate = exact(of_series(row))
    assert rate, "what was measured has a rate"
    return rate


@once
def machine(data: Data) -> Machine:
    """The one machine of the tables."""
    cell = data.row("cells", status="ok") or data.row("cells")
    is_gpu = cell.get("device") == "cuda"
    rates: dict[str, dict[str, Quantity]] = {"burst": {}, "sustained": {}, "datasheet": {}}
    copies: dict[str, Quantity] = {}
    for row in data.series(study="ceilings", quantity="rate"):
        if row["size"] == "matmul":
            rates[row["variant"]][row["precision"]] = measured_rate(row)
        elif row["size"] == "copy":
            copies[row["variant"]] = measured_rate(row)
    memory_rate = copies.pop("datasheet", None)
    return Machine(
        name=Name(cell.get("gpu" if is_gpu else "cpu") or data.machine or ""),
        is_gpu=is_gpu,
        threads=number(cell, "threads", "count"),
        memory=number(cell, "memory", "B"),
        rates=rates["burst"],
        sustained=rates["sustained"],
        copy=max(copies.values(), key=value_of, default=None),
        memory_rate=memory_rate,
    )


@frozen
class Chapter:
    """What the facts of every chapter are made of: the tables of one machine."""

    data: Data

    @cached_property
    def machine(self) -> Machine:
        """Their machine."""
        return machine(self.data)

    def across_cards(self, *quantities: Maybe) -> bool:
        """Whether these were measured on several cards of its type."""
        cells = [cell for each in quantities if each for cell in each.cells]
        return len(self.data.cards(cells)) > 1


def _of_model(column: str, unit: str) -> cached_property[Maybe]:
    """The fact that is a column of the table `models`."""

    return cached_property(lambda where: number(where._model, column, unit))


@frozen
class Place:
    """A size at a context and batch, in a precision."""

    data: Data
    size: Name
    context: int
    batch: int
    precision: str

    parameters = _of_model("parameters", "parameters")
    blocks = _of_model("num_layers", "count")
    width = _of_model("d_model", "count")
    flop = _of_model("flop", "FLOP")

    @cached_property
    def name(self) -> Name:
        """`2.7B at context 1,024`: the one name of a place in all chapters."""
        return Name(f"{self.size} at context {self.context:,}")

    @property
    def as_wide(self) -> str | None:
        """A well-known model of the same width."""
        return AS_WIDE.get(int(value_of(self.width)))

    @property
    def is_least(self) -> bool:
        """Whether some of its operators multiply and were not counted."""
        return self._model.get("flop_from") == AT_LEAST

    @property
    def is_short(self) -> bool:
        """Whether it has fewer blocks than that model."""
        return self.as_wide == "Llama 3 8B" and value_of(self.blocks) < LLAMA_BLOCKS

    @property
    def where(self) -> dict[str, str | int]:
        """What tells it from other places, to select rows."""
        return {"size": str(self.size), "context": self.context, "batch": self.batch}

    @property
    def key(self) -> tuple[str | int, ...]:
        """The same, to compare."""
        return tuple(self.where.values())

    @property
    def weight(self) -> tuple[float, int, int]:
        """By which places are sorted."""
        return value_of(self.parameters), self.context, self.batch

    @property
    def is_mixed(self) -> bool:
        """Whether it runs under autocast."""
        return self.precision in MIXED

    @cached_property
    def _model(self) -> Row:
        return self.data.row("models", **self.where)

    @cached_property
    def is_own(self) -> bool:
        """Whether it is of a model of one's own."""
        return bool(self._model.get("reference"))

    @property
    def shape(self) -> ModelShape | None:
        """Of this project's model."""
        known = {name: value_of(number(self._model, name, "count")) for name in SIZES}
        if self.is_own or not all(known.values()):
            return None
        fewer = number(self._model, "key_value_heads", "count")  # 0: as many as heads
        sizes = known | {"key_value_heads": value_of(fewer)}
        return ModelShape.of({name: int(value) for name, value in sizes.items()})

    @property
    def linear(self) -> tuple[Maybe, Maybe]:
        """FLOP of linear layers: of the blocks', and of the head."""
        if self.shape is None:
            return None, None
        blocks, head = linear_step_flops(self.shape, self.batch, self.context)
        return Quantity(float(blocks), "FLOP"), Quantity(float(head), "FLOP")

    @cached_property
    def trained(self) -> Maybe:
        """Its parameters that are not frozen."""
        return number(self._model, "trained", "parameters") or self.parameters

    @property
    def is_all_trained(self) -> bool:
        """Whether none of them is frozen."""
        return value_of(self.trained) == value_of(self.parameters)

    @cached_property
    def dtype(self) -> Name | None:
        """The type of its parameters, where it is not the usual fp32: its file has built it so, and
        what is predicted for fp32 is not of it."""
        found = self._model.get("dtype") or "float32"
        return None if found == "float32" else Name(found)

    @property
    def number_type(self) -> str:
        """What its products are in: its precision, unless it was built in another type."""
        return self.dtype or self.precision

    @cached_property
    def state(self) -> Maybe:
        """Bytes of parameters, gradients and moments, of one of which all are trained in fp32."""
        is_usual = self.is_all_trained and not self.dtype
        return scaled(self.parameters, STATE_BYTES, "B") if is_usual else None

    @property
    def forward_share(self) -> float:
        """Of its FLOP those of the forward pass: a third, unless it is known to be another, as
        where frozen weights or images have no gradient."""
        known = over(number(self._model, "forward_flop", "FLOP"), self.flop)
        return known.value if known else 1 / 3

    @property
    def backward_flop(self) -> str:
        """Those of the backward pass, over it: `2`, `1.78`."""
        ratio = f"{1 / self.forward_share - 1:.3g}"
        return "less than 2" if ratio == "2" and not self.is_all_trained else ratio

    @cached_property
    def arithmetic(self) -> Maybe:
        """Its FLOP at the ceiling."""
        return arithmetic(self, self.precision)

    @cached_property
    def optimizer_fused(self) -> Maybe:
        """AdamW's bytes at the copy's rate, in one pass."""
        return self._copied(self.updating(OPTIMIZER_BYTES))

    @cached_property
    def optimizer_written(self) -> Maybe:
        """The same as one operation after another."""
        return self._copied(self.updating(WRITTEN_OUT_BYTES))

    def updating(self, a_parameter: float) -> Maybe:
        """Bytes that AdamW moves, of so many for each that is trained in fp32."""
        return None if self.dtype else scaled(self.trained, a_parameter, "B")

    @cached_property
    def scores(self) -> Maybe:
        """What naive attention moves for its scores, likewise."""
        if self.shape is None:
            return None
        heads = self.shape.num_layers * self.shape.num_heads * self.batch
        moved = heads * self.context**2 * SCORE_BYTES[self.is_mixed]
        return self._copied(Quantity(moved, "B"))

    def _copied(self, moved: Maybe) -> Maybe:
        return time_of(moved, machine(self.data).copy)


def arithmetic(
    where: Place, precision: str, rate: str = "rates", only_linear: bool = False
) -> Maybe:
    """The place's FLOP, or those of its linear layers, at the machine's `rates` of a precision, or
    at its `sustained` ones: in fp8 those of the blocks' linear layers, the others in bf16. None for
    parameters of another type."""
    if where.dtype:
        return None
    rates = getattr(machine(where.data), rate)
    blocks, head = where.linear
    flop = plus(blocks, head) if only_linear else where.flop
    other = FORMATS[precision].outside
    if not other:
        return time_of(flop, rates.get(precision))
    outside = time_of(minus(flop, blocks), rates.get(other))
    return plus(outside, time_of(blocks, rates.get(precision)))


def limited(limits: str, step: Maybe, gpu: Maybe) -> str:
    """What limits a step, as pages say it: `launches or GPU` where launches do by the mean of the
    processes, and not by the low end of its interval, as where one process is slow."""
    ends = step.ends if step else None
    is_sure = ends is None or gpu is None or ends[0] > LAUNCH_LIMITED * gpu.value
    return limits if is_sure or limits != "launches" else "launches or GPU"


def place(data: Data, row: Row, precision: str = "") -> Place | None:
    """The place of a row of any table with size, context and batch, in its precision if no other is
    named; None where the row has no context."""
    if not row or math.isnan(row["context"]):
        return None
    return Place(
        data=data,
        size=Name(row["size"]),
        context=int(row["context"]),
        batch=int(row["batch"]),
        precision=precision or row["precision"],
    )


def placed(data: Data, rows: Iterable[Row]) -> list[tuple[Place, Row]]:
    """Those rows that have a place, with it."""
    found = ((place(data, row), row) for row in rows)
    return [(where, row) for where, row in found if where]


def largest(places: Iterable[Place]) -> Place | None:
    """The one of the most parameters, then of the longest context, in bf16 before others."""
    return max(places, key=lambda each: (each.precision == "bf16", *each.weight), default=None)
