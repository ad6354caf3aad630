"""Attention by itself: implementations at growing lengths, what they move and keep, and which one
is fastest."""

from dataclasses import dataclass

from stepscope.report.facts.attention_shapes import Shape, shapes
from stepscope.report.facts.machine import MIXED, Machine, machine
from stepscope.report.kit.data import Data, of_ratio, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    gap,
    over,
    plus,
    scaled,
    share,
    time_of,
)

PLAIN = "naive"
# Bytes a score in 16 bits and in fp32 that naive attention moves in its forward pass
# (stepscope.report.facts.machine lists them), without a mask and for one, and that it keeps for
# backward: exponentials in fp32, weights in the inputs' type.
FORWARD_BYTES, MASK_BYTES, KEPT_BYTES = (
    {True: 38, False: 40},
    {True: 4, False: 8},
    {True: 6, False: 8},
)
USUAL = (
    "batch",
    "heads",
    "key_value_heads",
    "tokens",
    "mask",
)  # options with which a cell can be the chapter's

# the slowest over the quickest of a library's kernels, from which on a reader should be told
DIFFERENT = 1.02


@dataclass(frozen=True, kw_only=True)
class Way:
    """An implementation at the longest length that all of the cell reached. gain: times as fast as
    naive attention."""

    name: Name
    forward: Maybe
    backward: Maybe
    rate: Maybe
    of_ceiling: Maybe
    gain: Maybe
    backward_gain: Maybe
    kept: Maybe


@dataclass(frozen=True, kw_only=True)
class Length:
    """A length: naive attention beside the fastest implementation there."""

    length: Quantity
    naive: Maybe
    fastest: Name | None
    time: Maybe
    kept: Maybe


@dataclass(frozen=True, kw_only=True)
class Attention:
    """d_head, precision, heads (None: no dimension of heads), key_value_heads (None: as many),
    is_causal: of the cell with the most implementations; batch: at the longest length. score_bytes:
    that naive attention moves forward."""

    machine: Machine
    d_head: str = ""
    precision: str = ""
    batch: Maybe = None
    heads: Maybe = None
    key_value_heads: Maybe = None
    is_causal: bool = False
    score_bytes: Maybe = None
    longest: Maybe = None
    ways: tuple[Way, ...] = ()
    lengths: tuple[Length, ...] = ()
    naive: Way | None = None
    arithmetic: Maybe = None
    naive_predicted: Maybe = None
    naive_gap: Maybe = None
    kept_predicted: Maybe = None
    kept_gap: Maybe = None
    best: Way | None = None
    second: Way | None = None
    best_ratio: Maybe = None
    verdict: str = ""
    best_backward: Way | None = None
    second_backward: Way | None = None
    is_backward_open: bool = False
    is_batch_of_length: bool = False
    quickest: Way | None = None
    slowest: Way | None = None
    oom_length: Maybe = None
    before_longest: Maybe = None
    growth: Maybe = None
    scores_growth: Maybe = None
    shortest: Maybe = None
    host_name: Name | None = None
    host: Maybe = None
    host_gpu: Maybe = None
    is_host_limited: bool = False
    shapes: tuple[Shape, ...] = ()


