"""How a record's summary is made of what several processes found."""

import pytest
from stepscope.measure.found import Found, Outcome, limited, median, summary


def row(kind, seconds, process=1, variant="a", warmup=False, phase="step"):
    return {
        "variant": variant,
        "process": process,
        "kind": kind,
        "phase": phase,
        "warmup": warmup,
        "seconds": seconds,
    }


def test_the_median_is_of_the_processes_medians():
    rows = [row("free", one) for one in (1.0, 2.0, 9.0)] + [
        row("free", 4.0, 2),
        row("free", 100.0, 3),
    ]
    rows += [row("free", 1e9, warmup=True), row("phased", 1e9), row("free", 1e9, variant="b")]
    assert median(rows, "a", "free") == 4.0
    assert median(rows, "a", "busy") is None


@pytest.mark.parametrize(
    "kinds, found",
    [
        ({"free": 1.16, "host-free": 1.0}, "launches"),
        (
            {"free": 1.14, "host-free": 1.0, "busy": 0.1},
            "gpu",
        ),  # the profiler is asked only without a capture
        ({"free": 1.16, "busy": 1.0}, "launches"),
        ({"free": 1.16}, None),
        ({"host-free": 1.0}, None),
    ],
)
def test_launches_limit_what_takes_15_percent_longer_by_the_clock(kinds, found):
    assert limited([row(kind, seconds) for kind, seconds in kinds.items()], "a") == found


def test_a_modes_status_is_the_worst_of_all_processes_and_a_variants_that_of_its_first_mode():
    first, second = Found(1), Found(2)
    first.status("a", mode="step")
    second.status("a", Outcome("oom", "full"), mode="step")
    for one in (first, second):
        one.status("a", mode="forward")
    second.status("a", Outcome("oom", "no room for the graph"), mode="host-free")
    found = summary([first, second], ["a", "b"], "cuda")
    assert found["variants"]["a"] == {"status": "oom", "reason": "full", "limited": None}
    assert found["variants"]["b"]["status"] == "ok"  # of which nothing was said
    assert [(one["mode"], one["status"]) for one in found["statuses"]] == [
        ("step", "oom"),
        ("forward", "ok"),
        ("host-free", "oom"),
    ]


def test_what_could_not_be_captured_is_no_status_of_the_variant():
    one = Found()
    one.status("a", Outcome("oom", "no room for the graph"), mode="host-free")
    one.status("a", mode="step")
    assert summary([one], ["a"], "cpu")["variants"]["a"] == {
        "status": "ok",
        "reason": "",
        "limited": "cpu",
    }


def test_attention_is_ok_where_any_length_is():
    one = Found()
    one.status("a", Outcome("oom", "full"), length=64, direction="backward")
    one.status("a", length=32, direction="backward")
    assert summary([one], ["a"], "cpu")["variants"]["a"]["status"] == "ok"
    assert one.is_ok() and not Found().is_ok()


def test_values_have_their_process_unless_they_are_the_same_in_all():
    one = Found(3)
    one.value("a", "energy", "J", 2.5, mode="step")
    one.value("a", "launches", "1", 7.0, once=True)
    one.value("a", "nothing", "B", None)
    one.value("a", "no difference", "B", 0)
    place = dict.fromkeys(("mode", "phase", "length", "direction"))
    assert one.values == [
        {
            "variant": "a",
            "process": 3,
            "quantity": "energy",
            "unit": "J",
            "value": 2.5,
            **place,
            "mode": "step",
        },
        {
            "variant": "a",
            "process": None,
            "quantity": "launches",
            "unit": "1",
            "value": 7.0,
            **place,
        },
    ]
