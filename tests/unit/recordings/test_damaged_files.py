"""Files with random damages, of each kind: analysed, or refused in one line, and no longer than 10
s."""

import damaged_files
import pytest

KINDS = damaged_files.kinds()


@pytest.mark.parametrize("name", KINDS)
def test_damages_are_analysed_or_refused(name):
    outcomes = damaged_files.run(KINDS[name], damages=20)
    assert set(outcomes) <= {"analysed", "refused"} and sum(outcomes.values()) == 20, outcomes
    assert outcomes["refused"] >= 3  # the damages do damage


def test_another_exception_is_counted(monkeypatch):
    def fails(path):
        raise KeyError("a bug")

    monkeypatch.setattr(damaged_files.snapshots, "analyse_file", fails)
    outcomes = damaged_files.run(KINDS["pickle, bytes"], damages=2)
    assert outcomes == {
        "a: it cannot be analysed (KeyError: 'a bug'); record or export it again": 2
    }


def test_what_hangs_is_counted(monkeypatch):
    def hangs(path):
        while True:
            pass

    monkeypatch.setattr(damaged_files, "SECONDS", 1)
    monkeypatch.setattr(damaged_files.snapshots, "analyse_file", hangs)
    (outcome,) = damaged_files.run(KINDS["pickle, bytes"], damages=1)
    assert outcome.startswith("a: reading it takes more than 1 s")
