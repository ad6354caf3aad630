"""Small traces that each hold one thing which programs and versions write differently.

Two steps of 1 ms; in each the forward pass launches 2 kernels of 0.1 ms, the backward pass 3 by a
thread of its own, and the optimizer 1 of 0.05 ms. What is right is worked out by hand from it.
"""

import json
import sqlite3

import numpy as np
import pytest
from common import STRANGERS
from kineto_events import analyse_json, event
from nsys_exports import by_phase
from pytest import approx
from stepscope.trace import analysis, comparison

BASE = {"forward": (0.2, 2), "backward": (0.3, 3), "optimizer": (0.05, 1), "step": (0.55, 6)}


LIST = (STRANGERS / "12_list.json").read_text()


def tables_of(name, **keys):
    """The tables of a file of strangers/."""
    return analysis.analyse(analysis.read(STRANGERS / name), **keys)


def phases(tables):
    """Phase → (GPU milliseconds, kernels) a step."""
    rows = by_phase(tables)
    return {name: (1e3 * row["gpu_time"], row["kernels"]) for name, row in rows.iterrows()}


def approximately(expected):
    return {name: approx(pair, rel=1e-6) for name, pair in expected.items()}


def told(tables):
    """What is warned of → the warning."""
    return tables["warnings"].set_index("about")["text"]


@pytest.mark.parametrize(
    "name",
    [
        "05_launches_of_others.json",
        "05b_launches_of_others.json",
        "06_two_ranks.json",
        "08_forward_backward.json",
        "09_pytorch_names.json",
        "09b_pytorch_names.json",
        "11_windows_path.json",
        "12_list.json",
        "13_categories_of_2021.json",
    ],
)
def test_every_writer_says_the_same(name):
    tables = tables_of(name)
    assert phases(tables) == approximately(BASE)
    assert "phases" not in told(tables) and "no CUDA calls" not in told(tables)


@pytest.mark.parametrize(
    "name, others",
    [
        ("cuda_runtime", ["xpu_driver", "mtia_runtime", "privateuse1_driver", "gcu_runtime"]),
        ("kernel", ["concurrent_kernel", "mtia_ccp_events", "Kernel"]),
    ],
)
def test_vendors_name_calls_and_kernels_as_they_like(name, others):
    for other in others:
        assert phases(analyse_json(LIST.replace(f'"{name}"', f'"{other}"'))) == approximately(BASE)


@pytest.mark.parametrize("range_", ["## forward ##", "forward"])
def test_an_operator_that_is_called_as_a_phase_is_none(range_):
    """The range counts, not the operator beside it that has its name."""
    text = (STRANGERS / "03_operator_called_as_phase.json").read_text()
    tables = analyse_json(text.replace("## forward ##", range_))
    assert phases(tables)["forward"] == approx((0.2, 2))
    row = by_phase(tables).loc["forward", ["count", "host_time"]]
    assert row.tolist() == approx([2, 0.2e-3])


def test_of_copies_alone_it_is_said_that_kernels_are_missing():
    copy = event("gpu_memcpy", "Memcpy HtoD", 10, 5, pid=0, tid=7)
    assert "no kernels" in told(analyse_json({"traceEvents": [copy]}))
    assert "no kernels" not in told(tables_of("12_list.json"))


def test_calls_without_kernels_have_no_gpu_time():
    tables = tables_of("04_calls_without_kernels.json")
    about, text = tables["warnings"].iloc[0]
    assert about == "GPU time unknown" and "6 calls a step (cudaLaunchKernel" in text
    assert tables["phases"]["gpu_time"].isna().all() and tables["phases"]["kernels"].isna().all()
    assert tables["kernels"].empty and tables["gaps"].empty
    host = tables["phases"]["host_time"]  # of the step, forward, backward, optimizer
    assert host.tolist() == approx([1e-3, 0.2e-3, 0.3e-3, 0.1e-3])


def test_two_processes_in_one_file_are_two_ranks():
    tables = tables_of("06_two_ranks.json")
    rows = tables["processes"]
    for phase, (time, kernels) in BASE.items():
        own = rows[rows["phase"] == phase]
        assert set(own["process"]) == {"[TP00] 100", "[TP01] 101"}
        assert own["gpu_time"].tolist() == approx([1e-3 * time] * 2)
        assert own["kernels"].tolist() == [kernels] * 2
    ranks = tables["ranks"][["step", "compute", "idle"]].to_numpy()
    assert 1e3 * ranks == approx(np.array([[1, 0.55, 0.45]] * 2))


