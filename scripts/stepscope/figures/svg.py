"""Matplotlib's SVG, said shorter: it looks the same and is less than half to load; and as a part of
a page."""

import re
import zlib
from collections import Counter
from collections.abc import Callable
from html import escape
from xml.etree import ElementTree

from stepscope.figures import colours

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# Pixels of a point, at which a figure is shown: 622 and 370 of its width, which a phone has.
LARGEST, SMALLEST = 1.8, 1.07
# No characters of XML 1.0, section 2.2.
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _XLINK)


def shorter(svg: str) -> str:
    """The same picture: coordinates to a hundredth of a point; without metadata, names that nothing
    refers to, groups that say nothing and turns by 0°; a style that stands several times is a
    class, named by what it says."""
    root = ElementTree.fromstring(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", svg))

    for element in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(element)

    referred = set(re.findall(r"#([\w.-]+)", svg))

    for element in root.iter():
        if element.get("id") not in referred:
            element.attrib.pop("id", None)
        for name, said in SHORTER.items():
            if name in element.attrib:
                element.set(name, said(element.attrib[name]))
        if re.match(r"rotate\(-?0 [^)]*\)$", element.get("transform", "")):
            del element.attrib["transform"]
        if element.tag == f"{{{_SVG}}}style":
            element.attrib.clear()  # of what it has: type, as is usual
        if not (element.text or "").strip():
            element.text = None
        element.tail = None

    _unwrap(root)
    _name_styles(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return _with_ids(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n', "i")


def _with_ids(svg: str, prefix: str) -> str:
    """The same with ids that count: matplotlib's are digests of places, whose last digits need not
    be the same each time."""
    ids = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    names = {name: f"{prefix}{at}" for at, name in enumerate(ids)}

    def renamed(each: re.Match) -> str:
        return each[1] + names.get(each[2], each[2])

    return re.sub(r'(\bid="|url\(#|\bhref="#)([^")]+)', renamed, svg)


def inline(svg: str, number: int, alternative: str) -> str:
    """An SVG file as part of a page: short ids of its own, colours as variables of the page
    (`colours.css`), no style that reaches outside; its classes say the same in every figure.

    number: that of the figure on the page. alternative: what it shows, for those who do not see it.
    """
    svg = re.sub(r"<style>[*].*?</style>", "", svg[svg.index("<svg") :])
    svg = svg.replace("xlink:href=", "href=")
    svg = _with_ids(svg, f"f{number}-")

    for colour, (variable, _) in colours.VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")

    box = re.search(r'viewBox="([^"]+)"', svg)
    assert box is not None, "matplotlib writes one"
    left, top, width, height = box[1].split()
    size = f"max-width: {float(width) * LARGEST:.0f}px; min-width: {float(width) * SMALLEST:.0f}px"
    label = escape(" ".join(alternative.split()))
    opening = (
        f'<svg viewBox="{left} {top} {width} {height}" style="{size}" role="img"'
        f' aria-label="{label}">'
    )
    return re.sub(r"^<svg[^>]*>", lambda _: opening, svg, count=1).strip()


def _coordinates(value: str) -> str:
    if "scale" in value or "matrix" in value:  # factors, of which a hundredth may be all
        return value
    value = re.sub(r"(\.\d\d)\d+", r"\1", value)
    value = re.sub(r"(\.\d*?)0+(?!\d)", r"\1", value)
    value = re.sub(r"\.(?!\d)", "", value)
    return re.sub(r"\s+", " ", value).strip()


def _lines(path: str) -> str:
    """A path's data, lines and moves relative to the point before: exactly so, in hundredths of a
    point. H and V for lines along an axis, and each command's letter only where it changes."""
    written: list[str] = []
    last, at = "", None

    for command, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        values = [round(100 * float(number)) for number in numbers.split()]
        end = values[-2:] if len(values) > 1 else None
        if command in "LM" and at and end:
            across, down = end[0] - at[0], end[1] - at[1]
            command, values = _relative(command.lower(), across, down)
        letter = " " if command == last and command not in "Mmz" else command
        written.append(letter + " ".join(_hundredths(value) for value in values))
        last, at = command, end

    return re.sub(" -", "-", "".join(written))


def _relative(command: str, across: int, down: int) -> tuple[str, list[int]]:
    """A line or move, and a line along an axis by what it has of its own."""
    if command == "l" and across == 0:
        return "v", [down]
    if command == "l" and down == 0:
        return "h", [across]
    return command, [across, down]


def _hundredths(value: int) -> str:
    shown = f"{value / 100:.2f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", shown)


def _style(text: str) -> str:
    return text.replace(": ", ":").replace("; ", ";").rstrip(";")


# Attribute: how it is said shorter.
SHORTER: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("x", "y", "transform", "points"), _coordinates),
    "d": _lines,
    "style": _style,
}


def _unwrap(element: ElementTree.Element) -> None:
    """Take a group's parts in its place where it has no attributes, and leave out those without
    parts."""
    parts = []
    for part in element:
        _unwrap(part)
        if part.tag == f"{{{_SVG}}}g" and not part.attrib:
            parts += list(part)
        elif part.tag != f"{{{_SVG}}}g" or len(part):
            parts.append(part)
    element[:] = parts


def _name_styles(root: ElementTree.Element) -> None:
    counts = Counter(element.get("style", "") for element in root.iter())
    # What refers to a part of this figure says something else in another one.
    common = [
        style for style, count in counts.items() if style and count > 2 and "url(" not in style
    ]
    names = {style: f"s{zlib.crc32(style.encode()):08x}" for style in common}

    for element in root.iter():
        name = names.get(element.get("style", ""))
        if name:
            del element.attrib["style"]
            element.set("class", name)

    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    if rules:
        root.insert(0, ElementTree.Element(f"{{{_SVG}}}style"))
        root[0].text = rules
