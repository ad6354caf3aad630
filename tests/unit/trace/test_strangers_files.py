"""Small traces that each hold one thing which programs and versions write differently.

Two steps of 1 ms; in each the forward pass launches 2 kernels of 0.1 ms, the backward pass 3 by a
thread of its own, and the optimizer 1 of 0.05 ms. What is right is worked out by hand from it.
"""

import json
import sqlite3
from pathlib import Path

import pytest
from stepscope.trace import analysis, comparison

FILES = Path(__file__).resolve().parents[2] / "data" / "strangers"
BASE = {"forward": (0.2, 2), "backward": (0.3, 3), "optimizer": (0.05, 1), "step": (0.55, 6)}


def tables_of(name, **keys):
    return analysis.analyse(analysis.read(FILES / name), **keys)


def phases(tables):
    """Phase → (GPU milliseconds, kernels) a step."""
    rows = tables["phases"].set_index("phase")
    return {name: (1e3 * row["gpu_time"], row["kernels"]) for name, row in rows.iterrows()}


def approximately(expected):
    return {name: pytest.approx(pair, rel=1e-6) for name, pair in expected.items()}


def told(tables):
    return dict(zip(tables["warnings"]["about"], tables["warnings"]["text"], strict=True))


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


VENDORS = ["xpu_driver", "mtia_runtime", "privateuse1_driver", "glow_runtime", "gcu_runtime"]


@pytest.mark.parametrize("calls", VENDORS)
@pytest.mark.parametrize("kernels", ["kernel", "concurrent_kernel", "mtia_ccp_events", "Kernel"])
def test_vendors_name_calls_and_kernels_as_they_like(analyse_json, calls, kernels):
    text = (FILES / "12_list.json").read_text()
    text = text.replace('"cuda_runtime"', f'"{calls}"').replace('"kernel"', f'"{kernels}"')
    tables = analyse_json(text)
    assert phases(tables) == approximately(BASE)


@pytest.mark.parametrize("range_", ["## forward ##", "forward"])
def test_an_operator_that_is_called_as_a_phase_is_none(analyse_json, range_):
    text = (FILES / "03_operator_called_as_phase.json").read_text()
    tables = analyse_json(text.replace("## forward ##", range_))
    assert phases(tables)["forward"] == pytest.approx((0.2, 2))
    row = tables["phases"].set_index("phase").loc["forward"]
    assert row["count"] == 2 and row["host_time"] == pytest.approx(0.2e-3)


def test_of_copies_alone_it_is_said_that_kernels_are_missing(analyse_json):
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "dur": 5}
    assert "no kernels" in told(analyse_json({"traceEvents": [copy | {"ts": 10}]}))
    assert "no kernels" not in told(tables_of("12_list.json"))


def test_calls_without_kernels_have_no_gpu_time():
    tables = tables_of("04_calls_without_kernels.json")
    about, text = tables["warnings"].iloc[0]
    assert about == "GPU time unknown" and "6 calls a step (cudaLaunchKernel" in text
    assert tables["phases"]["gpu_time"].isna().all() and tables["phases"]["kernels"].isna().all()
    assert tables["kernels"].empty and tables["gaps"].empty
    host = tables["phases"].set_index("phase")["host_time"]
    assert host.to_dict() == pytest.approx(
        {"step": 1e-3, "forward": 0.2e-3, "backward": 0.3e-3, "optimizer": 0.1e-3}
    )


def test_two_processes_in_one_file_are_two_ranks():
    tables = tables_of("06_two_ranks.json")
    rows = tables["processes"]
    for phase, (time, kernels) in BASE.items():
        own = rows[rows["phase"] == phase]
        assert set(own["process"]) == {"[TP00] 100", "[TP01] 101"}
        assert own["gpu_time"].tolist() == pytest.approx([1e-3 * time] * 2)
        assert own["kernels"].tolist() == [kernels] * 2
    ranks = tables["ranks"]
    assert ranks["step"].tolist() == pytest.approx([1e-3] * 2)
    assert ranks["compute"].tolist() == pytest.approx([0.55e-3] * 2)
    assert ranks["idle"].tolist() == pytest.approx([0.45e-3] * 2)