def facts(data: Data) -> Attention | None:
    """Of the plain cell with the most implementations, in 16 bits if there is one; else of one with
    heads or a mask."""
    own = machine(data)
    every = [
        row
        for row in data.series(study="attention", quantity="time")
        if set(_options(row)) <= set(USUAL)
    ]
    rows = [row for row in every if not row["options"]] or every
    cells: dict[str, list[dict]] = {}
    for row in rows:
        cells.setdefault(row["cell"], []).append(row)
    if not cells:
        return None
    cell = max(cells, key=lambda each: _order(cells[each]))
    one = cells[cell][0]
    own_rows = data.series(cell=cell)
    reached = [
        row["length"]
        for row in cells[cell]
        if row["variant"] == PLAIN and row["direction"] == "backward"
    ]
    longest = max(reached or [row["length"] for row in cells[cell]])
    ways = _ways(data, own, own_rows, cell, longest, one["precision"])
    naive = next((way for way in ways if way.name == PLAIN), None)
    others = sorted(
        (way for way in ways if way.name != PLAIN and way.forward),
        key=lambda way: way.forward.value,
    )
    best, second = (*others, None, None)[:2]
    at_longest = next(row for row in cells[cell] if row["length"] == longest)
    options, is_short = _options(one), one["precision"] in MIXED
    heads, is_causal = int(options.get("heads", 0)), options.get("mask", "full") != "full"
    scores = Quantity(at_longest["batch"] * max(heads, 1) * longest**2, "count")
    score_bytes = FORWARD_BYTES[is_short] + is_causal * MASK_BYTES[is_short]
    flop = over(best.rate, over(Quantity(1.0, "1"), best.forward), "FLOP") if best else None
    arithmetic = time_of(flop, own.rate(one["precision"]))
    moved = time_of(Quantity(scores.value * score_bytes, "B"), own.copy)
    predicted = plus(
        moved, scaled(arithmetic, 1 + is_causal)
    )  # naive attention multiplies what the mask hides, too
    kept = Quantity(scores.value * KEPT_BYTES[is_short], "B")
    back = sorted((way for way in ways if way.backward), key=lambda way: way.backward.value)
    sdpa = sorted(
        (way for way in ways if way.name.startswith("sdpa-") and way.forward and way.backward),
        key=lambda way: way.forward.value + way.backward.value,
    )
    ends = (
        [way.forward.value + way.backward.value for way in (sdpa[0], sdpa[-1])]
        if sdpa
        else [1.0, 1.0]
    )
    differs = ends[1] > DIFFERENT * ends[0]
    two = {"a": str(second.name), "b": str(best.name)} if second else None
    pair = (
        data.row("comparisons", cell=cell, direction="forward", length=longest, **two)
        if two
        else {}
    )
    return Attention(
        machine=own,
        d_head=one["size"].removeprefix("d"),
        precision=one["precision"],
        batch=count(at_longest["batch"]),
        heads=count(heads) if heads else None,
        key_value_heads=count(int(options["key_value_heads"]))
        if "key_value_heads" in options
        else None,
        is_causal=is_causal,
        score_bytes=count(score_bytes),
        longest=count(longest),
        ways=tuple(ways),
        lengths=_lengths(own_rows),
        naive=naive,
        arithmetic=arithmetic,
        naive_predicted=predicted,
        naive_gap=gap(naive.forward, predicted) if naive else None,
        kept_predicted=kept,
        kept_gap=gap(naive.kept, kept) if naive else None,
        best=best,
        second=second,
        best_ratio=of_ratio(pair)
        if pair
        else over(second.forward, best.forward)
        if second
        else None,
        verdict=pair.get("verdict", ""),
        best_backward=back[0] if back else None,
        second_backward=back[1] if len(back) > 1 else None,
        is_backward_open=_is_open(data, cell, longest, back[:2]),
        is_batch_of_length="tokens" in options,
        quickest=sdpa[0] if differs else None,
        slowest=sdpa[-1] if differs else None,
        oom_length=_oom(data, cell),
        **_growth(own_rows, longest),
        **_of_host(own_rows),
        shapes=shapes(data, cell),
    )


def _is_open(data: Data, cell: str, length: float, ways: list[Way]) -> bool:
    """Whether the backward passes of two implementations were compared and not told apart."""
    names = {str(way.name) for way in ways}
    judged = data.dicts("comparisons", cell=cell, direction="backward", length=length)
    return any({row["a"], row["b"]} == names and row["verdict"] == "unclear" for row in judged)


def _options(row: dict) -> dict[str, str]:
    return dict(option.split("=") for option in row["options"].split())


