"""Results of an archive as the plan looks at them: beside those that are there, and nothing is written among these."""

import json

import pytest
from stepscope.config import archives
from stepscope.config.config import ConfigError

CELL = "timing/nano/ctx64/fp32"


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def theirs(pack, members):
    """An archive of a machine `box`, as an entry of the key hardware."""
    return {"theirs": {"archive": str(pack(members))}}


@pytest.fixture
def look(monkeypatch, tmp_path):
    """The function, whose folder is one of this test's."""
    monkeypatch.setattr(archives.tempfile, "tempdir", str(tmp_path))
    return archives.looked_at


def test_it_stands_beside_what_is_there_and_leaves_no_file(look, theirs, results, tmp_path):
    before = files(results)
    seen = look(theirs | {"box": {}}, results)
    assert (seen / "theirs" / CELL / "record.json").is_file() and (seen / "box" / CELL / "measure.log").is_file()
    assert files(results) == before


def test_without_results_none_are_made(look, theirs, tmp_path):
    assert (look(theirs, tmp_path / "none") / "theirs" / CELL / "record.json").is_file()
    assert not (tmp_path / "none").exists()


def test_what_was_unpacked_before_is_used_and_another_archive_does_not_replace_it(look, theirs, tmp_path):
    here = archives.unpack(theirs, tmp_path / "here")
    seen = look(theirs, here)
    assert (seen / "theirs").resolve() == here / "theirs"
    note = here / "theirs/archive.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | {"sha256": "another"}))
    before = files(here)
    assert (look(theirs, here) / "theirs" / CELL / "record.json").is_file() and files(here) == before


def test_without_an_archive_it_is_the_folder_itself(look, results):
    assert look({"box": {}}, results) is results


def test_a_label_that_is_taken_is_refused(look, theirs, results):
    (results / "theirs").mkdir()
    with pytest.raises(ConfigError, match=r"hardware\.theirs\.archive: .*results/theirs is there and was not unpacked"):
        look(theirs, results)
