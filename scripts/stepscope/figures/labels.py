"""Words in figures: numbers and names short enough for an axis, and in a word what went wrong with a cell."""

import pandas as pd

GIB = 2**30


def short(text: str, most: int = 34) -> str:
    """A name cut to what an axis can hold."""
    text = " ".join(str(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def plain_number(value: float, _position=None) -> str:
    """Tick label of a log axis: 0.1, 30, 1,000."""
    return f"{value:,.0f}" if value >= 10 else f"{value:,.4g}"


def tick(value: float, _position=None) -> str:
    """Tick label of a linear axis, as exact as the tick: 2.5, 12.5, 1,000."""
    return f"{value:,.6g}"


def power(value: float, _position=None) -> str:
    """Tick label of a log axis over many decades: 1, 1e4, 1e−8."""
    return f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e").replace("e-", "e−").replace("e0", "")


def parameter_number(value: float) -> str:
    """A parameter count: 129M, 2B."""
    for unit, scale in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def size_name(size: str, parameters: float | None = None) -> str:
    """`medium`, or `medium · 423M` with a known parameter count."""
    return short(size, 14) + (f" · {parameter_number(parameters)}" if pd.notna(parameters) else "")


def byte_unit(largest: float) -> tuple[str, float]:
    """(name, bytes) of the unit of an axis that reaches so many bytes."""
    return ("GiB", GIB) if not largest < 0.1 * GIB else ("MiB", 2.0**20)


def omitted(count: int) -> str:
    """`; 3 more are in the tables`, if a figure could not show all."""
    return f"; {count} more are in the tables" if count > 0 else ""


def trouble(cell: dict | pd.Series) -> str:
    """Why a cell has no result, in a word: `OOM`, `failed`, `missing`, `unsupported`; empty if it has one."""
    status = str(cell["status"] or "missing")
    return {"ok": "", "oom": "OOM"}.get(status, status)


def doubts(cell: dict | pd.Series, noisy: bool = False) -> str:
    """` (throttled, noisy)` for a cell whose clock was held down, or what stands beside it is noisy."""
    found = [word for word, is_so in (("throttled", bool(cell.get("throttle"))), ("noisy", noisy)) if is_so]
    return f" ({', '.join(found)})" if found else ""


def unusual(cell: dict | pd.Series) -> str:
    """What is not usual of a cell: `, inference, attention=sdpa`."""
    parts = [cell["mode"]] if cell["mode"] != "step" else []
    parts += [short(cell["options"], 34)] if cell["options"] else []
    return "".join(f", {part}" for part in parts)
