"""Several ranks of one run: made-up ones with known answers, and two recorded by torchrun."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from common import TRACES, picked
from kineto_events import analyse_json, event
from pytest import approx
from stepscope.trace import analysis, collectives

RECORDED = [TRACES / f"ddp_gloo_rank{rank}.json.gz" for rank in (0, 1)]
KEYS = ["rank", "group", "name", "sequence", "start", "end"]


def table(*rows):
    """Collectives with these columns, as they are read from recordings."""
    return pd.DataFrame(rows, columns=KEYS)


@pytest.mark.parametrize(
    "rows, expected",
    [
        ([(0, "a", -1, 0), (0, "a", -1, 5), (1, "a", -1, 9), (1, "a", -1, 3)], [0, 1, 1, 0]),
        ([(0, "a", -1, 0), (0, "b", -1, 2), (1, "b", -1, 3)], [0, 1, 1]),
        # Rank 1's recording began one collective later.
        ([(0, "a", 7, 0), (0, "a", 8, 2), (1, "a", 8, 2)], [0, 1, 1]),
    ],
)
def test_the_same_collective_is_the_same_by_order_or_number_in_its_group(rows, expected):
    found = table(*((rank, group, "sum", *when, when[-1] + 1) for rank, group, *when in rows))
    instances, _ = pd.factorize(collectives.instances(found))
    assert instances.tolist() == expected


def test_another_collective_of_the_group_is_another():
    found = table((0, "a", "sum", -1, 0, 1), (1, "a", "max", -1, 0, 1))
    assert len(set(collectives.instances(found))) == 2


def test_clocks_over_groups_of_which_each_rank_is_in_some():
    """Ranks 0 and 1 share group a, 1 and 2 group b: 2 has nothing to do with 0 but through 1."""
    rows = []
    for number in range(5):
        for rank, group, ahead in ((0, "a", 0), (1, "a", 100), (1, "b", 100), (2, "b", -7)):
            end = 10 * number + ahead + (3 if number == 4 else 0) * (rank == 2)
            rows.append((rank, group, "sum", -1, end - 1, end))
    found = table(*rows)
    assert collectives.clock_offsets(found, collectives.instances(found)) == {0: 0, 1: -100, 2: 7}


def test_waiting_is_until_the_last_rank_has_started():
    """The last one waits for nobody, and is what the others waited for."""
    found = table((0, "", "sum", -1, 0, 10), (1, "", "sum", -1, 6, 10), (2, "", "sum", -1, 4, 10))
    waits = collectives.with_waits(found)
    assert (waits["until"] - waits["start"]).tolist() == [6, 0, 2]
    assert collectives.waited_for(waits) == {0: 0, 1: 8, 2: 0}


@pytest.mark.parametrize(
    "name, given, got, expected",
    [
        ("allreduce", 8, 8, 8 * 2 * 3 / 4),
        ("all_gather_into_tensor_coalesced", 2, 8, 8 * 3 / 4),
        ("reduce_scatter_tensor", 8, 2, 8 * 3 / 4),
        ("all_to_allv", 8, 8, 8 * 3 / 4),
        ("broadcast", 8, 8, 8),
        ("send", 8, 8, 8),
    ],
)
def test_bytes_of_a_link_are_those_of_nccl_tests(name, given, got, expected):
    assert collectives.bus_bytes(name, given, got, 4) == expected


def rank_of(rank, delay, ahead, size=2):
    """Two steps of 1000 us. A product of 100 us, then an all-reduce of 1000 floats over the ranks,
    which ends at 400 and starts `delay` after 200; beside it a product of 150 us, alone later one
    of 100; the clock is `ahead`."""
    events = []
    for step in range(2):
        zero = 1000 * step + ahead
        events.append(event("user_annotation", f"ProfilerStep#{step}", zero, 1000))
        kernels = [("ampere_sgemm", 0, 100, 7), ("ampere_sgemm", 210, 150, 7)]
        kernels.append(("ampere_sgemm", 500, 100, 7))
        kernels.append(("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 200 + delay, 200 - delay, 9))
        for number, (name, start, length, stream) in enumerate(kernels):
            key = 10 * step + number + 1
            events.append(
                event("cuda_runtime", "cudaLaunchKernel", zero + number, 1, correlation=key)
            )
            said = {"correlation": key, "device": rank, "stream": stream, "grid": [1, 1, 1]}
            if name.startswith("nccl"):
                said |= {"Collective name": "allreduce", "In msg nelems": 1000, "dtype": "Float"}
                said |= {"Out msg nelems": 1000, "Group size": size, "Process Group Name": "0"}
            events.append(event("kernel", name, zero + start, length, rank, stream, **said))
    told = {"backend": "nccl", "rank": rank, "world_size": size}
    return {"traceEvents": events, "distributedInfo": told}


@pytest.fixture
def ranks(tmp_path):
    """Files of two ranks: the second starts each all-reduce 50 us later, by a clock 7 ms ahead."""
    paths = []
    for rank, (delay, ahead) in enumerate(((0, 0), (50, 7000))):
        paths.append(tmp_path / f"some_{rank}_{'ab'[rank]}.json")
        paths[-1].write_text(json.dumps(rank_of(rank, delay, ahead)))
    return paths


def of_ranks(paths):
    """The tables of several ranks' files."""
    return analysis.analyse(analysis.of_ranks([analysis.read(path) for path in paths]))


