"""Matplotlib's SVG, said shorter: it looks the same and is less than two thirds to load; and as a
part of a page."""

import re

from . import colours

# No characters of XML 1.0, section 2.2.
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def shorter(svg: str) -> str:
    """The same picture: places to a hundredth of a point, without turns by 0° and spaces between
    elements.

    Ids that something refers to count, others go: matplotlib's are digests of places, whose last
    digits need not be the same each time.
    """
    svg = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", svg)
    referred = dict.fromkeys(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    names = {name: f"i{at}" for at, name in enumerate(referred)}

    def named(each: re.Match) -> str:
        return f' id="{names[each[1]]}"' if each[1] in names else ""

    svg = re.sub(r' id="([^"]+)"', named, svg)
    svg = re.sub(r'(url\(|href=")#([^")]+)', lambda each: f"{each[1]}#{names[each[2]]}", svg)
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    svg = re.sub(r' (d|x|y)="([^"]*)"', lambda each: f' {each[1]}="{_points(each[2])}"', svg)
    return re.sub(r">\s+<", "><", svg)


def inline(svg: str, number: int) -> str:
    """An SVG file as part of a page, the figure of that number: ids of its own, colours as
    variables of the page (`colours.css`), no style that reaches outside."""
    svg = re.sub(r"<style[^>]*>[*].*?</style>", "", svg[svg.index("<svg") :])
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\1f{number}-", svg)

    for colour, (variable, _) in colours.VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")

    return svg.replace("<svg", f'<svg role="img" aria-label="Figure {number}"', 1)


def _points(path: str) -> str:
    """A path's data, or a place, in hundredths of a point; lines relative to the point before,
    exactly so. H and V for those along an axis."""
    written = []
    at: list[int] = []

    for command, numbers in re.findall(r"([A-Za-z]?)([^A-Za-z]*)", path):
        end = [round(100 * float(number)) for number in numbers.split()]
        values = end
        if command == "L" and at:
            across, down = end[0] - at[-2], end[1] - at[-1]
            command, values = "l", [across, down]
            if not across or not down:
                command, values = "h" if across else "v", [across or down]
        written.append(command + " ".join(f"{value / 100:g}" for value in values))
        at = end

    return re.sub(r" (?=-)|(?<!\d)0(?=\.)", "", "".join(written))
