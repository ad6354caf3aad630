"""A figure said shorter: paths by hand, ids, clips and colours; tests/browser see that it looks as
before."""

from xml.etree import ElementTree

import made
import pytest
from stepscope.figures import svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def original():
    return made.plot()


@pytest.fixture(scope="module")
def shortened(original):
    return svg.shorter(original)


def test_what_refers_to_its_own_figure_is_no_class_of_all(shortened):
    rules = "".join(
        each.text for each in ElementTree.fromstring(shortened).iter(f"{NAMESPACE}style")
    )
    assert "url(#" in shortened and "url(" not in rules


def test_a_name_with_control_characters_is_drawn():
    assert ">a\ufffdb<" in svg.shorter(f'<svg xmlns="{NAMESPACE[1:-1]}"><text>a\x1bb</text></svg>')


def test_factors_keep_their_digits():
    factors = "matrix(0.015625 0 0 0.0009 1 2)"
    assert f'"{factors}"' in svg.shorter(
        f'<svg xmlns="{NAMESPACE[1:-1]}"><path d="M0 0" transform="{factors}"/></svg>'
    )


def test_groups_pass_on_what_they_say(original, shortened):
    def clipped(text):
        return [
            sum(1 for _ in group.iter(f"{NAMESPACE}use"))
            for group in ElementTree.fromstring(text).iter(f"{NAMESPACE}g")
            if group.get("clip-path")
        ]

    assert clipped(original) == clipped(shortened) != []


def test_it_is_less_than_half_and_comes_out_alike(original, shortened):
    assert len(shortened) < 0.5 * len(original)
    assert svg.shorter(original) == shortened


@pytest.mark.parametrize(
    "path, short",
    {
        "M 1 2 \nL 3.456 2 \nL 3.456 9 \nz\n": "M1 2h2.46v7z",
        "M 0 0 L 0 -0.5 L -0.25 -1 M 5 -1 L 6 -1": "M0 0v-.5l-.25-.5m5.25 0h1",
        "M 1 1 z M 2 2 L 3 3": "M1 1zM2 2l1 1",
        "M 0 1 C 1 1 2 2 3 1 L 3 2": "M0 1C1 1 2 2 3 1v1",
        "": "",
    }.items(),
)
def test_paths(path, short):
    assert svg._lines(path) == short


def test_inline_has_ids_of_its_own_and_colours_of_the_page(shortened):
    text = '<?xml version="1.0"?><svg xmlns="x" viewBox="0 0 389 200"><style>*{fill:red}</style>'
    text += '<path id="a" fill="#0072b2"/>'
    text += '<use href="#a" clip-path="url(#b)"/><rect id="b" fill="#fffffe"/></svg>'
    part = svg.inline(text, 7, 'a "figure"\nof two')
    assert 'id="f7-0"' in part and 'href="#f7-0"' in part and "url(#f7-1)" in part
    assert (
        'fill="var(--figure-blue)"' in part
        and 'fill="var(--figure-paper)"' in part
        and "red" not in part
    )
    assert 'viewBox="0 0 389 200"' in part and 'aria-label="a &quot;figure&quot; of two"' in part
    assert part.startswith("<svg") and 'id="f7-' in svg.inline(shortened, 7, "")