def test_two_ranks_taken_apart(ranks):
    rows = 1e6 * of_ranks(ranks)["ranks"].set_index("rank")
    # A step of 1000: computing 100 + 150 + 100, the all-reduce from 200 or 250 to 400, of which the
    # second product covers 210 to 360.
    expected = {"step": 1000, "compute": 350, "waiting": 10, "transfer": 40, "idle": 600}
    assert {key: rows.loc[0, key] for key in expected} == approx(expected)
    expected |= {"waiting": 0, "transfer": 40, "idle": 610}
    assert {key: rows.loc[1, key] for key in expected} == approx(expected)
    assert rows["waited_for"].tolist() == approx([0, 50])


def test_each_collective_of_a_rank_has_a_row(ranks):
    rows = of_ranks(ranks)["communication"].set_index("rank")
    counted = rows[["collective", "ranks", "count", "elements", "bytes"]].to_numpy()
    assert counted.tolist() == [["allreduce", 2, 1, 1000, 4000]] * 2
    seconds = 1e6 * rows[["time", "waiting", "transfer", "hidden", "exposed"]]
    assert seconds.loc[0].tolist() == approx([200, 50, 150, 150, 50])
    assert seconds.loc[1].tolist() == approx([150, 0, 150, 110, 40])
    # An all-reduce of two sends each byte once over each link: 4000 bytes in 150 us.
    assert rows["bus_rate"].tolist() == approx([4000 / 150e-6] * 2)
    # Beside it the product takes 150, alone 100.
    assert set(rows["beside"]) == {"ampere sgemm"}
    slowed = rows[["slowed", "slowed_share"]].astype(float).to_numpy()
    assert slowed == approx(np.array([[50e-6, 0.5]] * 2))


def test_kernels_of_another_grid_are_not_compared():
    content = rank_of(0, 0, 0)
    for each in content["traceEvents"]:
        if each["dur"] == 150:
            each["args"]["grid"] = [2, 1, 1]
    (row,) = analyse_json(content)["communication"].to_dict("records")
    assert row["beside"] == "ampere sgemm" and row["slowed"] is None
    assert np.isnan(row["waiting"])  # for ranks that were not recorded


def test_kernels_in_which_ranks_differ(tmp_path):
    """Rank 1 takes 130 us for what takes rank 0 100."""
    paths = []
    for rank, length in enumerate((100, 130)):
        content = rank_of(rank, 0, 0)
        for each in content["traceEvents"]:
            if each["cat"] == "kernel" and each["dur"] == 100:
                each["dur"] = length
        paths.append(tmp_path / f"{rank}.json")
        paths[-1].write_text(json.dumps(content))
    (row,) = of_ranks(paths)["rank_kernels"].to_dict("records")
    # The mean of 100, 150, 100 and of 130, 150, 130, three times a step.
    assert (row["fastest_rank"], row["slowest_rank"], row["calls"]) == (0, 1, 3)
    times = [1e6 * row[key] for key in ("fastest", "slowest", "difference")]
    assert times == approx([350 / 3, 410 / 3, 60])


def test_ranks_are_found_and_never_before_and_after(ranks, run_analyze, tmp_path):
    done = run_analyze(*ranks)
    assert done.returncode == 0 and "The others wait longest for rank 1: 0.050 ms" in done.stdout
    assert "Before and after" not in done.stdout and (tmp_path / "out" / "ranks.csv").is_file()
    done = run_analyze(ranks[0], ranks[0], "--out", tmp_path / "same")  # of one rank, twice
    assert done.returncode == 0 and "Before and after" in done.stdout


def test_files_that_say_nothing_are_ranks_by_name_or_by_flag(ranks, run_analyze, tmp_path):
    def given(*words):
        return run_analyze(*words)

    packed, plain, named = [], [], []
    for rank, path in enumerate(ranks):
        content = json.loads(path.read_text())
        del content["distributedInfo"]
        raw = json.dumps(content).encode()
        packed.append(tmp_path / f"trace-TP-{rank}.json.gz")
        packed[-1].write_bytes(gzip.compress(raw))
        for paths, name in ((plain, f"{'xy'[rank]}.json"), (named, f"rank{rank}.json")):
            paths.append(tmp_path / name)
            paths[-1].write_bytes(raw)
    for words in (packed, named, ["--ranks", *plain]):
        assert "rank 1: 0.050 ms" in run_analyze(*words).stdout
    assert "Before and after" in run_analyze(*plain).stdout
    done = run_analyze(*plain, packed[0])
    assert done.returncode == 1 and "give --ranks if they are" in done.stderr


def test_two_recorded_ranks_of_which_one_sleeps():
    """Rank 1 sleeps 20 ms before its backward pass, so that rank 0 waits in its all-reduce. By
    hand: what a rank's all-reduce takes longer than that of the rank that came last."""
    tables = of_ranks(RECORDED)
    lengths = []
    for path in RECORDED:
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        own = picked(events, name="gloo:all_reduce")
        lengths.append([each["dur"] for each in sorted(own, key=lambda each: each["ts"])])
    longer = np.subtract(*lengths).sum() / 3
    assert longer > 20_000
    ranks = tables["ranks"].set_index("rank")
    assert 1e6 * ranks.loc[1, "waited_for"] == approx(longer, rel=0.02)
    assert ranks.loc[0, "waited_for"] == 0 and ranks.loc[1, "waiting"] == 0
    assert ranks.loc[1, "idle"] > 0.02 > ranks.loc[0, "idle"]
    parts = ranks[["compute", "transfer", "waiting", "idle"]].sum(axis=1)
    assert parts.tolist() == approx(ranks["step"].tolist())
    communication = tables["communication"].set_index("rank")
    assert communication["count"].tolist() == [1, 1] and set(communication["ranks"]) == {2}
    assert (1e6 * communication["time"]).tolist() == approx([sum(x) / 3 for x in lengths])
