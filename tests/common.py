"""What tests of all folders share: places of the checkout, and what is said of bad input."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "scripts"
STRANGERS = ROOT / "tests/data/strangers"
TRACES, SNAPSHOTS = (ROOT / f"tests/unit/{name}/recordings" for name in ("trace", "snapshot"))


def one_line(error, call, *given, **named):
    """What a call says as it raises the error: one line."""
    with pytest.raises(error) as raised:
        call(*given, **named)
    said = str(raised.value)
    assert "\n" not in said
    return said
