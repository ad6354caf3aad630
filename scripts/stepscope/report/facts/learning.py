"""Learning: what variants of a step have learned, beside the first of them."""

from functools import cached_property

from stepscope.figures.learning import learned
from stepscope.report.facts.machine import Chapter, Place, place
from stepscope.report.kit.data import Data, Row, shown
from stepscope.report.kit.named import first_of, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, within
from stepscope.results.learning import LOST


@frozen
class Learning(Chapter):
    """Of the largest place that was trained at."""

    place: Place
    rows: list[Row]

    @cached_property
    def variants(self) -> list[Row]:
        """Those that were trained, in their order; `ratio`: the held-out loss over the first's."""
        found = []
        for row in self.rows:
            told = row | shown(row, held_out="loss", ratio="loss")  # with its flags
            told["held_out"] = _with_ends(told["held_out"], row["low"], row["high"])
            told["ratio"] = _with_ends(told["ratio"], row["ratio_low"], row["ratio_high"])
            found.append(told)
        return [each for each in found if each["held_out"]]

    @cached_property
    def lost(self) -> list[Row]:
        """That do not learn."""
        return [each for each in self.variants if each["verdict"] == LOST]

    @cached_property
    def untrained(self) -> list[Row]:
        """That could not be trained, each with its reason."""
        return [shown(row) for row in self.rows if row["status"] != "ok"]

    @cached_property
    def first(self) -> Row:
        """What the others are compared with; empty where it was not trained."""
        name = self.rows[0]["variant"]
        return next((each for each in self.variants if each["variant"] == name), {})

    @cached_property
    def tokens(self) -> Quantity:
        """Of a step."""
        return count(self.place.batch * self.place.context)

    @cached_property
    def rescued(self) -> list[Row]:
        """Those that do not learn, in a precision that does so with the loss scaled."""
        learn = [each for each in self.variants if each not in self.lost]
        scaled = {each["own_precision"] for each in learn if each["is_scaled"]}
        plain = (each for each in self.lost if not each["is_scaled"])
        return [each for each in plain if each["own_precision"] in scaled]

    @property
    def condemned(self) -> list[Row]:
        """The others that do not learn."""
        return [each for each in self.lost if each not in self.rescued]

    def of(self, precision: str) -> Row | None:
        """The first variant that was trained in a precision."""
        return first_of(each for each in self.variants if each["own_precision"] == precision)


def _with_ends(value: Maybe, low: float, high: float) -> Maybe:
    return within(value, low, high) if value else None


def facts(data: Data) -> Learning | None:
    """Of the learning study."""
    rows = [row | {"table": "learning"} for row in learned(data).to_dict("records")]
    where = place(data, rows[0]) if rows else None
    return Learning(data=data, place=where, rows=rows) if where else None