@pytest.mark.parametrize("are_mixed", [False, True])
def test_processes_with_numbers_for_names_are_told_apart_by_their_launches(analyse_json, are_mixed):
    """Devices have numbers of their own, or (of two hosts) the same."""
    text = (FILES / "06_two_ranks.json").read_text()
    events = json.loads(text)["traceEvents"]
    for event in events:
        is_second = event["pid"].startswith("[TP01]")
        number = int(event["pid"].split()[1])
        is_device = event["cat"] == "kernel"
        event["pid"] = 0 if is_device and are_mixed else number + 5 * is_second
        event["ts"] += 0.4 * is_second  # it launches later
        event["args"]["correlation"] = event["args"].get("correlation", -1)
    tables = analyse_json({"traceEvents": events})
    rows = tables["processes"][tables["processes"]["phase"] == "backward"]
    assert dict(zip(rows["process"], rows["kernels"], strict=True)) == {100: 3, 106: 3}


def test_a_range_in_itself_counts_once():
    tables = tables_of("07_range_in_itself.json")
    row = tables["phases"].set_index("phase").loc["forward"]
    assert row["count"] == 2 and row["host_time"] == pytest.approx(0.4e-3)
    rows = tables["modules"].set_index("module")
    for name in ("FullyShardedDataParallel.forward", "aten::mm"):
        assert rows.loc[name, "gpu_time"] == pytest.approx(0.2e-3)
        assert rows.loc[name, "kernels"] == 2


def test_a_forward_pass_that_autograd_runs_again_is_no_phase(analyse_json):
    """Checkpointed modules under FSDP: on the engine's thread, within a backward function."""
    content = json.loads((FILES / "09b_pytorch_names.json").read_text())
    for start in (1310, 3310):
        again = {"ph": "X", "pid": 100, "tid": 2, "ts": start, "dur": 40, "args": {}}
        engine = again | {"cat": "cpu_op", "ts": start - 5, "dur": 60}
        name = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
        content["traceEvents"].append(engine | {"name": name})
        own = {"cat": "user_annotation", "name": "FullyShardedDataParallel.forward"}
        content["traceEvents"].append(again | own)
    tables = analyse_json(content)
    assert phases(tables) == approximately(BASE)
    assert tables["phases"].set_index("phase").loc["forward", "count"] == 2


def test_the_kinds_of_another_vendor():
    tables = tables_of("10_categories_and_waits.json")
    rows = tables["categories"]
    rows = rows[rows["phase"] == "all"].set_index("category")["time"]
    assert rows.to_dict() == pytest.approx(
        {"matmul": 0.1e-3, "copy/cast": 0.1e-3, "communication": 0.1e-3}
    )
    waits = tables["transfers"].set_index("what")["time"]
    assert waits.to_dict() == pytest.approx({"hipDeviceSynchronize": 0.2e-3, "hipMemcpy": 0.2e-3})
    assert len(tables["communication"]) == 1


def test_phases_that_occur_different_numbers_of_times():
    tables = tables_of("14_counts_differ.json")
    rows = tables["phases"].set_index("phase")
    assert rows["count"].to_dict() == {"Forward".lower(): 15, "backward": 5}
    each = rows[["host_each", "gpu_each"]] * 1e3
    assert each.loc["forward"].tolist() == pytest.approx([0.2, 0.1])
    assert each.loc["backward"].tolist() == pytest.approx([0.3, 0.25])
    assert "forward 15, backward 5" in told(tables)["steps"]
    given = tables_of("14_counts_differ.json", steps=5)["phases"].set_index("phase")
    assert given.loc["forward", "gpu_time"] == pytest.approx(0.3e-3)
    assert given.loc["backward", "gpu_time"] == pytest.approx(0.25e-3)


def test_phases_of_steps_that_are_known_may_come_several_times_or_not_in_each(analyse_json):
    """Two steps of 100 us, each with two forward passes of 30; an optimizer of 10 in the second."""
    common = {"ph": "X", "pid": 1, "tid": 1}
    spans = [("step", 0, 100), ("forward", 0, 30), ("forward", 40, 30)]
    spans += [(name, start + 200, length) for name, start, length in spans]
    spans.append(("optimizer", 285, 10))
    events = [
        common | {"cat": "user_annotation", "name": name, "ts": start, "dur": length}
        for name, start, length in spans
    ]
    events += [
        common | {"cat": "cpu_op", "name": "aten::mm", "ts": start + 1, "dur": length - 2}
        for name, start, length in spans
        if name != "step"
    ]
    tables = analyse_json(events, ["step", "forward", "optimizer"], None, 2)
    rows = tables["phases"].set_index("phase")
    host = rows["host_time"] * 1e6
    assert host[["step", "forward", "optimizer"]].tolist() == pytest.approx([100, 60, 5])
    assert "steps" not in told(tables)


