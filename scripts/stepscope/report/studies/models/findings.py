"""What there is to say of people's own models."""

from collections.abc import Callable

from stepscope.report.data.own_models import OwnModel, longest
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.tables.models import APART, BY_FORMULA

MOST_TOLD = 3


def built(models: list[OwnModel]) -> Finding | None:
    """Which models of one's own ran, with their parameters; of many the range."""
    own = [each for each in longest(models) if formatting.known(each.row.get("parameters"))]
    if not own:
        return None
    cells = tuple(each.row["cell"] for each in own)
    counts = [each.row["parameters"] for each in own]
    tied = ", tied weights counted once" if any(each.row.get("tied") for each in own) else ""
    question, hardware = "which own models ran", own[0].row["hardware"]
    if len(own) > MOST_TOLD:
        numbers = {"counts": Number(counts, cells, _parameter_range)}
        answer = f"{len(own):,} models of one's own are trained as they are built: {{counts}} parameters{tied}."
        return Finding(question, answer, numbers, hardware)
    numbers = {f"n_{at}": Number(each, cells[at : at + 1], formatting.parameters) for at, each in enumerate(counts)}
    names = [f"{each.name} ({each.row.get('class') or '?'}, {{n_{at}}} parameters)" for at, each in enumerate(own)]
    are = "Models of one's own are trained as they are" if len(own) > 1 else "A model of one's own is trained as it is"
    return Finding(question, f"{are} built: {formatting.listing(names)}{tied}.", numbers, hardware)


def dropout(models: list[OwnModel]) -> Finding | None:
    """That some train with dropout, which stays on: its time and memory count."""
    own = [each for each in longest(models) if each.dropout]
    if not own:
        return None
    numbers = {"p": Number([p for each in own for p in each.dropout], tuple(each.row["cell"] for each in own), _range)}
    names = formatting.listing([each.name for each in own], 3)
    answer = f"{names} train{'s' * (len(own) == 1)} with dropout (p = {{p}}), which stays on and costs time and memory."
    return Finding("is there dropout", answer, numbers, own[0].row["hardware"])


def flops(models: list[OwnModel]) -> Finding | None:
    """How far PyTorch's count and the formula are apart, and which of the two rates are made of."""
    both = [each for each in models if each.apart is not None]
    if not both:
        return None
    cells = tuple(each.row["cell"] for each in both)
    far = [each for each in both if each.disagrees]
    question, hardware = "how many FLOP is a step of an own model", both[0].row["hardware"]
    if not far:
        numbers = {"gap": Number(max(abs(each.apart) for each in both), cells, formatting.percent)}
        every = "the own model" if len(both) == 1 else f"all {len(both):,} points of own models"
        answer = f"PyTorch's count of FLOP and the formula agree within {{gap}} in {every}."
        return Finding(question, answer, numbers, hardware)
    worst = max(far, key=lambda each: abs(each.apart))
    cell = (worst.row["cell"],)
    numbers = {
        "counted": Number(worst.row["flops_counter"], cell, formatting.flop),
        "formula": Number(worst.row["flops_formula"], cell, formatting.flop),
        "far": Number(len(far), cells, formatting.count),
    }
    source = "the formula" if worst.row.get("flops_from") == BY_FORMULA else "the count"
    answer = (
        f"Of a step of {worst.name} at {worst.row['context']:,.0f} PyTorch counts {{counted}}, the formula gives "
        f"{{formula}}; rates are of {source}."
    )
    if len(both) > 1:
        answer += f" They are more than {formatting.percent(APART)} apart in {{far}} of {len(both):,} points."
    return Finding(question, answer, numbers, hardware)


def unknown(models: list[OwnModel]) -> Finding | None:
    """Of how many models something could not be found out."""
    own = longest(models)
    open_ones = [each for each in own if each.unknown]
    if not open_ones:
        return None
    numbers = {"lines": Number(sum(len(each.unknown) for each in open_ones), tuple(e.row["cell"] for e in open_ones),
                               formatting.count)}  # fmt: skip
    names = formatting.listing([each.name for each in open_ones], MOST_TOLD)
    things = "thing" if numbers["lines"].value == 1 else "things"
    answer = f"Not found out: {{lines}} {things} of {names}; the table of models says what."
    return Finding("what is not known of own models", answer, numbers, own[0].row["hardware"])


def _plain(value: float) -> str:
    return f"{value:g}"


def _range(values: list[float]) -> str:
    return _ends(values, _plain)


def _parameter_range(values: list[float]) -> str:
    return _ends(values, formatting.parameters)


def _ends(values: list[float], show: Callable[[float], str]) -> str:
    """The smallest and the largest, or one where both are printed alike."""
    return " to ".join(dict.fromkeys([show(min(values)), show(max(values))]))
