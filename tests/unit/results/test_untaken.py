"""A study whose cells no table takes is named, instead of missing in the report without a word."""

import pandas as pd
from stepscope.results.cells import MeasuredCell, untaken


def cell(study, name, status="ok"):
    record = {"summary": {"status": status}}
    return MeasuredCell(f"cpu/{study}/{name}", {}, "", "", record)


CELLS = [cell("timing", "a"), cell("timing", "b"), cell("bubbles", "a"), cell("late", "a", "oom")]


def test_a_study_is_named_whose_measured_cells_stand_in_no_table_but_that_of_cells():
    rows = [{"cell": each.name} for each in CELLS]
    rows = pd.DataFrame(rows)
    others = {"published": pd.DataFrame({"value": [1]}), "sums": pd.DataFrame()}
    found = {"cells": rows, "series": rows[:1], **others}
    assert untaken(CELLS, found) == ["bubbles"]
    assert untaken(CELLS, found | {"sums": rows[2:3]}) == []
