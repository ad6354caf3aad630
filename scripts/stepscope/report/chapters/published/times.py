"""Published times of the model beside ours, a GPU and precision at a time."""

from collections.abc import Sequence
from statistics import median

from stepscope.report.data.published import BETTER, EXPLAINED, TOLERANCE, WORSE, Beside
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.compare import NOT_COMPARABLE, ratio_range, ratio_text
from stepscope.report.kit.finding import Finding, Number, key_of
from stepscope.report.studies.published.findings import cells_of

MOST_SENTENCES = 3
_WORDS = (EXPLAINED, BETTER, WORSE)


def groups(found: Sequence[Beside]) -> dict[tuple[str, str, str], list[Beside]]:
    """(source, GPU, precision) → its times of the model's phases, in the order of the files."""
    of: dict[tuple[str, str, str], list[Beside]] = {}
    for each in found:
        figure = each.figure
        if figure["quantity"] == "time" and figure["study"] != "attention" and each.published is not None:
            key = figure["source"], figure["gpu"] or "GPU not named", figure["precision"] or ""
            of.setdefault(key, []).append(each)
    return of


def compared(found: Sequence[Beside]) -> list[Beside]:
    """Those that have both times and may be compared."""
    return [each for each in found if each.ratio is not None and each.verdict != NOT_COMPARABLE]


def by_gpu(found: Sequence[Beside]) -> list[Finding]:
    """How many times as long a group's times take there, beside what the GPUs' rates foretell.

    Those groups of which the rates leave most times unexplained, and of which there are most times.
    """
    of = {key: own for key, every in groups(found).items() if (own := compared(every))}
    unexplained = {key: sum(each.verdict != EXPLAINED for each in own) for key, own in of.items()}
    most = sorted(of, key=lambda key: (-unexplained[key], -len(of[key])))[:MOST_SENTENCES]
    return [_of_group(key, of[key]) for key in of if key in most]


def _of_group(key: tuple[str, str, str], own: list[Beside]) -> Finding:
    source, gpu, precision = key
    cells, ratios = cells_of(own), [each.ratio for each in own]
    numbers = {
        "source": Number(formatting.shortened(source, 40), show=str),
        "gpu": Number(formatting.shortened(gpu, 40), show=str),
        "times": Number(len(own), cells, formatting.count),
        "range": Number(ratios, cells, ratio_range),
        "middle": Number(median(ratios), cells, ratio_text),
        "products": Number(own[0].arithmetic, (), ratio_text),
        "memory": Number(own[0].memory, (), ratio_text),
    }
    answer = f"On the {{gpu}} of {{source}}, in {precision}, {{times}} {'times are' if len(own) > 1 else 'time is'} {{range}} times ours"
    answer += ", {middle} in the median." if len(own) > 1 else "."
    cause = "Ours multiplies at {products} and moves at {memory} times that GPU's rate."
    parts = []
    for word in _WORDS:
        if verdict := [each for each in own if each.verdict == word]:
            numbers[key_of(word)] = Number(len(verdict), cells_of(verdict), formatting.count)
            parts.append(f"{word}: {{{key_of(word)}}}")
    return Finding(f"what of {source}, {gpu}, {precision}", answer, numbers, cause=f"{cause} {_sentence(parts)}")


def _sentence(parts: list[str]) -> str:
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def by_gpu_table(found: Sequence[Beside]) -> Table | None:
    """A row a source, GPU and precision."""
    rows = [
        {"key": key, "every": every, "ratios": [each.ratio for each in compared(every)]}
        for key, every in groups(found).items()
    ]
    left = f" {len(rows) - MOST_ROWS:,} more rows stand with the data." if len(rows) > MOST_ROWS else ""
    within = formatting.percent(TOLERANCE)
    caption = (
        "Published times over ours, of cells of the same shape, context, batch, precision and phase, and the ratios of "
        f"our GPU's rates to theirs. Explained: between both ratios, widened by {within}; the wider apart they are, "
        f"the less that says. Better here: above that, ours is quicker; worse: below.{left}"
    )
    columns = [
        *(
            Column(name, number=False, value=lambda row, at=at: row["key"][at])
            for at, name in enumerate(("source", "GPU", "precision"))
        ),
        Column("times", value=lambda row: len(row["every"]), show=formatting.count),
        Column("theirs over ours", group="compared", value=_range, number=False),
        Column(
            "matrix products", group="ratio of rates", value=lambda row: row["every"][0].arithmetic, show=ratio_text
        ),
        Column("memory", group="ratio of rates", value=lambda row: row["every"][0].memory, show=ratio_text),
        *(
            Column(
                word,
                group="times that are",
                value=lambda row, word=word: sum(each.verdict == word for each in row["every"]),
                show=formatting.count,
            )
            for word in (*_WORDS, NOT_COMPARABLE)
        ),
    ]
    return table.build("chapter-published", caption, columns, rows[:MOST_ROWS], legend=False)


def _range(row: dict) -> str:
    return ratio_range(row["ratios"]) if row["ratios"] else ""
