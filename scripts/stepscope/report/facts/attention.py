"""Attention by itself: implementations at growing lengths, what they move and keep, and which one
is fastest."""

from collections.abc import Iterable
from functools import cached_property

from stepscope.report.kit.data import Data, Row, grouped, of_ratio
from stepscope.report.kit.named import Name, first_of, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    gap,
    least,
    ordered,
    over,
    plus,
    scaled,
    share,
    time_of,
    value_of,
)

from .machine import MIXED, SCORE_FORWARD, SCORE_MASK, Chapter, machine

PLAIN = "naive"
# Bytes a score that naive attention keeps for backward, under autocast and in fp32: exponentials in
# fp32, weights in the inputs' type.
KEPT = {True: 4 + 2, False: 4 + 4}
# Options with which a cell can be the chapter's.
USUAL = {"batch", "heads", "key_value_heads", "tokens", "mask"}


def _series(quantity: str, direction: str) -> cached_property[Maybe]:
    """The fact that is a series of an implementation."""

    def measured(way: "Way") -> Maybe:
        same = {"cell": way.cell, "variant": str(way.name), "length": way.length.value}
        return way.data.measured(quantity, direction=direction, **same)

    return cached_property(measured)


def _gain(direction: str) -> cached_property[Maybe]:
    """The fact that is a comparison with naive attention: times as fast."""

    def compared(way: "Way") -> Maybe:
        same = {"cell": way.cell, "length": way.length.value, "direction": direction}
        rows = way.data.dicts("comparisons", a=PLAIN, b=str(way.name), **same)
        return of_ratio(first_of(rows) or {})

    return cached_property(compared)


@frozen
class Way:
    """An implementation in a cell, at a length."""

    data: Data
    cell: str
    name: Name
    length: Quantity

    forward = _series("time", "forward")
    backward = _series("time", "backward")
    rate = _series("rate", "forward")
    kept = _series("before_backward", "backward")
    gain = _gain("forward")
    backward_gain = _gain("backward")

    @cached_property
    def of_ceiling(self) -> Maybe:
        """The rate, of a large product's."""
        precision = self.data.row("cells", cell=self.cell)["precision"]
        return share(self.rate, machine(self.data).rate(precision))

    @property
    def both(self) -> Maybe:
        """Forward and backward together."""
        return plus(self.forward, self.backward)


@frozen
class Attention(Chapter):
    """Of a cell: a head dimension in a precision, with the implementations that it measures.

    longest: the longest length that naive attention's backward pass reached, else any; batch:
    sequences there; ways: each implementation there; forward, backward: the fastest two of them, as
    _fastest has them. heads: of a sequence, None where the inputs have no dimension of them;
    key_value_heads: of keys and values, where they are fewer. is_batch_of_length: whether the batch
    shrinks as the length grows. refused: what of the cell cannot run here, each with its reason.
    lengths: naive attention beside the fastest other one, none of a single length; shapes: the
    other cells. oom_length: the shortest at which naive attention ran out of memory.

    Of naive attention there: score_bytes: bytes that its forward pass moves for each score.
    arithmetic: what its products take at the ceiling, by the operations that the fastest one
    counts. naive_predicted: its bytes at the copy's rate and its products; it multiplies what a
    mask hides, too. kept_predicted: bytes that it keeps for backward. before_longest: the next
    shorter length, where it ran at both; growth: how many times as long its forward pass takes as
    there, and scores_growth the same of the number of scores.
    """

    cell: str
    d_head: str
    precision: str
    batch: Quantity
    heads: Maybe
    key_value_heads: Maybe
    is_causal: bool
    is_batch_of_length: bool
    longest: Quantity
    ways: list[Way]
    forward: Row
    backward: Row
    refused: Name | None
    naive: Way | None
    lengths: list[Row]
    oom_length: Maybe
    shapes: list[Row]
    score_bytes: Quantity
    arithmetic: Maybe
    naive_predicted: Maybe
    kept_predicted: Quantity
    before_longest: Maybe
    growth: Maybe
    scores_growth: Maybe

    naive_gap = made_of(gap, "naive.forward", "naive_predicted")
    kept_gap = made_of(gap, "naive.kept", "kept_predicted")


