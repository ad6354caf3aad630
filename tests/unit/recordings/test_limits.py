"""The limits of time and memory, what a failing piece of work becomes, and files written whole or
not at all."""

import errno
import os
import signal

import pandas as pd
import pytest
from common import one_line
from pytest import approx
from stepscope.recordings import limits, text
from stepscope.recordings.limits import LimitError, Limits, within
from stepscope.recordings.tables import write_tables

ENOUGH = Limits(60, 2)


def endless():
    while True:
        pass


def fills():
    return len(bytearray(200_000_000))


def nested(levels=0):
    return nested(levels + 1)


def ends():
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_is_made_or_raised_comes_back():
    assert within(ENOUGH, "a", lambda: {"made": 5}, ()) == {"made": 5}
    assert "there" in one_line(KeyError, within, ENOUGH, "a", lambda: {}["there"], (KeyError,))


@pytest.mark.parametrize(
    "most, work, told",
    [
        (Limits(1, 2), endless, "file: reading it takes more than 1 s"),
        (Limits(60, 0.1), fills, "file: reading it takes more than 0.1 GB"),
        (ENOUGH, nested, "file: it cannot be analysed (RecursionError"),
        (ENOUGH, lambda: {}["there"], "file: it cannot be analysed (KeyError: 'there')"),
        (ENOUGH, ends, "file: reading it takes more than 60 s"),
    ],
)
def test_what_fails_is_one_line(most, work, told):
    assert one_line(LimitError, within, most, "file", work, ()).startswith(told)


def test_memory_below_the_limit_is_granted():
    assert within(Limits(60, 0.5), "file", fills, ()) == 200_000_000


def test_limits_grow_with_the_file_and_count_a_packed_one_unpacked(tmp_path):
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
    for path in (plain, packed):
        path.write_bytes(bytes(1_000_000))
    assert limits.limits_for([plain]) == Limits(approx(10.3), approx(2.016))
    assert limits.limits_for([packed]) == Limits(approx(16), approx(2.32))
    assert limits.limits_for([plain, packed], 5, 1) == Limits(5, 1)


class Full:
    """What a disk has no room for."""

    def __str__(self):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    first, second, last = (pd.DataFrame({"x": [each]}) for each in (1, 2, Full()))
    write_tables({"a": first}, tmp_path)
    assert "No space" in one_line(OSError, write_tables, {"a": second, "b": last}, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.csv": "x\n1\n"}


def test_text_for_a_terminal():
    assert text.plain("a\x1b[31m\n b\u202ec\x9b") == "a�[31m b�c�"
    assert text.plain("x" * 400) == "x" * 299 + "…"
