"""Learning: what variants of a step have learned, beside the first of them."""

from functools import cached_property

from stepscope.figures.learning import learned
from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import first_of, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, within
from stepscope.results.learning import LOST

from .machine import Chapter, Place, place


@frozen
class Learning(Chapter):
    """Of the largest place that was trained at.

    variants: those that were trained, in their order, as _told has them; first: of them what the
    others are compared with, empty where it was not trained. untrained: the others, each with its
    reason.
    """

    place: Place
    variants: list[Row]
    first: Row
    untrained: list[Row]

    @cached_property
    def lost(self) -> list[Row]:
        """That do not learn."""
        return [each for each in self.variants if each["verdict"] == LOST]

    @cached_property
    def tokens(self) -> Quantity:
        """Of a step."""
        return count(self.place.batch * self.place.context)

    def of(self, precision: str) -> Row | None:
        """The first variant that was trained in a precision."""
        return first_of(each for each in self.variants if each["own_precision"] == precision)


def _told(row: Row) -> Row:
    """ratio: the held-out loss over the first's."""
    told = shown(row, held_out="loss", ratio="loss")
    return told | {
        "held_out": _with_ends(told["held_out"], row["low"], row["high"]),
        "ratio": _with_ends(told["ratio"], row["ratio_low"], row["ratio_high"]),
    }


def _with_ends(value: Maybe, low: float, high: float) -> Maybe:
    return within(value, low, high) if value else None


def facts(data: Data) -> Learning | None:
    """Of the learning study."""
    rows = [row | {"table": "learning"} for row in learned(data).to_dict("records")]
    where = place(data, rows[0]) if rows else None
    if where is None:
        return None
    variants = [each for each in map(_told, rows) if each["held_out"]]
    by_name = {each["variant"]: each for each in variants}
    return Learning(
        data=data,
        place=where,
        variants=variants,
        first=by_name.get(rows[0]["variant"], {}),
        untrained=[shown(row) for row in rows if row["status"] != "ok"],
    )