def facts(data: Data) -> Attention | None:
    """Of the plain cell with the most implementations, in 16 bits if there is one; else of one with
    heads or a mask."""
    cell = _subject(data)
    if cell is None:
        return None
    rows = data.series(cell=cell)
    precision, options = rows[0]["precision"], options_of(rows[0])
    is_mixed, is_causal = precision in MIXED, options.get("mask", "full") != "full"
    times = [row for row in rows if row["quantity"] == "time"]
    naive = [row for row in times if (row["variant"], row["direction"]) == (PLAIN, "backward")]
    longest = max(row["length"] for row in naive or times)
    shorter = max((row["length"] for row in rows if row["length"] < longest), default=0)
    batch = next(row["batch"] for row in rows if row["length"] == longest)
    heads, key_value_heads = (options.get(name) for name in ("heads", "key_value_heads"))
    scores = batch * int(heads or 1) * longest**2

    there = ways(data, cell, longest)
    own, before = naive_of(there), naive_of(ways(data, cell, shorter))
    growth = over(own.forward, before.forward) if own and before else None
    here, quickest = machine(data), _fastest(data, there, "forward")
    best = quickest["first"]
    counted = scaled(best.rate, value_of(best.forward), "FLOP") if best else None
    arithmetic = time_of(counted, here.rate(precision))
    score_bytes = SCORE_FORWARD[is_mixed] - (0 if is_causal else SCORE_MASK[is_mixed])
    copied = time_of(Quantity(scores * score_bytes, "B"), here.copy)

    failed = data.dicts("series", cell=cell, quantity="time", variant=PLAIN, status="oom")
    reason = data.row("cells", cell=cell).get("reason")
    return Attention(
        data=data,
        cell=cell,
        d_head=rows[0]["size"].removeprefix("d"),
        precision=precision,
        batch=count(batch),
        heads=count(int(heads)) if heads else None,
        key_value_heads=count(int(key_value_heads)) if key_value_heads else None,
        is_causal=is_causal,
        is_batch_of_length="tokens" in options,
        longest=count(longest),
        ways=there,
        forward=quickest,
        backward=_fastest(data, there, "backward"),
        refused=Name(reason) if reason else None,
        naive=own,
        lengths=lengths(data, cell),
        oom_length=count(min(row["length"] for row in failed), cell) if failed else None,
        shapes=shapes(data, cell),
        score_bytes=count(score_bytes),
        arithmetic=arithmetic,
        naive_predicted=plus(copied, scaled(arithmetic, 2 if is_causal else 1)),
        kept_predicted=Quantity(scores * KEPT[is_mixed], "B"),
        before_longest=count(shorter) if growth else None,
        growth=growth,
        scores_growth=count((longest / shorter) ** 2) if growth else None,
    )


def _fastest(data: Data, ways: list[Way], direction: str) -> Row:
    """The first two in a direction; how many times as long the second takes (`ratio`); and the
    verdict on the two, empty where they were not compared."""
    first, second, *_ = [*ordered(ways, direction), None, None]
    names = [str(way.name) for way in (first, second) if way]
    where = {"cell": first.cell, "length": first.length.value} if first else {}
    pair = first_of(data.dicts("comparisons", a=names, b=names, direction=direction, **where))
    slow, quick = (getattr(way, direction, None) for way in (second, first))
    return {
        "first": first,
        "second": second,
        "ratio": over(slow, quick),
        "verdict": pair["verdict"] if pair else "",
    }


def _subject(data: Data) -> str | None:
    times = data.series(study="attention", quantity="time")
    usual = [row for row in times if options_of(row).keys() <= USUAL]
    plain = [row for row in usual if not row["options"]]
    cells = grouped(plain or usual, "cell")
    (cell,) = max(cells, key=lambda each: _order(cells[each]), default=(None,))
    return cell


def options_of(row: Row) -> dict[str, str]:
    """`mask=causal heads=16` by their names."""
    return dict(option.split("=") for option in row["options"].split())


def _order(rows: list[Row]) -> list[object]:
    """The chapter's cell is that of the highest."""
    names = {row["variant"] for row in rows}
    return [
        rows[0]["precision"] in MIXED,
        PLAIN in names,
        len(names),
        rows[0]["size"] == "d64",
        len(rows),
    ]


def ways(data: Data, cell: str, length: float) -> list[Way]:
    """Each implementation of a cell that was timed at a length."""
    rows = data.series(cell=cell, quantity="time", length=length)
    names = dict.fromkeys(row["variant"] for row in rows)
    at = count(length)
    return [Way(data=data, cell=cell, name=Name(name), length=at) for name in names]


def naive_of(ways: Iterable[Way]) -> Way | None:
    """Attention as it is written out."""
    return first_of(way for way in ways if way.name == PLAIN)


def others_of(ways: Iterable[Way]) -> list[Way]:
    """All but that."""
    return [way for way in ways if way.name != PLAIN]


def lengths(data: Data, cell: str) -> list[Row]:
    """Naive attention beside the fastest other one at every length; none of a single length.

    A row's length (a count of positions), and two ways, of which either may be missing.
    """
    rows = data.series(cell=cell, quantity="time", direction="forward")
    found = []
    for length in sorted({row["length"] for row in rows}):
        there = ways(data, cell, length)
        fastest = least(others_of(there), "forward")
        found.append({"length": count(length), "naive": naive_of(there), "fastest": fastest})
    return found if len(found) > 1 else []


def shapes(data: Data, shown: str) -> list[Row]:
    """Each other cell at its longest length.

    what: its shape and precision. fastest: the way whose passes take least together, of so many
    ways; where none has both passes, the one whose forward pass takes least.
    """
    rows = [row for row in data.series(study="attention") if row["cell"] != shown]
    found = []
    for (cell,), own in grouped(rows, "cell").items():
        there = ways(data, cell, max(row["length"] for row in own))
        fastest = least(there, "both") or least(there, "forward")
        one = own[0]
        options = map(_words, one["options"].split())
        what = Name(", ".join([one["size"], one["precision"], *options]))
        if fastest:
            found.append({"what": what, "fastest": fastest, "ways": count(len(there))})
    return found


def _words(option: str) -> str:
    key, _, value = option.partition("=")
    return value if key == "mask" else f"{key.replace('_', ' ')} {int(value):,}"
