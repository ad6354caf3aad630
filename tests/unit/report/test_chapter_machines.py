"""The chapter on machines, against ratios worked out by hand: `new` beside `old`, the baseline."""

import hardware_maker as made
import pytest
import synthetic
from chapter_checks import check, example, told, values
from roofline_maker import ceilings
from stepscope.report.chapters.machines import chapter
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import fitted
from stepscope.tables.columns import LAUNCHES
from stepscope.tables.reader import Tables

# The new machine multiplies four times as fast in fp32 and eight times in bf16, and its memory is twice as fast.
RATES = [
    *ceilings("old", "Unheard", copy=1000.0, fp32=10.0, bf16=50.0),
    *ceilings("new", "Unheard", copy=2000.0, fp32=40.0, bf16=400.0),
]
FIRST = "how many times as fast is new"


def both(old_ms=20.0, new_ms=10.0, **place) -> tuple[dict, dict]:
    return made.timing("old", ms=old_ms, **place), made.timing("new", ms=new_ms, **place)


def own_chapter(folder, *rows, limits=RATES):
    return chapter(Machine(made.write(folder, timing=rows, ceilings=limits)))


def found(folder, *rows, limits=RATES) -> dict:
    own = own_chapter(folder, *rows, limits=limits)
    check(own)
    return told(own)


def test_one_machine_or_no_time_on_two_makes_no_chapter(tmp_path):
    assert chapter(example()) is None
    assert own_chapter(tmp_path / "one", made.timing("old")) is None
    assert own_chapter(tmp_path / "apart", made.timing("old"), made.timing("new", context=256)) is None


def test_the_takeaway_is_the_ratio_with_its_verdicts(tmp_path):
    rows = [*both(), *both(20.0, 20.1, context=256), *both(20.0, 40.0, context=512)]
    own = found(tmp_path, *rows)
    expected = {"range": [2.0, 20 / 20.1, 0.5], "middle": 20 / 20.1, "faster": 1, "same": 1, "slower": 1}
    assert {name: pytest.approx(value) for name, value in values(own[FIRST]).items()} == expected
    assert values(own["where is new fastest"]) == pytest.approx({"most": 2.0, "least": 0.5})


def test_of_single_processes_there_is_a_ratio_and_no_verdict(tmp_path):
    own = found(tmp_path, *both(processes=1), *both(context=256, processes=1))
    assert set(own[FIRST].numbers) == {"range", "middle"} and "no verdict" in own["what has no verdict"].text
    assert "faster" not in own[FIRST].text


def test_what_hosts_make_incomparable_is_told_with_its_cause(tmp_path):
    rows = [*both(), *both(context=256)]
    for row in rows[2:]:
        row |= {"step_limited_by": LAUNCHES, "host_python_ms": 1.0 if row["hardware"] == "old" else 2.0}
    own = found(tmp_path / "hosts", *rows)
    assert values(own["what cannot be compared"]) == {"lost": 1} and "1 of 2 comparisons" in own[
        "what cannot be compared"
    ].text.replace("{lost}", "1")
    assert values(own[FIRST])["not_comparable"] == 1
    assert "what cannot be compared" not in found(tmp_path / "gpu", *both(), *both(context=256))


@pytest.mark.parametrize(("ms", "is_told"), [(15.0, True), (10.0, False)])  # 1.33 and 2.00 beside 4 and 2
def test_the_speed_stands_beside_the_ratios_of_the_rates(ms, is_told, tmp_path):
    own = found(tmp_path, *both(20.0, ms))["what does new follow in fp32"]
    assert {name: values(own)[name] for name in ("arithmetic", "memory")} == {"arithmetic": 4.0, "memory": 2.0}
    assert values(own)["middle"] == pytest.approx(20 / ms)
    assert ("nearer to 1 than both" in own.text) == is_told


def test_without_rates_nothing_is_said_of_what_is_followed(tmp_path):
    assert not any(each.startswith("what does new follow") for each in found(tmp_path, *both(), limits=[]))


def test_sixteen_bits_that_are_slower_than_fp32_elsewhere_are_told(tmp_path):
    rows = [*both(10.0, 30.0), *both(12.0, 25.0, precision="bf16")]
    own = found(tmp_path / "slow", *rows)["is a machine in 16 bits slower than another in fp32"]
    # In bf16 the new machine multiplies 40 times as fast as the old one in fp32, and takes 25 ms instead of 10.
    assert values(own) == pytest.approx({"slower": 1, "own": 25.0, "other": 10.0, "rates": 40.0})
    rows = [*both(10.0, 30.0), *both(12.0, 9.0, precision="bf16")]
    assert "is a machine in 16 bits slower than another in fp32" not in found(tmp_path / "fast", *rows)


def test_what_fits_on_one_machine_only_is_named(tmp_path):
    rows = [*both(), made.timing("old", context=256), made.lost("new", context=256)]
    own = found(tmp_path, *rows)
    assert values(own["what fits on old only"]) == {"fitting": 1} and "what fits on new only" not in own


def test_of_three_machines_the_fastest_is_counted(tmp_path):
    rows = [*both(), made.timing("third", ms=5.0)]
    own = found(tmp_path, *rows)
    assert values(own["which machine is fastest"]) == {"third": 1}


def test_chapters_of_made_up_tables_keep_their_budgets_and_their_table(tmp_path):
    two = chapter(Machine(Tables(synthetic.write("two", tmp_path / "two"), made.STUDIES)))
    rows = [made.timing(f"machine-{at}", ms=20.0 + at * context / 128, context=context)
            for at in range(6) for context in (128, 256)]  # fmt: skip
    many = own_chapter(tmp_path / "many", *rows, limits=[])
    for own in (two, many):
        check(own)
        assert any(part.shows for part in fitted(own).parts)
    assert len(many.takeaway) == 2
