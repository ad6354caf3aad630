"""How a record's summary is made of what several processes found."""

from common import picked
from stepscope.measure.found import Found, Outcome, summary


def test_a_modes_status_is_the_worst_of_all_processes_and_a_variants_that_of_its_first_mode():
    first, second = Found(1), Found(2)
    first.status("a", mode="step")
    second.status("a", Outcome("oom", "full"), mode="step")
    for one in (first, second):
        one.status("a", mode="forward")
    second.status("a", Outcome("oom", "no room for the graph"), mode="host-free")
    found = summary([first, second])
    assert found["variants"] == {"a": {"status": "oom", "reason": "full"}}
    assert picked(found["statuses"], "mode", "status") == [
        ("step", "oom"),
        ("forward", "ok"),
        ("host-free", "oom"),
    ]


def test_what_could_not_be_captured_is_no_status_of_the_variant():
    one = Found()
    one.status("a", Outcome("oom", "no room for the graph"), mode="host-free")
    one.status("a", mode="step")
    assert summary([one])["variants"]["a"] == {
        "status": "ok",
        "reason": "",
    }


def test_attention_is_ok_where_any_length_is():
    one = Found()
    one.status("a", Outcome("oom", "full"), length=64, direction="backward")
    one.status("a", length=32, direction="backward")
    assert summary([one])["variants"]["a"]["status"] == "ok"
    assert one.is_ok() and not Found().is_ok()


def test_values_have_their_process_unless_they_are_the_same_in_all():
    one = Found(3)
    one.value("a", "energy", "J", 2.5, mode="step")
    one.value("a", "launches", "1", 7.0, once=True)
    one.value("a", "nothing", "B", None)
    one.value("a", "no difference", "B", 0)
    assert picked(one.values, "process", "quantity", "unit", "value", "mode", "phase") == [
        (3, "energy", "J", 2.5, "step", None),
        (None, "launches", "1", 7.0, None, None),
    ]
