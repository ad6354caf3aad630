"""Small snapshots that each hold one thing which versions of PyTorch write differently. What is
right is worked out by hand from the blocks."""

import pickle

import pytest
from common import STRANGERS
from snapshot_simulator import analyse, summary_of
from stepscope.report import recordings
from stepscope.snapshot import analysis, summary

MIB = 2**20


def content_of(name):
    """What a file of strangers/ holds, to be changed."""
    return pickle.loads((STRANGERS / name).read_bytes())


@pytest.mark.parametrize(
    "name, peak, blocks",
    [
        ("01_line.pickle", 40.0, 2),
        ("02_no_history.pickle", 41.0, 2),
        ("02b_no_times.pickle", 30.0, 2),
        ("16_rounded.pickle", 200.625, 10),
        ("17_high_address.pickle", 20.0, 1),
    ],
)
def test_peaks(name, peak, blocks):
    """In MiB, with the number of blocks that were there."""
    tables = analysis.analyse_file(STRANGERS / name)
    assert summary_of(tables)["peak"] / MIB == pytest.approx(peak)
    assert tables["memory_peak"]["blocks"].sum() == blocks
    assert f"peak {peak:,.1f} MiB" in summary.markdown(tables, "x")


@pytest.mark.parametrize("line", [2**64 - 1, None, -1, "7"])
def test_a_line_that_is_not_known(line):
    content = content_of("01_line.pickle")
    content["device_traces"][0][0]["frames"][0]["line"] = line
    frames = set(analyse(content)["memory_lines"]["frame"])
    assert frames == {"train.py (unknown line) forward", "train.py:7 forward"}


@pytest.mark.parametrize("name", ["02_no_history.pickle", "02b_no_times.pickle"])
def test_without_history_or_times_there_is_no_picture(name):
    tables = analysis.analyse_file(STRANGERS / name)
    assert recordings.memory_picture(tables, name) is None


def test_a_device_without_a_history_beside_one_with_it():
    content, other = content_of("01_line.pickle"), content_of("02_no_history.pickle")
    content["segments"].append(other["segments"][0] | {"device": 1})
    content["device_traces"].append([])
    tables = analyse(content)
    assert (tables["memory_summary"]["peak"] / MIB).tolist() == [40.0, 41.0]
    assert recordings.memory_picture(tables, "a").startswith(b"<?xml")


def test_a_state_without_a_history_has_reserved_bytes():
    row = summary_of(analysis.analyse_file(STRANGERS / "02_no_history.pickle"))
    assert (row["peak_reserved"] / MIB, row["events"]) == (64.0, 0)


def test_allocated_bytes_are_those_of_the_blocks():
    """22 MiB a block, as torch.cuda.max_memory_allocated counts, for 20.06 MiB asked for."""
    tables = analysis.analyse_file(STRANGERS / "16_rounded.pickle")
    row = summary_of(tables)
    assert row["peak_allocated"] / MIB == 220.0 and row["is_allocated_known"]
    assert "takes 220.0 MiB as allocated" in summary.markdown(tables, "x")


def test_a_block_that_is_gone_at_the_end_takes_at_least_what_was_asked_for():
    content = content_of("16_rounded.pickle")
    (trace,), (segment,) = content["device_traces"], content["segments"]
    freed = {"action": "free_completed", "frames": [], "time_us": 2000}
    trace.append(trace[-1] | freed)
    segment["blocks"][-1]["state"] = "inactive"
    row = summary_of(analyse(content))
    assert not row["is_allocated_known"] and row["peak"] / MIB == 200.625
    assert row["peak_allocated"] == 9 * 22 * MIB + 21037056  # a multiple of 512


@pytest.mark.parametrize("base", [2**63 - 2**20, 2**63, 2**64 - 2**22])
def test_addresses_of_64_bits(base):
    content = content_of("17_high_address.pickle")
    (segment,) = content["segments"]
    segment["address"] = segment["blocks"][0]["address"] = base
    content["device_traces"][0][0]["addr"] = base
    row = summary_of(analyse(content))
    assert row["peak"] / MIB == 20.0 and not row["cut"]


@pytest.mark.parametrize(
    "change",
    [
        lambda event: event.update(time_us=None),
        lambda event: event.update(frames=None),
        lambda event: event["frames"][0].update(filename=None, name=None),
        lambda event: event["frames"][0].update(filename="tr\udcffain.py"),
    ],
)
def test_what_an_event_may_lack(change):
    content = content_of("17_high_address.pickle")
    change(content["device_traces"][0][0])
    assert summary_of(analyse(content))["peak"] / MIB == 20.0
