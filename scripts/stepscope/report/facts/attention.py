"""Attention by itself: implementations at growing lengths, what they move and keep, and which one
is fastest."""

from functools import cached_property

from stepscope.report.facts.attention_ways import (
    PLAIN,
    Way,
    lengths,
    naive_of,
    others_of,
    shapes,
    ways,
)
from stepscope.report.facts.machine import MIXED, SCORE_FORWARD, SCORE_MASK, Chapter
from stepscope.report.kit.data import Data, Row, grouped, of_ratio
from stepscope.report.kit.named import Name, first_of, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    gap,
    most,
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
    """Of a cell: a head dimension in a precision, with the implementations that it measures."""

    cell: str

    # What was measured.

    @cached_property
    def d_head(self) -> str:
        """The head dimension."""
        return self._first["size"].removeprefix("d")

    @cached_property
    def precision(self) -> str:
        """Of the inputs."""
        return self._first["precision"]

    @cached_property
    def batch(self) -> Quantity:
        """Sequences at the longest length."""
        rows = (row for row in self._rows if row["length"] == self._longest)
        return count(next(rows)["batch"])

    @cached_property
    def heads(self) -> Maybe:
        """Of a sequence; None where the inputs have no dimension of heads."""
        return self._heads("heads")

    @cached_property
    def key_value_heads(self) -> Maybe:
        """Those of keys and values, where they are fewer."""
        return self._heads("key_value_heads")

    def _heads(self, option: str) -> Maybe:
        heads = self._options.get(option)
        return count(int(heads)) if heads else None

    @cached_property
    def is_causal(self) -> bool:
        """Whether there is a mask."""
        return self._options.get("mask", "full") != "full"

    @cached_property
    def is_batch_of_length(self) -> bool:
        """Whether the batch shrinks as the length grows."""
        return "tokens" in self._options

    @cached_property
    def longest(self) -> Quantity:
        """The longest length that naive attention's backward pass reached, else any."""
        return count(self._longest)

    @cached_property
    def ways(self) -> list[Way]:
        """Each implementation there."""
        return ways(self.data, self.cell, self._longest)

    @cached_property
    def refused(self) -> Name | None:
        """What of the cell cannot run here, each with its reason."""
        reason = self.data.row("cells", cell=self.cell).get("reason")
        return Name(reason) if reason else None

    @cached_property
    def naive(self) -> Way | None:
        """Attention as it is written out."""
        return naive_of(self.ways)

    @cached_property
    def lengths(self) -> list[Row]:
        """Naive attention beside the fastest other one; none of a single length."""
        return lengths(self.data, self.cell)

    @cached_property
    def oom_length(self) -> Maybe:
        """The shortest length at which naive attention ran out of memory."""
        same = {"cell": self.cell, "quantity": "time", "variant": PLAIN, "status": "oom"}
        rows = self.data.dicts("series", **same)
        return count(min(row["length"] for row in rows), self.cell) if rows else None

    @cached_property
    def shapes(self) -> list[Row]:
        """The other cells."""
        return shapes(self.data, self.cell)

    # What the mechanism predicts of naive attention.

    @cached_property
    def score_bytes(self) -> Quantity:
        """Bytes that its forward pass moves for each score."""
        without_mask = SCORE_FORWARD[self._is_mixed] - SCORE_MASK[self._is_mixed]
        return count(SCORE_FORWARD[self._is_mixed] if self.is_causal else without_mask)

    @cached_property
    def arithmetic(self) -> Maybe:
        """What the products take at the ceiling, by the operations that the fastest one counts."""
        if self.best is None or self.best.forward is None:
            return None
        flop = scaled(self.best.rate, self.best.forward.value, "FLOP")
        return time_of(flop, self.machine.rate(self.precision))

    @cached_property
    def naive_predicted(self) -> Maybe:
        """Its bytes at the copy's rate and its products; it multiplies what a mask hides, too."""
        bytes_moved = Quantity(self._scores * self.score_bytes.value, "B")
        products = scaled(self.arithmetic, 2 if self.is_causal else 1)
        return plus(time_of(bytes_moved, self.machine.copy), products)

    @cached_property
    def naive_gap(self) -> Maybe:
        """How far its forward pass is off that."""
        return gap(self.naive.forward, self.naive_predicted) if self.naive else None

    @cached_property
    def kept_predicted(self) -> Quantity:
        """Bytes that it keeps for backward."""
        return Quantity(self._scores * KEPT[self._is_mixed], "B")

    @cached_property
    def kept_gap(self) -> Maybe:
        """How far what is allocated is off that."""
        return gap(self.naive.kept, self.kept_predicted) if self.naive else None

    @cached_property
    def before_longest(self) -> Maybe:
        """The next shorter length, where naive attention ran at both."""
        return count(self._shorter) if self.growth else None

    @cached_property
    def growth(self) -> Maybe:
        """How many times as long its forward pass takes at the longest length as there."""
        shorter = naive_of(ways(self.data, self.cell, self._shorter))
        return over(self.naive.forward, shorter.forward) if self.naive and shorter else None

    @cached_property
    def scores_growth(self) -> Maybe:
        """The same of the number of scores."""
        return count((self._longest / self._shorter) ** 2) if self.growth else None

    # Which one is fastest.

    @cached_property
    def best(self) -> Way | None:
        """The fastest forward pass but for naive attention."""
        return first_of(self._others)

    @cached_property
    def second(self) -> Way | None:
        """The next."""
        return first_of(self._others[1:])

    @cached_property
    def best_ratio(self) -> Maybe:
        """How many times as long that takes."""
        if self.best is None or self.second is None:
            return None
        if self._pair:
            return of_ratio(self._pair)
        return over(self.second.forward, self.best.forward)

    @cached_property
    def verdict(self) -> str:
        """On the two; empty where they were not compared."""
        return self._pair.get("verdict", "")

    @cached_property
    def by_backward(self) -> list[Way]:
        """All by their backward pass, the fastest first."""
        return ordered(self.ways, "backward")

    @property
    def is_backward_open(self) -> bool:
        """Whether the first two were compared and not told apart."""
        names = {str(way.name) for way in self.by_backward[:2]}
        same = {"cell": self.cell, "length": self._longest, "direction": "backward"}
        pairs = self.data.dicts("comparisons", verdict="unclear", **same)
        return any({row["a"], row["b"]} == names for row in pairs)

    @cached_property
    def library(self) -> list[Way]:
        """PyTorch's own kernels, the fastest first; none where they hardly differ."""
        own = ordered([way for way in self.ways if way.name.startswith("sdpa-")], "both")
        is_wide = own and value_of(own[-1].both) > DIFFERENT * value_of(own[0].both)
        return own if is_wide else []

    @cached_property
    def host(self) -> Way | None:
        """What takes the host longest, at the shortest length at which that was measured."""
        rows = self.data.series(cell=self.cell, quantity="host_time", direction="forward")
        shortest = min((row["length"] for row in rows), default=0)
        return most(ways(self.data, self.cell, shortest), "host_time")

    @cached_property
    def _rows(self) -> list[Row]:
        return self.data.series(cell=self.cell)

    @property
    def _first(self) -> Row:
        return self._rows[0]

    @property
    def _options(self) -> dict[str, str]:
        return options_of(self._first)

    @property
    def _is_mixed(self) -> bool:
        return self.precision in MIXED

    @cached_property
    def _longest(self) -> float:
        times = [row for row in self._rows if row["quantity"] == "time"]
        naive = [row for row in times if (row["variant"], row["direction"]) == (PLAIN, "backward")]
        return max(row["length"] for row in naive or times)

    @cached_property
    def _shorter(self) -> float:
        lengths = [row["length"] for row in self._rows if row["length"] < self._longest]
        return max(lengths, default=0)

    @property
    def _scores(self) -> float:
        """At the longest length, of all sequences and heads."""
        return self.batch.value * value_of(self.heads, missing=1) * self._longest**2

    @cached_property
    def _pair(self) -> Row:
        """The comparison of the two fastest; empty where they were not compared."""
        if self.best is None or self.second is None:
            return {}
        two = {"a": str(self.second.name), "b": str(self.best.name)}
        same = {"cell": self.cell, "length": self._longest, "direction": "forward"}
        return self.data.row("comparisons", **same, **two)

    @cached_property
    def _others(self) -> list[Way]:
        return ordered(others_of(self.ways), "forward")


def facts(data: Data) -> Attention | None:
    """Of the plain cell with the most implementations, in 16 bits if there is one; else of one with
    heads or a mask."""
    times = data.series(study="attention", quantity="time")
    usual = [row for row in times if options_of(row).keys() <= USUAL]
    plain = [row for row in usual if not row["options"]]
    cells = grouped(plain or usual, "cell")
    if not cells:
        return None
    (cell,) = max(cells, key=lambda each: _order(cells[each]))
    return Attention(data=data, cell=cell)


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
