"""The machine and its ceilings, and places: a size at a context and batch, with what a step must
compute and move."""

from dataclasses import replace

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
    plus,
    scaled,
    time_of,
    value_of,
)

MIXED = tuple(name for name, one in FORMATS.items() if one.is_autocast)
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
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
# Of these: the share of the forward pass.
SCORE_BYTES_FORWARD = {mixed: SCORE_FORWARD[mixed] / SCORE_BYTES[mixed] for mixed in SCORE_BYTES}


@frozen
class Machine:
    """rates: the most FLOP/s of a large product by precision, in a burst; sustained: over seconds.

    copy: bytes a second of a large copy, reads and writes counted.
    """

    label: Name
    name: Name
    is_gpu: bool
    threads: Maybe
    memory: Maybe
    rates: dict[str, Quantity]
    sustained: dict[str, Quantity]
    copy: Maybe

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
    rates: dict[str, dict[str, Quantity]] = {"burst": {}, "sustained": {}}
    for row in data.series(study="ceilings", size="matmul", quantity="rate"):
        rates.setdefault(row["variant"], {})[row["precision"]] = measured_rate(row)
    copies = data.series(
        study="ceilings", size="copy", quantity="rate", variant=["burst", "sustained"]
    )
    copy = max(copies, key=lambda row: row["median"], default=None)
    return Machine(
        label=Name(data.machine or cell.get("machine", "")),
        name=Name((cell.get("gpu") if is_gpu else cell.get("cpu")) or data.machine or ""),
        is_gpu=is_gpu,
        threads=number(cell, "threads", "count"),
        memory=number(cell, "memory", "B"),
        rates=rates["burst"],
        sustained=rates["sustained"],
        copy=measured_rate(copy) if copy else None,
    )


@frozen
class Place:
    """A size at a context and batch, in a precision.

    arithmetic: its FLOP at the ceiling. block_flop, head_flop: of them those of linear layers.
    optimizer_fused, optimizer_written: AdamW's bytes at the copy's rate, in one pass and as one
    operation after another. scores: what naive attention moves for its scores, likewise. is_own: of
    a model of one's own.
    """

    size: Name
    context: int
    batch: int
    precision: str
    parameters: Maybe
    blocks: Maybe
    heads: Maybe
    flop: Maybe
    block_flop: Maybe
    head_flop: Maybe
    arithmetic: Maybe
    optimizer_fused: Maybe
    optimizer_written: Maybe
    scores: Maybe
    is_own: bool

    @property
    def name(self) -> Name:
        """`2.7B at context 1,024`: the one name of a place in all chapters."""
        return Name(f"{self.size} at context {self.context:,}")

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells it from other places."""
        return str(self.size), self.context, self.batch

    @property
    def where(self) -> dict:
        """The same, to select rows."""
        return {"size": str(self.size), "context": self.context, "batch": self.batch}

    @property
    def is_mixed(self) -> bool:
        """Whether it runs under autocast."""
        return self.precision in MIXED


def arithmetic(
    where: Place, precision: str, rates: dict[str, Quantity], only_linear: bool = False
) -> Maybe:
    """The place's FLOP, or those of its linear layers, at the rates of a precision: in fp8 those of
    the blocks' linear layers, the others in bf16."""
    flop = plus(where.block_flop, where.head_flop) if only_linear else where.flop
    other = FORMATS[precision].outside
    if not other:
        return time_of(flop, rates.get(precision))
    outside = time_of(minus(flop, where.block_flop), rates.get(other))
    return plus(outside, time_of(where.block_flop, rates.get(precision))) if outside else None


def place(data: Data, own: Machine, row: dict, precision: str) -> Place | None:
    """The place of a row of any table with size, context and batch; None where the row has no
    context."""
    if not row or row["context"] != row["context"]:
        return None
    where = {"size": row["size"], "context": row["context"], "batch": row["batch"]}
    model = data.row("models", **where) or {}
    parameters = number(model, "parameters", "parameters")
    trained = number(model, "trained", "parameters") or parameters
    flop = number(model, "flop", "FLOP")
    blocks, heads = number(model, "num_layers", "count"), number(model, "num_heads", "count")
    scores = block_flop = head_flop = None
    if blocks and heads and not model.get("reference"):
        fewer = value_of(number(model, "key_value_heads", "count"))  # 0: as many as heads
        sizes = {name: int(model[name]) for name in SHAPE}
        shape = ModelShape.of(sizes | {"key_value_heads": int(fewer)})
        linear = linear_step_flops(shape, int(row["batch"]), int(row["context"]))
        block_flop, head_flop = (Quantity(float(flops), "FLOP") for flops in linear)
        elements = blocks.value * heads.value * row["batch"] * row["context"] ** 2
        scores = time_of(Quantity(elements * SCORE_BYTES[precision in MIXED], "B"), own.copy)
    made = Place(
        size=Name(row["size"]),
        context=int(row["context"]),
        batch=int(row["batch"]),
        precision=precision,
        parameters=parameters,
        blocks=blocks,
        heads=heads,
        flop=flop,
        block_flop=block_flop,
        head_flop=head_flop,
        arithmetic=None,
        optimizer_fused=time_of(scaled(trained, OPTIMIZER_BYTES, "B"), own.copy),
        optimizer_written=time_of(scaled(trained, WRITTEN_OUT_BYTES, "B"), own.copy),
        scores=scores,
        is_own=bool(model.get("reference")),
    )
    return replace(made, arithmetic=arithmetic(made, precision, own.rates))
