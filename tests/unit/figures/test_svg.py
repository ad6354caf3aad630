"""A figure said shorter is the same figure: every point, style and word, read by other means."""

import io
import re

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from stepscope.figures import svg


def drawn():
    """Of matplotlib: lines, broken and dashed ones, round markers, bars, hatches, text upright and
    turned, clips."""
    random = np.random.default_rng(0)
    figure = Figure(figsize=(6, 4))
    left, right = figure.subplots(1, 2)
    for shift in range(3):
        values = np.cumsum(random.normal(size=200)) + shift
        values[50:60] = np.nan
        left.plot(values, marker="o", markevery=20)
    left.hlines(range(5), 0, random.uniform(1, 100, 5), linestyles="dashed", colors="#336699")
    left.set_ylabel("turned\u00a0text & <signs>", rotation=90)
    right.bar(range(4), random.uniform(0, 1e6, 4), hatch="//", edgecolor="#123456")
    right.step(range(4), [0, 2, 2, 1])
    right.text(1, 2, "at −45°", rotation=-45)
    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "test"}):
        figure.savefig(written, format="svg")
    return written.getvalue()


def points(path):
    """What a path draws: (command, absolute numbers), lines along an axis and relative ones as
    lines, as SVG 1.1, section 8.3, says."""
    found, at = [], np.zeros(2)
    for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        numbers = np.array(re.findall(r"-?\d*\.?\d+", rest), float)
        if command in "hv":
            numbers = np.array([numbers[0], 0] if command == "h" else [0, numbers[0]])
        if command in "lhv":
            command, numbers = "L", at + numbers
        found.append((command, *numbers))
        at = numbers[-2:] if len(numbers) else at
    return found


def close(one, other):
    return [x[0] for x in one] == [x[0] for x in other] and all(
        np.allclose(a[1:], b[1:], rtol=0, atol=0.006) for a, b in zip(one, other, strict=True)
    )


def said(text, name):
    """The values of an attribute, in their order."""
    return re.findall(rf' {name}="([^"]*)"', text)


def referred(text):
    """Which of the elements that are referred to each reference means."""
    names = re.findall(r'(?:url\(|href=")#([^")]+)', text)
    targets = [each for each in said(text, "id") if each in names]
    return [targets.index(name) for name in names]


def rest(text):
    """All that is no place, turn by 0°, name or space."""
    text = re.sub(r' (d|x|y|id)="[^"]*"| transform="rotate\(-?0 [^"]*"', "", text)
    return re.sub(r'\s+|#[^")]+(?=[")])', "", text)


@pytest.fixture(scope="module")
def original():
    return drawn()


@pytest.fixture(scope="module")
def shortened(original):
    return svg.shorter(original)


def test_every_shape_is_where_it_was_and_looks_as_it_did(original, shortened):
    paths = list(zip(said(original, "d"), said(shortened, "d"), strict=True))
    assert len(paths) >= 30 and all(close(points(one), points(other)) for one, other in paths)
    for name in ("x", "y"):
        before, after = (np.array(said(text, name), float) for text in (original, shortened))
        assert np.allclose(before, after, rtol=0, atol=0.006) and len(before) > 30
    assert rest(original) == rest(shortened) and "rotate(-315" in shortened
    assert referred(original) == referred(shortened) != []


def test_a_name_with_control_characters_is_drawn():
    assert ">a\ufffdb<" in svg.shorter("<svg><text>a\x1bb</text></svg>")


def test_it_is_less_than_two_thirds_and_comes_out_alike(original, shortened):
    assert len(shortened) < 2 / 3 * len(original)
    assert svg.shorter(original) == shortened


@pytest.mark.parametrize(
    "path, short",
    [
        ("M 1 2 \nL 3.456 2 \nL 3.456 9 \nz\n", "M1 2h2.46v7z"),
        ("M 0 0 L 0 -0.5 L -0.25 -1 M 5 -1 L 6 -1", "M0 0v-.5l-.25-.5M5-1h1"),
        ("M 1 1 z M 2 2 L 3 3", "M1 1zM2 2l1 1"),
        ("M 0 1 C 1 1 2 2 3 1 L 3 2", "M0 1C1 1 2 2 3 1v1"),
        ("", ""),
    ],
)
def test_paths(path, short):
    assert svg._points(path) == short and close(points(path), points(short))


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
