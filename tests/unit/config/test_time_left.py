"""How long a run still takes, against numbers worked out by hand."""

import pytest
from stepscope.config.time_left import TimeLeft, in_words


def run(left, *cells):
    """Let cells run one after another: (name, begun at, ended at)."""
    for name, begun, ended in cells:
        left.begin(name, begun)
        left.end(name, ended)


def test_before_anything_has_run_it_is_what_was_expected():
    assert TimeLeft({"a": 10.0, "b": 20.0}, 1).left(0.0) == 30.0
    assert TimeLeft({"a": 10.0, "b": 20.0}, 4).left(0.0) == 20.0  # no less than the longest
    assert TimeLeft(dict.fromkeys("abcdef", 10.0), 2).left(0.0) == 30.0


def test_what_cells_took_corrects_the_rest():
    left = TimeLeft({"a": 10.0, "b": 10.0, "c": 10.0}, 1)
    run(left, ("a", 100.0, 130.0))
    # 30 s instead of 10, and one more cell's 10 as expected: twice as long.
    assert left.correction == 2.0
    assert left.left(130.0) == 40.0
    run(left, ("b", 130.0, 160.0))
    assert left.correction == pytest.approx(70 / 30)
    assert left.left(160.0) == pytest.approx(10 * 70 / 30)
    run(left, ("c", 160.0, 190.0))
    assert left.left(190.0) == 0.0


def test_what_runs_has_its_rest_to_go():
    left = TimeLeft({"a": 10.0, "b": 20.0, "c": 30.0}, 2)
    left.begin("c", 0.0)
    left.begin("b", 0.0)
    # 30 - 5 and 20 - 5 run, 10 waits, two at a time.
    assert left.left(5.0) == 25.0
    assert left.left(100.0) == 10.0  # both are late; what waits is still to come


def test_a_cluster_shows_its_pace_only_as_cells_end():
    left = TimeLeft(dict.fromkeys("abcd", 10.0), None)
    for name in "abcd":
        left.begin(name, 0.0)
    assert left.left(50.0) is None
    left.end("a", 60.0)
    left.end("b", 60.0)
    # 20 of 40 expected seconds came in 60 s.
    assert left.left(60.0) == 60.0


def test_unknown_cells_count_as_the_mean_and_without_any_there_is_no_answer():
    assert TimeLeft({"a": 10.0, "b": 20.0, "c": None}, 1).left(0.0) == 45.0
    left = TimeLeft({"a": None}, 1)
    run(left, ("a", 0.0, 5.0))
    assert left.left(5.0) is None
    assert TimeLeft({}, 1).left(0.0) is None


def test_cells_that_were_not_expected_change_nothing():
    left = TimeLeft({"a": 10.0}, 1)
    run(left, ("strange", 0.0, 500.0))
    assert left.left(500.0) == 10.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "1 s"), (12, "10 s"), (57, "55 s"), (58, "1 min"), (89, "1 min"), (91, "2 min"), (3599, "1 h 00 min")],
)
def test_a_time_that_is_not_known_well_is_said_so(seconds, words):
    assert in_words(seconds) == words
    assert in_words(3600 * 5 + 60 * 7.4) == "5 h 07 min"
