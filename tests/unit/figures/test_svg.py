"""A figure said shorter: paths by hand, ids and colours; tests/browser see that it looks as
before."""

import made
import pytest
from stepscope.figures import svg


@pytest.fixture(scope="module")
def original():
    return made.plot()


@pytest.fixture(scope="module")
def shortened(original):
    return svg.shorter(original)


def test_a_name_with_control_characters_is_drawn():
    assert ">a\ufffdb<" in svg.shorter("<svg><text>a\x1bb</text></svg>")


def test_it_is_less_than_two_thirds_and_comes_out_alike(original, shortened):
    assert len(shortened) < 2 / 3 * len(original)
    assert svg.shorter(original) == shortened


@pytest.mark.parametrize(
    "short, path",
    {
        "M1 2h2.46v7z": "M 1 2 \nL 3.456 2 \nL 3.456 9 \nz\n",
        "M0 0v-.5l-.25-.5M5-1h1": "M 0 0 L 0 -0.5 L -0.25 -1 M 5 -1 L 6 -1",
        "M1 1zM2 2l1 1": "M 1 1 z M 2 2 L 3 3",
        "M0 1C1 1 2 2 3 1v1": "M 0 1 C 1 1 2 2 3 1 L 3 2",
        "": "",
    }.items(),
)
def test_paths(path, short):
    assert svg._points(path) == short


def test_inline_has_ids_of_its_own_and_colours_of_the_page(shortened):
    text = '<?xml version="1.0"?><svg xmlns="x"><style>*{fill:red}</style>'
    text += '<path id="i0" fill="#0072b2"/>'
    text += '<use href="#i0" clip-path="url(#i1)"/><rect id="i1" fill="#fffffe"/></svg>'
    part = svg.inline(text, 7)
    assert 'id="f7-i0"' in part and 'href="#f7-i0"' in part and "url(#f7-i1)" in part
    assert (
        'fill="var(--figure-blue)"' in part
        and 'fill="var(--figure-paper)"' in part
        and "red" not in part
    )
    assert part.startswith("<svg") and 'aria-label="Figure 7"' in part
    assert 'id="f7-' in svg.inline(shortened, 7) and "<style" not in svg.inline(shortened, 7)
