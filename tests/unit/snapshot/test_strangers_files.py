"""Small snapshots that each hold one thing which versions of PyTorch write differently. What is
right is worked out by hand from the blocks."""

import pickle

import pytest
from common import STRANGERS
from stepscope.report import recordings
from stepscope.snapshot import analysis, summary

MIB = 2**20


def row_of(tables):
    (row,) = tables["memory_summary"].to_dict("records")
    return row


def mended(tmp_path, name, change):
    """The tables of a file after a change of its content."""
    content = pickle.loads((STRANGERS / name).read_bytes())
    change(content)
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(content))
    return analysis.analyse_file(tmp_path / "a.pickle")


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
    tables = analysis.analyse_file(STRANGERS / name)
    assert row_of(tables)["peak"] / MIB == pytest.approx(peak)
    assert tables["memory_peak"]["blocks"].sum() == blocks
    assert f"peak {peak:,.1f} MiB" in summary.text(tables)


@pytest.mark.parametrize("line", [2**64 - 1, None, -1, "7"])
def test_a_line_that_is_not_known(tmp_path, line):
    def change(content):
        content["device_traces"][0][0]["frames"][0]["line"] = line

    tables = mended(tmp_path, "01_line.pickle", change)
    frames = set(tables["memory_lines"]["frame"])
    assert frames == {"train.py (unknown line) forward", "train.py:7 forward"}


@pytest.mark.parametrize("name", ["02_no_history.pickle", "02b_no_times.pickle"])
def test_without_history_or_times_there_is_no_picture(name):
    tables = analysis.analyse_file(STRANGERS / name)
    assert recordings.memory_picture(tables, name) is None


def test_a_device_without_a_history_beside_one_with_it(tmp_path):
    other = pickle.loads((STRANGERS / "02_no_history.pickle").read_bytes())["segments"][0]

    def change(content):
        content["segments"].append(other | {"device": 1})
        content["device_traces"].append([])

    tables = mended(tmp_path, "01_line.pickle", change)
    peaks = tables["memory_summary"].set_index("device")["peak"] / MIB
    assert peaks.to_dict() == {0: 40.0, 1: 41.0}
    assert recordings.memory_picture(tables, "a").startswith(b"<?xml")


def test_a_state_without_a_history_has_reserved_bytes():
    row = row_of(analysis.analyse_file(STRANGERS / "02_no_history.pickle"))
    assert (row["peak_reserved"] / MIB, row["events"]) == (64.0, 0)


def test_allocated_bytes_are_those_of_the_blocks():
    """22 MiB a block, as torch.cuda.max_memory_allocated counts, for 20.06 MiB asked for."""
    tables = analysis.analyse_file(STRANGERS / "16_rounded.pickle")
    row = row_of(tables)
    assert row["peak_allocated"] / MIB == 220.0 and row["is_allocated_known"]
    assert "takes 220.0 MiB as allocated" in summary.text(tables)


def test_a_block_that_is_gone_at_the_end_takes_at_least_what_was_asked_for(tmp_path):
    def change(content):
        freed = content["device_traces"][0][-1] | {"action": "free_completed", "frames": []}
        content["device_traces"][0].append(freed | {"time_us": 2000})
        content["segments"][0]["blocks"][-1]["state"] = "inactive"

    tables = mended(tmp_path, "16_rounded.pickle", change)
    row = row_of(tables)
    assert not row["is_allocated_known"] and row["peak"] / MIB == pytest.approx(200.625)
    assert row["peak_allocated"] == 9 * 22 * MIB + 21037056  # a multiple of 512


@pytest.mark.parametrize("base", [2**63 - 2**20, 2**63, 2**64 - 2**22])
def test_addresses_of_64_bits(tmp_path, base):
    def change(content):
        block = content["segments"][0]["blocks"][0]
        content["segments"][0]["address"] = block["address"] = base
        content["device_traces"][0][0]["addr"] = base

    row = row_of(mended(tmp_path, "17_high_address.pickle", change))
    assert row["peak"] / MIB == 20.0 and not row["cut"]


@pytest.mark.parametrize(
    "change",
    [
        lambda event: event.update(time_us=None),
        lambda event: event.pop("time_us"),
        lambda event: event.update(frames=None),
        lambda event: event["frames"][0].update(filename=None, name=None),
        lambda event: event["frames"][0].update(filename="tr\udcffain.py"),
    ],
)
def test_what_an_event_may_lack(tmp_path, change):
    tables = mended(
        tmp_path, "17_high_address.pickle", lambda content: change(content["device_traces"][0][0])
    )
    assert row_of(tables)["peak"] / MIB == 20.0
