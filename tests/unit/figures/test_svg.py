"""A figure said shorter is the same figure: every point, style and word, read by other means."""

import io
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from stepscope.figures import svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


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
    """What a path draws: (command, absolute numbers), H and V as lines, as SVG 1.1, section 8.3,
    says."""
    found, at, start = [], np.zeros(2), np.zeros(2)
    for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        numbers = np.array(
            [float(x) for x in re.findall(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", rest)]
        )
        if command in "Zz":
            found.append(("Z",))
            at = start
            continue
        size = {"M": 2, "L": 2, "H": 1, "V": 1, "Q": 4, "C": 6}[command.upper()]
        assert len(numbers) and len(numbers) % size == 0, (command, rest)
        for i in range(0, len(numbers), size):
            part = numbers[i : i + size]
            name = command.upper()
            if name in "HV":
                whole = at.copy()
                axis = "HV".index(name)
                whole[axis] = part[0] + (at[axis] if command.islower() else 0)
                name = "L"
            else:
                whole = (part.reshape(-1, 2) + (at if command.islower() else 0)).ravel()
            if name == "M" and i:
                name = "L"
            at = whole[-2:]
            start = at if name == "M" else start
            found.append((name, *whole))
    return found


def shapes(text):
    """Of each element that draws: what it says, and its numbers, those of what it refers to among
    them."""
    root = ElementTree.fromstring(text)
    named = {x.get("id"): x for x in root.iter() if x.get("id")}
    found = []
    for element in root.iter():
        kind = element.tag.removeprefix(NAMESPACE)
        if kind not in ("path", "use", "text", "rect"):
            continue
        href = element.get("{http://www.w3.org/1999/xlink}href")
        clip = re.fullmatch(r"url\(#(.*)\)", element.get("clip-path", ""))
        drawn = points(element.get("d", "")) + points(named[href[1:]].get("d") if href else "")
        boxes = [element, named[clip[1]][0]] if clip else [element]
        turned = re.sub(r"rotate\(-?0 [^)]*\)$", "", element.get("transform", ""))
        numbers = [float(x) for x in re.findall(r"-?[\d.]+", turned)]
        numbers += [float(each.get(x, 0)) for each in boxes for x in ("x", "y", "width", "height")]
        said = [kind, (element.text or "").strip(), bool(href), re.findall(r"[a-z]+", turned)]
        style = re.sub(r"url\(.*?\)", "", element.get("style", ""))
        said += [style, [x for x, *_ in drawn]]
        found.append((said, numbers + [x for _, *part in drawn for x in part]))
    return found


@pytest.fixture(scope="module")
def original():
    return drawn()


@pytest.fixture(scope="module")
def shortened(original):
    return svg.shorter(original)


def close(one, other):
    return [x[0] for x in one] == [x[0] for x in other] and all(
        np.allclose(a[1:], b[1:], rtol=0, atol=0.011) for a, b in zip(one, other, strict=True)
    )


def test_every_shape_is_where_it_was_and_looks_as_it_did(original, shortened):
    before, after = shapes(original), shapes(shortened)
    assert len(before) == len(after) > 60
    for (said, numbers), (said_again, others) in zip(before, after, strict=True):
        assert said == said_again
        assert np.allclose(numbers, others, rtol=0, atol=0.011), said
    assert any("rotate" in said[3] for said, _ in after)


def test_a_name_with_control_characters_is_drawn():
    assert ">a\ufffdb<" in svg.shorter(f'<svg xmlns="{NAMESPACE[1:-1]}"><text>a\x1bb</text></svg>')


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