def _order(rows: list[dict]) -> tuple:
    names = {row["variant"] for row in rows}
    return (
        rows[0]["precision"] in MIXED,
        PLAIN in names,
        len(names),
        rows[0]["size"] == "d64",
        len(rows),
    )


def _of(rows: list[dict], quantity: str, **where: object) -> Maybe:
    fits = (
        row
        for row in rows
        if row["quantity"] == quantity and all(row[key] == value for key, value in where.items())
    )
    row = next(fits, None)
    return of_series(row) if row else None


def _ways(
    data: Data, own: Machine, rows: list[dict], cell: str, length: float, precision: str
) -> list[Way]:
    judged = {
        (row["direction"], row["a"], row["b"]): row
        for row in data.dicts("comparisons", cell=cell, length=length)
    }
    made = []
    for name in dict.fromkeys(row["variant"] for row in rows):
        forward, backward = (
            {"variant": name, "length": length, "direction": way} for way in ("forward", "backward")
        )
        rate = _of(rows, "rate", **forward)
        made.append(
            Way(
                name=Name(name),
                forward=_of(rows, "time", **forward),
                backward=_of(rows, "time", **backward),
                rate=rate,
                of_ceiling=share(rate, own.rate(precision)),
                gain=of_ratio(judged["forward", PLAIN, name])
                if ("forward", PLAIN, name) in judged
                else None,
                backward_gain=of_ratio(judged["backward", PLAIN, name])
                if ("backward", PLAIN, name) in judged
                else None,
                kept=_of(rows, "before_backward", **backward),
            )
        )
    return [way for way in made if way.forward or way.backward]


def _lengths(rows: list[dict]) -> tuple[Length, ...]:
    times = [row for row in rows if row["quantity"] == "time" and row["direction"] == "forward"]
    made = []
    for length in sorted({row["length"] for row in times}):
        here = [row for row in times if row["length"] == length]
        fast = min(
            (row for row in here if row["variant"] != PLAIN),
            key=lambda row: row["median"],
            default=None,
        )
        made.append(
            Length(
                length=count(length),
                naive=_of(here, "time", variant=PLAIN),
                fastest=Name(fast["variant"]) if fast else None,
                time=of_series(fast) if fast else None,
                kept=_of(rows, "before_backward", variant=PLAIN, length=length),
            )
        )
    return tuple(made) if len(made) > 1 else ()


def _oom(data: Data, cell: str) -> Maybe:
    """The shortest length at which naive attention ran out of memory."""
    rows = data.dicts("series", cell=cell, quantity="time", variant=PLAIN, status="oom")
    return count(min(row["length"] for row in rows), cell) if rows else None


def _growth(rows: list[dict], longest: float) -> dict:
    """Naive attention's forward time at the longest length over that at the next shorter one, and
    the scores'."""
    same = {"variant": PLAIN, "direction": "forward"}
    shorter = max((row["length"] for row in rows if row["length"] < longest), default=0)
    last, before = (_of(rows, "time", length=length, **same) for length in (longest, shorter))
    if not last or not before:
        return {}
    return {
        "before_longest": count(shorter),
        "growth": over(last, before),
        "scores_growth": count((longest / shorter) ** 2),
    }


def _of_host(rows: list[dict]) -> dict:
    """The implementation that takes the host longest a call, at the shortest length at which that
    was measured."""
    hosts = [
        row for row in rows if row["quantity"] == "host_time" and row["direction"] == "forward"
    ]
    if not hosts:
        return {}
    shortest = min(row["length"] for row in hosts)
    row = max((row for row in hosts if row["length"] == shortest), key=lambda row: row["median"])
    gpu = _of(rows, "time", variant=row["variant"], length=shortest, direction="forward")
    return {
        "shortest": count(shortest),
        "host_name": Name(row["variant"]),
        "host": of_series(row),
        "host_gpu": gpu,
        "is_host_limited": bool(gpu) and gpu.value < row["median"],
    }
