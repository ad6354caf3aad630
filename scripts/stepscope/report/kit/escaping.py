"""Text that was measured, configured or named by a machine, made harmless in Markdown.

HTML needs no function here: the web page escapes with markupsafe, and prose reaches it through Markdown.
"""

import re

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
# What would open a heading, a list or a rule where the text begins a line.
_LINE_START = re.compile(r"^(\d*)((?<=\d)[.)](?= |$)|(?<!\d)[#+=-](?=[ #=-]|$))")
_CODE_SPECIAL = re.compile(r"[&<>\"'`*_\[\]|~\\$:@]")


class Prose(str):
    """Markdown that is meant as such and not escaped again."""


def one_line(value: object) -> str:
    """Text without line breaks, control characters and the marks that webpage.py uses; a missing value is empty."""
    return "" if value is None else re.sub(r"[\s\x00-\x1f\x7f\ue000\ue001]+", " ", str(value)).strip()


def markdown(value: object) -> str:
    """Text that GitHub and markdown-it show as it is, in prose as in a table's cell."""
    if isinstance(value, Prose):
        return value
    text = one_line(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\1", text)
    return _LINE_START.sub(lambda found: f"{found[1]}&#{ord(found[2])};", text)


def within_html(value: object) -> str:
    """Text inside an HTML element of a Markdown page; what HTML or Markdown would read is written as numbers."""
    return _CODE_SPECIAL.sub(lambda found: f"&#{ord(found[0])};", one_line(value))


def markdown_code(value: object) -> str:
    """Text in `<code>`."""
    return f"<code>{within_html(value)}</code>"
