"""The variants of a ladder's cell by what each changes."""

from stepscope.axes import PLAIN_STEP
from stepscope.model.about import About, TakesAway
from stepscope.report.kit.named import Name, frozen
from stepscope.results.option_labels import ABOUT


@frozen
class Change:
    """A variant by what it changes.

    option: the one that it changes. kind: what its new value is called among those of all options:
    `tf32`, `sdpa`, `checkpoint 2` … after: the variant that it is made on. is_aside: it varies a
    rung, and no rung stands on it.
    takes_away: of the step before it, by which its gain is predicted.
    """

    name: Name
    variant: str
    option: str
    kind: str
    precision: str
    after: str
    is_aside: bool
    takes_away: TakesAway

    @property
    def about(self) -> About:
        """What the value says of itself; of a number of blocks no more than its name."""
        return ABOUT.get(self.kind) or About(label=self.name, title=self.name)

    @property
    def fuses_attention(self) -> bool:
        """Whether it stands in place of attention that writes its scores out."""
        return self.takes_away == "scores"


def changes(rows: list[dict]) -> dict[str, Change]:
    """Each variant by its name. rows: of variants.csv, in their order."""
    attention = {row["variant"]: row["attention"] for row in rows}
    made = {}
    for row in rows:
        made[row["variant"]] = Change(
            name=Name(row["label"]),
            variant=row["variant"],
            option=row["changed"],
            kind=row["kind"],
            precision=row["precision"],
            after=row["after"],
            is_aside=row["is_aside"],
            takes_away=_taken_away(row["kind"], attention.get(row["after"], "naive")),
        )
    return made


def options(row: dict) -> dict[str, str]:
    """What a variant is run with, as a cell's options name it."""
    return {name: _text(row[name]) for name in PLAIN_STEP}


def _text(value: str | float) -> str:
    return f"{value:.0f}" if isinstance(value, float) else value


def _taken_away(kind: str, attention_before: str) -> TakesAway:
    """One fused attention in place of another takes no scores away."""
    taken = ABOUT[kind].takes_away if kind in ABOUT else ""
    had_scores = ABOUT[attention_before].takes_away != "scores"
    return taken if had_scores or taken != "scores" else ""
