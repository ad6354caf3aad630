"""Templates to Markdown to HTML: what is left out, what is an error, what is harmless."""

import re
from dataclasses import dataclass

import jinja2
import pytest
from stepscope.report.kit import html, named, page
from stepscope.report.kit.quantity import Quantity
from stepscope.report.kit.view import table

NBSP = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Facts:
    there: Quantity
    name: named.Name
    gone: Quantity | None = None
    by_kind: tuple = ()


def rendered(text):
    facts = Facts(Quantity(0.5, "s"), named.Name("<b>_x_</b> [a](b)"))
    templates = page.environment(__file__, lambda name: "figures/x.svg" if name == "x" else None)
    return page.page_of("test", templates.from_string(text).render(facts=facts))


def test_a_missing_value_drops_its_paragraph_item_and_table():
    made = rendered(
        "# T\n\nSays {{ facts.there }}.\n\nSays {{ facts.gone }}.\n\n"
        "- a {{ facts.there }}\n- b {{ facts.gone.value }}\n\n"
        "{{ facts.by_kind | table('a: a') }}\n"
    )
    assert made.markdown == f"# T\n\nSays 500{NBSP}ms.\n\n- a 500{NBSP}ms\n"
    assert len(made.dropped) == 3


def test_a_paragraph_may_be_broken_over_lines():
    made = rendered(
        "# T\n\nOne {{ facts.there }}\ntwo\n{% if facts.gone %}\nthree\n{% endif %}\nfour.\n\n"
        "- a\n  b\n- c {{ facts.gone }}\n  d\n\n| a |\n| - |\n| b |\n"
    )
    assert made.markdown == f"# T\n\nOne 500{NBSP}ms two four.\n\n- a b\n\n| a |\n| - |\n| b |\n"


def test_headings_with_nothing_below_them_go():
    made = rendered("# T\n\nText.\n\n## A\n\n### B\n\n{{ facts.gone }}\n\n## C\n\nText.")
    assert made.markdown == "# T\n\nText.\n\n## C\n\nText.\n"


def test_an_announcement_without_its_list_goes():
    assert (
        rendered(
            "# T\n\nThese:\n\n{% for one in facts.by_kind %}\n- {{ one }}\n{% endfor %}\n\nEnd."
        ).markdown
        == "# T\n\nEnd.\n"
    )


def test_a_page_of_a_heading_alone_is_empty():
    assert rendered("# T\n\n{{ facts.gone }}").markdown == ""


@pytest.mark.parametrize(
    "text",
    [
        "{{ facts.typo }}",
        "{% if facts.typo %}{% endif %}",
        "{% for x in facts.typo %}{% endfor %}",
        "{{ typo }}",
        "{{ facts.there.typo }}",
    ],
)
def test_a_name_that_nothing_declares_is_an_error(text):
    with pytest.raises(jinja2.UndefinedError):
        rendered(text)


def test_names_of_records_are_text():
    made = rendered("# T\n\n{{ facts.name }} and {{ [facts.name] | listed }}.")
    body = html.body(made.markdown, {})
    assert body.count("&lt;b&gt;_x_&lt;/b&gt; [a](b)") == 2
    assert "<b>" not in body and "href" not in body


def test_links_live_or_are_text():
    text = "[a](memory.md) [b](gone.md) [c](memory.md#part)\n"
    assert page.linked(text, {"memory": "what-fills-it"}) == "[a](#what-fills-it) b [c](#part)\n"
    assert page.linked("One. It is 1.5, as [a](gone.md) says. Two.\n", {}) == "One. Two.\n"
    bare = "# One\n\nText.\n\n## What to do\n\nIt is as [a](gone.md) says.\n"
    assert page.linked(bare, {}) == "# One\n\nText.\n"


def test_a_table_has_one_unit_a_column_and_no_empty_one():
    rows = [
        {"a": "x|y", "b": Quantity(0.5, "s", 0.4, 0.6), "c": None},
        {"a": "z", "b": Quantity(2e-3, "s"), "c": None},
    ]
    made = table(rows, "name: a; time: b; gone: c", "Caption.")
    assert made.splitlines() == [
        "| name | time (ms) |",
        "| :--- | ---: |",
        "| x\\|y | 500<br>[400,\u00a0600] |",
        "| z | 2.00 |",
        "",
        "*Caption.*",
    ]


def test_names_alone_are_no_table():
    assert table([{"a": "x", "b": None}], "name: a; time: b") is None


def test_a_column_of_several_units_names_each():
    rows = [{"a": Quantity(1.0, "s")}, {"a": Quantity(2e9, "B/s")}]
    assert f"| 2.00{NBSP}GB/s |" in table(rows, "a: a")


def test_a_figure_stands_within_the_page():
    svg = (
        '<svg viewBox="0 0 10 10" xmlns="http://www.w3.org/2000/svg"><path id="p"/><use'
        ' xlink:href="#p"/></svg>'
    )
    body = html.body("![A “b”](x.svg)\n*A “b”*\n", {"x.svg": svg})
    assert "<figure>" in body and 'role="img"' in body and "<figcaption>A “b”</figcaption>" in body
    assert 'id="p"' not in body  # two figures may have equal names


def test_a_heading_has_one_anchor_whoever_asks():
    title = "A step on Intel(R) Xeon(R) takes 1 s (TM)"
    (anchor,) = re.findall(r'<h1 id="([^"]+)"', html.body(f"# {title}\n", {}))
    assert anchor == html.slug(title) == "a-step-on-intel-xeon-takes-1-s"


def test_what_scrolls_is_named_and_a_caption_is_read_once():
    svg = '<svg viewBox="0 0 10 10" xmlns="http://www.w3.org/2000/svg"><path d="M0 0h1"/></svg>'
    table = "| a | b |\n| :-- | --: |\n| c | 1 |\n"
    body = html.body(f"{table}\n*Of c.*\n\n{table}\n![x](x.svg)\n*Drawn.*\n", {"x.svg": svg})
    scrolls = re.findall(r'<div class="(?:table|figure)"[^>]*>', body)
    assert len(scrolls) == 3 and all('role="region"' in each for each in scrolls)
    (labelled,) = re.findall(r'aria-labelledby="([^"]+)"', body)
    assert f'<p class="caption" id="{labelled}">Of c.</p>' in body
    assert len(set(re.findall(r'aria-label="([^"]+)"', body))) == 3
    assert len(re.findall(r'<th scope="col"', body)) == len(re.findall(r"<th\b", body)) == 4
    assert body.count("Drawn.") == 1