def test_the_programs_own_steps_go_before_those_of_the_profiler(analyse_json):
    """Lightning's profiler steps in the middle of a batch, the two lie across each other."""
    events = json.loads((FILES / "12_list.json").read_text())
    for event in events:
        if event["name"].startswith("ProfilerStep#"):
            of_program = {"name": "[pl][profile]run_training_batch", "ts": event["ts"] + 10}
            events = [*events, event | of_program]
    tables = analyse_json(events)
    assert phases(tables) == approximately(BASE)
    assert "steps" not in told(tables)


def test_of_a_processor_what_phases_lack_is_operators_time(analyse_json):
    phase = {"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 1}
    phase |= {"tid": 1, "ts": 100, "dur": 50}
    inside = phase | {"cat": "cpu_op", "name": "aten::add_", "dur": 20}
    outside = inside | {"name": "aten::mm", "ts": 200, "dur": 60}
    text = told(analyse_json([phase, inside, outside]))["phases"]
    assert "(optimizer) hold 25.0 % of the operators' time" in text


def test_diagnostics_of_another_process_are_not_this_ones():
    tables = tables_of("15_diagnostics.sqlite")
    assert "profiler" not in told(tables) and phases(tables)["forward"] == pytest.approx((0.1, 1))


def test_a_log_beside_an_input_is_left_alone(tmp_path):
    path = tmp_path / "trace.sqlite"
    path.write_bytes((FILES / "15_diagnostics.sqlite").read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=WAL")
    database.close()
    (tmp_path / "trace.sqlite-wal").write_bytes(b"no log")
    (tmp_path).chmod(0o555)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    try:
        assert phases(analysis.analyse(analysis.read(path)))["forward"] == pytest.approx((0.1, 1))
    finally:
        tmp_path.chmod(0o755)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


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
    ],
)
def test_what_writers_get_wrong_in_names_and_numbers(analyse_json, damage):
    text = (FILES / "12_list.json").read_text()
    tables = analyse_json(damage(text))
    assert phases(tables) == approximately(BASE)


def test_bytes_that_are_no_utf8(analyse_json):
    raw = (FILES / "12_list.json").read_bytes().replace(b"aten::mm", b"aten::\xff\xfemm")
    assert phases(analyse_json(raw)) == approximately(BASE)


def test_another_vendors_categories_are_no_change(analyse_json):
    """The base trace, and the same one with AMD's names."""
    text = (FILES / "12_list.json").read_text()
    other = text.replace("ampere_sgemm_128x64_nn", "Cijk_Ailk_Bljk_SB_MT128x64x8")
    sides = (
        tables_of("12_list.json"),
        analyse_json(other.replace("cudaLaunchKernel", "hipLaunchKernel")),
    )
    rows = comparison.compared(*sides)
    assert set(rows["change"]) == {"same"}
    kernel = (
        rows[rows["kind"] == "kernel"].set_index("name").loc["matmul, by another vendor's kernels"]
    )
    assert kernel[["before", "after"]].tolist() == pytest.approx([0.5e-3, 0.5e-3])
    same = comparison.compared(sides[0], sides[0])
    assert "by another vendor's kernels" not in " ".join(same["name"])


def test_another_kernel_of_the_same_vendor_is_a_change(analyse_json):
    text = (FILES / "12_list.json").read_text()
    other = text.replace("ampere_sgemm_128x64_nn", "ampere_sgemm_64x64_nn")
    sides = tables_of("12_list.json"), analyse_json(other)
    rows = comparison.compared(*sides).query("kind == 'kernel'").set_index("name")
    assert rows.loc["ampere sgemm 128x64 nn", "change"] == "went"
    assert rows.loc["ampere sgemm 64x64 nn", "change"] == "came"


def test_traces_without_ranges_are_compared_too(analyse_json):
    events = json.loads((FILES / "12_list.json").read_text())
    launches = [each for each in events if each["cat"] in ("cuda_runtime", "kernel")]
    before = analyse_json(launches, None, None, 2)
    rows = comparison.compared(before, tables_of("12_list.json"))
    of_kinds = rows.groupby("kind")["change"].agg(set).to_dict()
    assert of_kinds == {"phase": {"came"}, "category": {"same"}, "kernel": {"same"}}
