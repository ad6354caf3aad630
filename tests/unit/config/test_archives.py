"""Machines of the configuration whose results come from an archive."""

import pytest
from stepscope.config import archives
from stepscope.config.config import ConfigError
from stepscope.config.hardware import hardware_of


@pytest.fixture
def unpacked(monkeypatch):
    """What is asked to be unpacked, instead of it."""
    asked = []
    monkeypatch.setattr(archives, "unpack_label", lambda *given, into: asked.append(given))
    return asked


def test_only_entries_with_an_archive_are_unpacked(unpacked, tmp_path):
    archives.unpack({"box": {}, "theirs": {"archive": "their.zip", "machine": "h100"}}, tmp_path)
    assert [(str(path), results, *names) for path, results, *names in unpacked] == [
        ("their.zip", tmp_path, "theirs", "h100")
    ]


def test_nothing_is_measured_for_it(make_config):
    (theirs,) = hardware_of(make_config(hardware={"theirs": {"archive": "their.zip"}}))
    assert not theirs.measured and not theirs.here


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"archive": "none.zip"}, "theirs.archive: none.zip: it cannot be read: No such file or directory"),
        ({"archive": "a.zip", "measure": True}, "theirs: results of an archive are used as they are"),
        ({"machine": "h100"}, "theirs.machine: it is a machine of an archive; give archive too"),
    ],
)
def test_what_cannot_be_is_one_line_with_its_key(entry, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        archives.unpack({"theirs": entry}, tmp_path)
    assert str(error.value).startswith(f"config key hardware.{reason}") and str(error.value).isprintable()