@pytest.mark.parametrize("are_mixed", [False, True])
def test_processes_with_numbers_for_names_are_told_apart_by_their_launches(are_mixed):
    """Devices have numbers of their own, or (of two hosts) the same."""
    text = (STRANGERS / "06_two_ranks.json").read_text()
    events = json.loads(text)["traceEvents"]
    for each in events:
        is_second = each["pid"].startswith("[TP01]")
        number = int(each["pid"].split()[1])
        is_device = each["cat"] == "kernel"
        each["pid"] = 0 if is_device and are_mixed else number + 5 * is_second
        each["ts"] += 0.4 * is_second  # it launches later
        each["args"]["correlation"] = each["args"].get("correlation", -1)
    tables = analyse_json({"traceEvents": events})
    rows = by_phase(tables, "processes").loc["backward", ["process", "kernels"]]
    assert rows.to_numpy().tolist() == [[100, 3], [106, 3]]


def test_a_range_in_itself_counts_once():
    tables = tables_of("07_range_in_itself.json")
    row = by_phase(tables).loc["forward", ["count", "host_time"]]
    assert row.tolist() == approx([2, 0.4e-3])
    rows = tables["modules"].set_index("module")[["gpu_time", "kernels"]]
    for name in ("FullyShardedDataParallel.forward", "aten::mm"):
        assert rows.loc[name].tolist() == approx([0.2e-3, 2])


def test_a_forward_pass_that_autograd_runs_again_is_no_phase():
    """Checkpointed modules under FSDP: on the engine's thread, within a backward function."""
    content = json.loads((STRANGERS / "09b_pytorch_names.json").read_text())
    for start in (1310, 3310):
        name = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
        around = event("cpu_op", name, start - 5, 60, 100, 2)
        own = event("user_annotation", "FullyShardedDataParallel.forward", start, 40, 100, 2)
        content["traceEvents"] += [around, own]
    tables = analyse_json(content)
    assert phases(tables) == approximately(BASE)
    assert by_phase(tables).loc["forward", "count"] == 2


def test_the_kinds_of_another_vendor():
    tables = tables_of("10_categories_and_waits.json")
    rows = tables["categories"]
    rows = rows[rows["phase"] == "all"].set_index("category")["time"]
    assert rows.to_dict() == approx(
        {"matmul": 0.1e-3, "copy/cast": 0.1e-3, "communication": 0.1e-3}
    )
    waits = tables["transfers"].set_index("what")["time"]
    assert waits.to_dict() == approx({"hipDeviceSynchronize": 0.2e-3, "hipMemcpy": 0.2e-3})
    assert len(tables["communication"]) == 1


def test_phases_that_occur_different_numbers_of_times():
    tables = tables_of("14_counts_differ.json")
    rows = by_phase(tables)
    each = rows[["count", "host_each", "gpu_each"]]
    assert each.loc["forward"].tolist() == approx([15, 0.2e-3, 0.1e-3])
    assert each.loc["backward"].tolist() == approx([5, 0.3e-3, 0.25e-3])
    assert "forward 15, backward 5" in told(tables)["steps"]
    given = by_phase(tables_of("14_counts_differ.json", steps=5))["gpu_time"]
    assert given.to_dict() == approx({"forward": 0.3e-3, "backward": 0.25e-3})


def test_phases_of_steps_that_are_known_may_come_several_times_or_not_in_each():
    """Two steps of 100 us, each with two forward passes of 30; an optimizer of 10 in the second."""
    spans = [("step", 0, 100), ("forward", 0, 30), ("forward", 40, 30)]
    spans += [(name, start + 200, length) for name, start, length in spans]
    spans.append(("optimizer", 285, 10))
    events = [event("user_annotation", *span) for span in spans]
    for name, start, length in spans:
        if name != "step":
            events.append(event("cpu_op", "aten::mm", start + 1, length - 2))
    names = ["step", "forward", "optimizer"]
    tables = analyse_json(events, names, None, 2)
    assert by_phase(tables).loc[names, "host_time"].tolist() == approx([100e-6, 60e-6, 5e-6])
    assert "steps" not in told(tables)


