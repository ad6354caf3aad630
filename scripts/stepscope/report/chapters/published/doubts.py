"""Published figures that cannot be compared, that cannot be true, and slips."""

from collections.abc import Sequence

from stepscope.report.data.published import Beside, Published, reasons
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.studies.published.findings import cells_of

MOST_REASONS, MOST_UNTRUE = 3, 3
MOST_LETTERS = 110  # of a reason, which a file of a user may give


def not_comparable(found: Sequence[Beside]) -> list[Finding]:
    """The most frequent reasons, and how many figures have others."""
    told, groups = [], list(reasons(found).items())
    for reason, own in groups[:MOST_REASONS]:
        numbers = {
            "lost": Number(len(own), cells_of(own), formatting.count),
            "source": Number(_sources([each.figure for each in own]), show=str),
            "reason": Number(formatting.shortened(reason, MOST_LETTERS), show=str),
        }
        figures = "figure" if len(own) == 1 else "figures"
        told.append(Finding("what cannot be compared", f"{{lost}} {figures} of {{source}}: {{reason}}.", numbers))
    rest = [each for _, own in groups[MOST_REASONS:] for each in own]
    if rest:
        numbers = {
            "rest": Number(len(rest), cells_of(rest), formatting.count),
            "others": Number(len(groups) - MOST_REASONS, show=formatting.count),
        }
        figures = "figure has" if len(rest) == 1 else "figures have"
        words = "another reason" if len(groups) - MOST_REASONS == 1 else "{others} other reasons"
        told.append(Finding("what cannot be compared", f"{{rest}} more {figures} {words}.", numbers))
    return told


def untrue(published: Published) -> list[Finding]:
    """What cannot be true, by source and reason, the most figures first; also of cells that were not measured here."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for figure, why in published.untrue:
        groups.setdefault((figure["source"], why), []).append(figure)
    most = sorted(groups, key=lambda key: -len(groups[key]))[:MOST_UNTRUE]
    told = []
    for source, why in most:
        own = groups[source, why]
        numbers = {
            "figures": Number(len(own), (), formatting.count),
            "source": Number(formatting.shortened(source, 40), show=str),
            "item": Number(formatting.shortened(own[0]["item"] or own[0]["quantity"], 40), show=str),
            "why": Number(formatting.shortened(why, MOST_LETTERS), show=str),
        }
        are = "figure" if len(own) == 1 else "figures"
        told.append(Finding("what cannot be true", f"{{figures}} {are} of {{source}} ({{item}}): {{why}}.", numbers))
    return told


def slips(published: Published) -> Finding | None:
    """How many figures stand beside a slip of the text."""
    own = published.slips
    if not own:
        return None
    numbers = {
        "figures": Number(len(own), (), formatting.count),
        "source": Number(_sources(own), show=str),
    }
    answer = "Beside {figures} figures ({source}) the text says something else; the data quote it."
    return Finding("where do texts slip", answer, numbers)


def _sources(figures: Sequence[dict]) -> str:
    return formatting.shortened(formatting.listing(list(dict.fromkeys(each["source"] for each in figures)), 3), 60)
