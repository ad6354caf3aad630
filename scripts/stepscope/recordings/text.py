"""Names that a stranger's file brings, made harmless for a terminal and for Markdown."""

import io
import re
import signal
import sys
import unicodedata
from pathlib import Path

MOST_SHOWN = 300
MOST_READ = 2**16  # bytes of a log's end
ERROR = "error: "  # how a program's line begins that says what is wrong
_SPECIAL = re.compile(r"([\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_]))")  # within a word _ marks nothing
_ADDRESS = re.compile(r"(?i)\b(https?|ftp|mailto):")


def plain(value: object, most: int = MOST_SHOWN) -> str:
    """One line without control characters, those that turn the direction of text included; cut
    where it is long."""
    text = " ".join(str(value)[: 4 * most].split())
    text = "".join(
        "�" if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co") else each for each in text
    )
    return text if len(text) <= most else text[: most - 1] + "…"


def reason(error: BaseException) -> str:
    """What went wrong, in some words of one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:120]


def last_error(log: Path) -> str:
    """The last line of a log that says what is wrong, after a traceback its last one; empty without
    either."""
    try:
        lines = log.read_bytes()[-MOST_READ:].decode(errors="replace").splitlines()
    except OSError:
        return ""
    told = [line for line in lines if line.startswith(ERROR)]
    if not told and any(line.startswith("Traceback (") for line in lines):
        told = list(filter(str.strip, lines))
    return plain("".join(told[-1:]))


def show(text: str) -> None:
    """Print a summary on any terminal, and into a pipe whose reader has seen enough."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show every name
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(text, end="" if text.endswith("\n") else "\n")


def markdown(value: object) -> str:
    """The same as text that Markdown shows as it is, also in a table's cell: no markup, no link, no
    image."""
    text = plain(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ADDRESS.sub(r"\1&#58;", _SPECIAL.sub(r"\\\1", text))