def test_the_programs_own_steps_go_before_those_of_the_profiler():
    """Lightning's profiler steps in the middle of a batch, the two lie across each other."""
    events = json.loads(LIST)
    steps = [each for each in events if each["name"].startswith("ProfilerStep#")]
    name = "[pl][profile]run_training_batch"
    events += [each | {"name": name, "ts": each["ts"] + 10} for each in steps]
    tables = analyse_json(events)
    assert phases(tables) == approximately(BASE)
    assert "steps" not in told(tables)


def test_of_a_processor_what_phases_lack_is_operators_time():
    events = [
        event("user_annotation", "Optimizer.step#SGD.step", 100, 50),
        event("cpu_op", "aten::add_", 100, 20),
        event("cpu_op", "aten::mm", 200, 60),
    ]
    text = told(analyse_json(events))["phases"]
    assert "(optimizer) hold 25.0 % of the operators' time" in text


def test_diagnostics_of_another_process_are_not_this_ones():
    tables = tables_of("15_diagnostics.sqlite")
    assert "profiler" not in told(tables) and phases(tables)["forward"] == approx((0.1, 1))


def test_a_log_beside_an_input_is_left_alone(tmp_path):
    path = tmp_path / "trace.sqlite"
    path.write_bytes((STRANGERS / "15_diagnostics.sqlite").read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=WAL")
    database.close()
    (tmp_path / "trace.sqlite-wal").write_bytes(b"no log")
    tmp_path.chmod(0o555)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    try:
        assert phases(analysis.analyse(analysis.read(path)))["forward"] == approx((0.1, 1))
    finally:
        tmp_path.chmod(0o755)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("aten::mm", r"C:\code\train.py\x"),
        lambda text: text.replace("aten::mm", "aten::\x01mm\n"),
        lambda text: text.replace('"dur": 50,', '"dur": 50, "x": -nan,'),
        lambda text: text.replace('"External id": 4}', '"External id": 18446744073709551615}'),
        lambda text: text.replace('"External id": 4}', '"External id": null}'),
        lambda text: text.rstrip().removesuffix("]") + ",\n",
        lambda text: text.replace("[{", '[null, 3, {"ph": "X"}, {', 1),
        lambda text: "\ufeff" + text,
        lambda text: text.encode().replace(b"aten::mm", b"aten::\xff\xfemm"),
    ],
)
def test_what_writers_get_wrong_in_names_and_numbers(damage):
    assert phases(analyse_json(damage(LIST))) == approximately(BASE)


@pytest.fixture
def changed():
    """The base trace beside what another text or list of events is analysed to: changes by kind
    and name."""

    def compared(content, *given):
        sides = tables_of("12_list.json"), analyse_json(content, *given)
        return comparison.compared(*sides).set_index(["kind", "name"])

    return compared


def test_another_vendors_categories_are_no_change(changed):
    """The base trace, and the same one with AMD's names."""
    other = LIST.replace("ampere_sgemm_128x64_nn", "Cijk_Ailk_Bljk_SB_MT128x64x8")
    rows = changed(other.replace("cudaLaunchKernel", "hipLaunchKernel"))
    assert set(rows["change"]) == {"same"}
    kernel = rows.loc[("kernel", "matmul, by another vendor's kernels"), ["before", "after"]]
    assert kernel.tolist() == approx([0.5e-3, 0.5e-3])
    assert "by another vendor's kernels" not in str([*changed(LIST).index])


def test_another_kernel_of_the_same_vendor_is_a_change(changed):
    rows = changed(LIST.replace("ampere_sgemm_128x64_nn", "ampere_sgemm_64x64_nn"))
    kernels = rows.loc["kernel", "change"]
    assert kernels["ampere sgemm 128x64 nn"] == "went"
    assert kernels["ampere sgemm 64x64 nn"] == "came"


def test_traces_without_ranges_are_compared_too(changed):
    events = json.loads(LIST)
    launches = [each for each in events if each["cat"] in ("cuda_runtime", "kernel")]
    of_kinds = changed(launches, None, None, 2).groupby("kind")["change"].agg(set).to_dict()
    assert of_kinds == {"phase": {"went"}, "category": {"same"}, "kernel": {"same"}}
