"""How files are written: whole or not at all, and what is said where they cannot be."""

import errno
import os
import shutil
from types import SimpleNamespace

import pytest
from stepscope import files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_bytes_and_lines_become_files_and_their_folders(tmp_path):
    files.write_whole({tmp_path / "a/one": b"\x00\n", tmp_path / "b/two": ["é\r\n", "last"]})
    assert (tmp_path / "a/one").read_bytes() == b"\x00\n"
    assert (tmp_path / "b/two").read_bytes() == b"\xc3\xa9\r\nlast"
    assert (names(tmp_path / "a"), names(tmp_path / "b")) == (["one"], ["two"])


def lines_that_end_in(error):
    yield "first\n"
    raise error


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), ValueError("x"), KeyboardInterrupt()],
)
def test_what_fails_half_way_changes_nothing(error, tmp_path):
    (tmp_path / "one").write_text("before")
    with pytest.raises(type(error)):
        files.write_whole({tmp_path / "one": b"after", tmp_path / "two": lines_that_end_in(error)})
    assert names(tmp_path) == ["one"]
    assert (tmp_path / "one").read_text() == "before"


def test_nothing_is_renamed_before_all_is_written(tmp_path):
    paths = [tmp_path / "one", tmp_path / "two"]
    with files.replacing(paths) as parts:
        for part in parts:
            part.write_text("whole")
        assert not any(path.exists() for path in paths)
    assert [path.read_text() for path in paths] == ["whole"] * 2
    assert names(tmp_path) == ["one", "two"]


def test_an_error_names_the_file_that_it_is_about(tmp_path):
    full = lines_that_end_in(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with pytest.raises(OSError) as raised:
        files.write_whole({tmp_path / "one": b"", tmp_path / "two": full})
    assert raised.value.filename == str(tmp_path / "two")


@pytest.mark.parametrize(
    "code, line",
    {
        errno.ENOSPC: "cannot write F: No space left on device; make room and run again, nothing",
        errno.EACCES: "cannot write F: Permission denied; make the folder writable, or choose",
        errno.EIO: "cannot write F: Input/output error",
        errno.ENOENT: "cannot read F: No such file or directory",
    }.items(),
)
@pytest.mark.parametrize("name, place", [("F", "G"), (None, "F")])
def test_a_program_ends_with_one_line(code, line, name, place):
    with pytest.raises(SystemExit) as end, files.or_one_line(place):
        raise OSError(code, os.strerror(code), name)
    assert end.value.code.startswith(f"error: {line}")
    assert end.value.code.isprintable()


def test_other_errors_are_not_hidden(tmp_path):
    with pytest.raises(ValueError), files.or_one_line(tmp_path):
        raise ValueError("a mistake of ours")


@pytest.mark.parametrize("free, full", [(2**20, False), (2**20 - 1, True)])
def test_a_disk_without_a_mebibyte_is_full(free, full, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert files.is_full(tmp_path) is full


def test_a_folder_that_is_not_there_is_not_full(tmp_path):
    assert not files.is_full(tmp_path / "missing")
