"""Attention by itself: implementations at growing lengths, what they move and keep, and which one
is fastest."""

from stepscope.report.facts.attention_ways import (
    PLAIN,
    Way,
    lengths,
    naive_of,
    others_of,
    shapes,
    ways,
)
from stepscope.report.facts.machine import MIXED, SCORE_FORWARD, SCORE_MASK, Chapter, machine
from stepscope.report.kit.data import Data, Row, grouped, of_ratio
from stepscope.report.kit.named import Name, first_of, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    gap,
    ordered,
    over,
    plus,
    scaled,
    time_of,
    value_of,
)

# Bytes a score that naive attention keeps for backward, under autocast and in fp32: exponentials in
# fp32, weights in the inputs' type.
KEPT = {True: 4 + 2, False: 4 + 4}
# Options with which a cell can be the chapter's.
USUAL = {"batch", "heads", "key_value_heads", "tokens", "mask"}
# The slowest over the quickest of a library's kernels, from which on a reader should be told.
DIFFERENT = 1.02


@frozen
class Attention(Chapter):
    """Of a cell: a head dimension in a precision, with the implementations that it measures.

    longest: the longest length that naive attention's backward pass reached, else any; batch:
    sequences there; ways: each implementation there, and by_backward those by their backward pass,
    the fastest first. heads: of a sequence, None where the inputs have no dimension of them;
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

    best: the fastest forward pass but for naive attention; second: the next; best_ratio: how many
    times as long that takes; verdict: on the two, empty where they were not compared.
    is_backward_open: whether the first two by their backward pass were compared and not told
    apart. library: PyTorch's own kernels, the fastest first; none where they hardly differ.
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
    best: Way | None
    second: Way | None
    best_ratio: Maybe
    verdict: str
    by_backward: list[Way]
    is_backward_open: bool
    library: list[Way]

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
    others = ordered(others_of(there), "forward")
    best, second = first_of(others), first_of(others[1:])
    here = machine(data)
    counted = scaled(best.rate, value_of(best.forward), "FLOP") if best else None
    arithmetic = time_of(counted, here.rate(precision))
    score_bytes = SCORE_FORWARD[is_mixed] - (0 if is_causal else SCORE_MASK[is_mixed])
    copied = time_of(Quantity(scores * score_bytes, "B"), here.copy)

    same = {"cell": cell, "length": longest}
    pair = _pair(data, best, second, **same, direction="forward")
    by_backward = ordered(there, "backward")
    backward = _pair(data, *by_backward[:2], **same, direction="backward")
    failed = data.dicts("series", cell=cell, quantity="time", variant=PLAIN, status="oom")
    kernels = ordered([way for way in there if way.name.startswith("sdpa-")], "both")
    is_wide = kernels and value_of(kernels[-1].both) > DIFFERENT * value_of(kernels[0].both)
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
        best=best,
        second=second,
        best_ratio=of_ratio(pair)
        or (over(second.forward, best.forward) if best and second else None),
        verdict=pair.get("verdict", ""),
        by_backward=by_backward,
        is_backward_open=backward.get("verdict") == "unclear",
        library=kernels if is_wide else [],
    )


def _pair(data: Data, a: Way | None = None, b: Way | None = None, **where: object) -> Row:
    """The comparison of two, whichever was the first; empty where they were not compared."""
    names = [str(way.name) for way in (a, b) if way]
    rows = data.dicts("comparisons", a=names, b=names, **where)
    return first_of(rows) or {}


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
