"""Links to the explorer, followed in the tables: what they choose are the rows of the numbers above
them."""

import re
from urllib.parse import parse_qsl

import pytest
from common import ROOT, aggregated
from stepscope.figures import OF_ALL, OF_MACHINE, theme
from stepscope.report import book, links
from stepscope.report.kit.data import Data
from stepscope.report.kit.quantity import Quantity
from stepscope.report.kit.view import values_of
from stepscope.results.schema import NUMBER, TABLES
from stepscope.results.tables import Tables

MACHINE = "nvidia-h200"
LARGE = ("timeline", "memory_timeline")  # no table of a page is of these
AXES = ("show", "of", "table", "rows", "columns", "facet", "stat", "sort")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tables of the example's records."""
    return aggregated(tmp_path_factory.mktemp("h200"))


def chosen(state, tables):
    """The rows that an address chooses, as the explorer's script does it."""
    name, _, quantity = state.get("of", "").partition(".")
    frame = tables[state.get("table", name)]
    filters = {key: value for key, value in state.items() if key not in AXES}
    if name == "series":
        filters["quantity"] = quantity
    for column, value in filters.items():
        if column in frame:
            wanted = ["" if each == "(none)" else each for each in value.split("|")]
            frame = frame[frame[column].astype(str).isin(wanted)]
    return frame


def states(text):
    """Those of the addresses in a text."""
    return [dict(parse_qsl(each)) for each in re.findall(r"explorer\.html#([^)]*)", text)]


def numbers(frame, table):
    """What is measured in these rows, or tells them apart."""
    columns = [each.name for each in TABLES[table].columns.values() if each.kind == NUMBER]
    return set(frame[[each for each in columns if each in frame]].to_numpy().ravel())


def tables_of_pages(data, tmp_path):
    """The numbers of each table of the pages, and where its links lead."""
    told = []
    plain = links.links_of_table

    def noted(rows, columns):
        made = plain(rows, columns)
        told.append((rows, columns, made))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "links_of_table", noted)
        request = book.Request(data.folder, tmp_path, ROOT / "report", tmp_path, "")
        book.pages_of(book.facts_of(data), book.templates_of(request, MACHINE, [MACHINE]))
    for rows, columns, made in told:
        shown = [value for _, values in values_of(rows, columns) for value in values]
        yield [value for value in shown if isinstance(value, Quantity)], states(made)


def test_a_tables_links_lead_to_the_rows_of_its_numbers(folder, tmp_path):
    data = Data(folder, MACHINE)
    held = {}  # table, cell → all that is measured of it
    for table in TABLES:
        frame = data[table]
        if table not in LARGE and "cell" in frame:
            for cell, rows in frame.groupby("cell"):
                held[table, cell] = numbers(rows, table)
    checked = 0
    for quantities, found in tables_of_pages(data, tmp_path):
        rows = {state["table"]: chosen(state, data) for state in found}
        assert all(len(frame) for frame in rows.values())
        known = set().union(*(numbers(frame, table) for table, frame in rows.items()))
        cells = set().union(*(frame.get("cell", []) for frame in rows.values()))
        for quantity in quantities:
            if quantity.of and quantity.cells:
                assert cells & set(quantity.cells)
            tables = {name.partition(".")[0] for name in quantity.of}
            places = [(table, cell) for table in tables for cell in quantity.cells]
            is_measured = any(quantity.value in held.get(place, ()) for place in places)
            is_one = len(quantity.of) == 1 and quantity.value != 0  # not made of several
            if is_one and is_measured:
                assert quantity.value in known, (str(quantity), found)
                checked += 1
    assert checked > 400


class Left(Tables):
    """Tables of which one has only these rows, but for other quantities and studies."""

    def __init__(self, folder, state, without=False):
        super().__init__(folder, MACHINE)
        table = state.get("table", state.get("of", "").partition(".")[0])
        frame, kept = self[table], chosen(state, self)
        is_kept = frame.index.isin(kept.index)
        is_other = ~is_kept
        for column in ("quantity", "study"):
            if table == "series":
                is_other &= frame[column].isin(set(kept[column]))
        self._read[table, None] = frame[~is_kept if without else ~is_other]


@pytest.mark.parametrize("name", OF_MACHINE)
def test_a_figures_link_leads_to_what_it_draws(name, folder):
    """Drawn of the rows that its link chooses it is the same; drawn without them it is not."""
    state = links.figure_view(name, Data(folder, MACHINE))
    drawn = theme.render(OF_MACHINE[name], Tables(folder, MACHINE))
    if drawn is None:
        assert name in ("ranks", "curves")  # of studies that the example has none of
        return
    assert theme.render(OF_MACHINE[name], Left(folder, state)) == drawn
    assert theme.render(OF_MACHINE[name], Left(folder, state, without=True)) != drawn


def test_every_figure_has_a_view(folder):
    assert {*links.VIEWS, *links.OF_ALL_MACHINES} == {*OF_MACHINE, *OF_ALL}
    assert len(chosen(links.figure_view("published", Data(folder, MACHINE)), Tables(folder))) > 10


def test_many_cells_are_chosen_by_what_they_have_in_common():
    cells = [f"gpu/timing/small/ctx{context}/fp32" for context in range(links.MOST_CELLS + 1)]
    every = [Quantity(1.0, "s", cells=(cell,), of=("series.time",)) for cell in cells]
    (few,) = links.views_of(every[:2])
    assert few == {
        "show": "rows",
        "table": "series",
        "cell": "|".join(cells[:2]),
        "quantity": "time",
    }
    (many,) = links.views_of(every)
    assert (many["machine"], many["study"], many["quantity"]) == ("gpu", "timing", "time")
    assert links.views_of([Quantity(2.0, "1")]) == []
