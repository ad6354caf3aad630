"""Which files of published figures a report is set beside."""

import pytest
from common import one_line
from stepscope.config import ConfigError
from stepscope.config.published import published_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    for name in ("own/b.csv", "own/a.csv", "own/notes.txt", "mine.csv"):
        (tmp_path / name).touch()
    return tmp_path


def test_the_projects_files_come_first_in_their_order(folder):
    assert published_files({"published": []}, folder / "own") == ["own/a.csv", "own/b.csv"]
    assert published_files({"published": ["mine.csv"]}, folder / "own") == [
        "own/a.csv",
        "own/b.csv",
        "mine.csv",
    ]


@pytest.mark.parametrize("path", ["none.csv", "own"])
def test_a_file_that_is_not_there_is_named_with_its_key(path, folder):
    config = {"published": ["mine.csv", path]}
    said = one_line(ConfigError, published_files, config, folder / "own")
    assert said == f"config key published[1]: there is no file {path!r}; give a path from {folder}"
