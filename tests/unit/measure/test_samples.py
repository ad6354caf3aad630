"""Series within a budget, variants that take turns, and the rows of samples."""

import pytest
from common import picked
from stepscope.measure.samples import COLUMNS, Budget, Samples, series, take_turns
from stepscope.measure.telemetry import Telemetry


class Clock:
    """A clock that goes on by what each step costs."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def step(self, cost):
        self.now += cost


@pytest.mark.parametrize(
    "least, most, seconds, cost, count",
    [
        (3, 9, 5.0, 1.0, 5),
        (3, 9, 0.0, 1.0, 3),
        (3, 9, 1e9, 1.0, 9),
        (0, 0, 1.0, 1.0, 0),
        (3, 9, 2.5, 0.5, 5),
    ],
)
def test_a_series_ends_with_its_time_between_the_least_and_the_most_steps(
    least, most, seconds, cost, count
):
    clock = Clock()
    assert series(lambda: clock.step(cost), Budget(least, most, seconds), clock) == count
    assert clock.now == count * cost


def test_a_budget_of_a_spec_has_at_least_the_least_as_most_steps():
    assert Budget.of({"steps": 5, "max_steps": 2, "max_seconds": 1.5}) == Budget(5, 5, 1.5)


def turns(budget, costs):
    """(the order of variants, rounds of each step, number of rounds)."""
    clock, seen, rounds = Clock(), [], []

    def runs(name):
        def run(number):
            seen.append(name)
            rounds.append(number)
            clock.step(costs[name])

        return run

    number = take_turns({name: runs(name) for name in costs}, budget, clock)
    return "".join(seen), rounds, number


def test_turns_go_there_and_back():
    seen, rounds, number = turns(Budget(6, 12, 0.0), {"a": 1.0, "b": 2.0, "c": 1.0})
    assert seen == "aaabbbccc" + "cccbbbaaa"
    assert rounds == [1] * 9 + [2] * 9
    assert number == 2


def test_a_turn_is_short_where_few_steps_are_asked_for():
    assert turns(Budget(2, 2, 9.0), {"a": 1.0, "b": 1.0})[0] == "abba"
    assert turns(Budget(4, 4, 9.0), {"a": 1.0, "b": 1.0})[0] == "aabbbbaa"
    assert turns(Budget(1, 1, 0.0), {"a": 1.0, "b": 1.0})[0] == "ab"


def test_a_turn_ends_with_its_time_after_at_least_one_step():
    budget = Budget(6, 6, 99.0, turn=1.5)
    assert (
        turns(budget, {"a": 1.0, "b": 2.0})[0] == "aabbaa" * 3
    )  # b has had its six steps after six rounds


def test_turns_end_when_the_share_of_each_variant_is_used_up():
    # A round of three steps each costs 6 s: after four rounds, 24 s, each of both has had its 11 s.
    assert (
        turns(Budget(2, 1000, 11.0), {"a": 1.5, "b": 0.5})[2] == 11
    )  # rounds of 2 s, of one step each
    assert turns(Budget(6, 1000, 11.0), {"a": 1.5, "b": 0.5})[2] == 4


def test_without_variants_there_are_no_rounds():
    assert take_turns({}, Budget(3, 9, 1.0)) == 0


def test_rows_name_their_place_and_number_the_steps_of_each_variant():
    samples = Samples(Telemetry(None), process=2)
    samples.run("a", lambda: [("forward", 1.0), ("backward", 2.0)], warmup=True, mode="step")
    samples.run("b", lambda: [("step", 3.0)], kind="free", round=4)
    samples.run("a", lambda: [("step", 4.0)], kind="free")
    samples.add("a", "step", 5.0, kind="busy")
    assert {key for row in samples.rows for key in row} <= set(COLUMNS)
    found = picked(samples.rows, "variant", "process", "step", "phase", "warmup")
    assert found == [
        ("a", 2, 0, "forward", True),
        ("a", 2, 0, "backward", True),
        ("b", 2, 0, "step", False),
        ("a", 2, 1, "step", False),
        ("a", 2, 2, "step", False),
    ]
    assert picked(samples.rows, "seconds") == [1.0, 2.0, 3.0, 4.0, 5.0]
    places = [(row.get("mode"), row.get("kind"), row.get("round")) for row in samples.rows[1:]]
    assert places == [
        ("step", None, None),
        (None, "free", 4),
        (None, "free", None),
        (None, "busy", None),
    ]


def test_phases_are_kept_up_to_where_a_step_fails():
    samples = Samples(Telemetry(None))

    def step():
        yield "forward", 1.0
        raise MemoryError

    with pytest.raises(MemoryError):
        samples.run("a", step)
    assert picked(samples.rows, "phase") == ["forward"]
