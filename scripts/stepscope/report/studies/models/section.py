"""The part of the report that says what people's own models are. It has no cells of its own."""

from stepscope.report.data.machines import labels
from stepscope.report.data.own_models import own_models
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.models.findings import built, dropout, flops, unknown
from stepscope.report.studies.models.tables import models_table, more_table
from stepscope.tables.reader import Tables


def applies(tables: Tables) -> bool:
    """Without a model of one's own the report does without the section."""
    return not tables["models"].empty


def findings(tables: Tables) -> list[Finding]:
    """What the summary says: a few sentences a machine."""
    models = own_models(tables)
    by_machine = [[each for each in models if each.row["hardware"] == label] for label in labels(tables)]
    found = [about(own) for own in by_machine if own for about in (built, dropout, flops, unknown)]
    return [finding for finding in found if finding]


def context(tables: Tables) -> dict:
    """What report/sections/models.md.j2 is filled with."""
    models = own_models(tables)
    caption = "What was built, how inputs and loss were chosen, and FLOP of a forward and a backward pass, twice."
    return {
        "models": models_table("models", models, caption),
        "more": more_table("models-more", models, "What else is known of each model."),
    }
