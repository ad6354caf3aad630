"""Facts of the made-up machines, worked out by hand from the round numbers of made_up.py."""

from dataclasses import replace

import made_up
import pandas as pd
import pytest
from common import picked
from pytest import approx
from stepscope.report import book
from stepscope.report.facts import (
    attention,
    inside,
    kernels,
    memory,
    method,
    page_one,
    precision,
    published,
    setup,
    time,
    warmup,
)
from stepscope.report.facts import machines as side_by_side
from stepscope.report.facts.ladders import ladders
from stepscope.report.facts.machine import limited, machine
from stepscope.report.facts.profile import plain_at, profiled, subject, top_at
from stepscope.report.kit.data import Data, machines
from stepscope.report.kit.quantity import Quantity


@pytest.fixture
def own(gpu):
    """The first ladder of the made-up GPU."""
    return ladders(gpu)[0]


def assert_values(found, **expected):
    """Of quantities, by name."""
    assert {name: getattr(found, name).value for name in expected} == approx(expected)


def test_ceilings_are_bursts(gpu):
    own = machine(gpu)
    assert own.is_gpu and own.name == "Accelerator <A>"
    assert (own.rate("bf16").value, own.sustained["bf16"].value, own.copy.value) == approx(
        (500e12, 450e12, 4e12)
    )


def test_a_place_predicts_from_the_ceilings(gpu):
    where = subject(gpu)
    assert where.key == ("big", 1024, 4)
    assert_values(
        where,
        arithmetic=50e12 / 500e12,
        optimizer_fused=28 * 1e9 / 4e12,
        optimizer_written=72 * 1e9 / 4e12,
        scores=8 * 16 * 4 * 1024**2 * 106 / 4e12,
    )


def test_the_ladder_is_compared_as_its_command_says(own):
    assert [rung.kind for rung in own.rungs] == [
        "fp32",
        "tf32",
        "bf16",
        "sdpa",
        "block",
        "graphs",
        "fused",
    ]
    assert [rung.kind for rung in own.asides] == ["checkpoint 2"]
    assert own.plain.kind == "bf16" and own.top.kind == "fused"
    assert own.is_cast and own.over_plain.value == approx(0.5 / 0.25)
    assert own.plain.total_gain.value == approx(2.0 / 0.5)
    won = {rung.kind: rung.won.value for rung in own.after_plain}
    assert won == approx({"sdpa": 0.1, "block": 0.08, "graphs": 0.02, "fused": 0.05})
    assert [rung.kind for rung in own.gains] == ["sdpa", "block", "fused"]
    assert [rung.kind for rung in own.without_gain] == ["graphs"]


def test_mechanisms_predict_what_a_change_wins(own):
    predicted = {rung.kind: rung.predicted_won for rung in own.rungs}
    assert predicted["tf32"].value == approx(50e12 / 50e12 - 50e12 / 250e12)
    assert predicted["bf16"].value == approx(0.2 - 0.1)
    assert predicted["sdpa"].value == approx(8 * 16 * 4 * 1024**2 * 106 / 4e12)
    assert predicted["fused"].value == approx(0.05 - 0.007)
    assert predicted["block"] is None
    assert predicted["graphs"] is None  # what the GPU waits is measured
    assert own.rung("block").idle.value == approx(0.32 - 0.27)


def test_a_phase_that_beats_the_data_sheet_is_no_measurement(gpu, own):
    assert own.rung("fused").optimizer.value == approx(0.01)
    rates = gpu["series"].query("study == 'ceilings' and size == 'copy'")
    promised = pd.concat([gpu["series"], rates.assign(variant="datasheet", median=2e12)])
    slow = ladders(made_up.planted(gpu, series=promised))[0]  # 28 GB take 14 ms
    assert slow.rung("fused").optimizer is None
    assert slow.rung("graphs").optimizer.value == approx(0.05)


def test_one_slow_process_is_not_said_to_make_launches_limit():
    """Of 91, 93 and 125 ms, whose kernels take 82: 15 % more is within the interval."""
    clock, alone = Quantity(0.102, "s", low=0.0755, high=0.138), Quantity(0.082, "s")
    assert limited("launches", clock, alone) == "launches or GPU"
    assert limited("launches", replace(clock, low=0.0945), alone) == "launches"
    assert limited("launches", Quantity(0.102, "s"), alone) == "launches"  # one process alone
    assert limited("GPU", clock, alone) == "GPU"


def with_rows(table, cell, variant, **columns):
    """A table with other values in the rows of a cell's variant."""
    table = table.copy()
    is_it = (table["cell"] == cell) & (table["variant"] == variant)
    table.loc[is_it, list(columns)] = list(columns.values())
    return table


def test_the_fastest_row_without_a_coarse_format_need_not_be_the_one_before_it(gpu, own):
    """Fused becomes fp8, which rounds more than 16 bits do; graphs slower than block (0.32 s)."""
    cell = own.data.cell
    declared = with_rows(gpu["variants"], cell, own.rung("fused").variant, precision="fp8")
    slow = with_rows(gpu["series"], cell, own.rung("graphs").variant, median=0.35)
    made = ladders(made_up.planted(gpu, variants=declared, series=slow))[0]
    assert made.top.step.value == 0.25 and made.top_but_coarse.kind == "block"


def test_the_configuration_of_all_gains_is_recommended_where_it_ran(gpu, own):
    assert own.recommended is None
    gains = own.rung("fused").options | {"compile": "block"}
    declared = with_rows(gpu["variants"], own.data.cell, "checkpoint", **gains)
    made = ladders(made_up.planted(gpu, variants=declared))[0]
    assert made.recommended.variant == "checkpoint"


@pytest.mark.parametrize(("ladder", "ceilings", "is_other"), [("a", "b", True), ("a", "a", False)])
def test_rates_of_another_card_are_told_of(gpu, own, ladder, ceilings, is_other):
    cells = gpu["cells"].copy()
    cells["gpu_uuid"] = ceilings
    cells.loc[cells["cell"] == own.data.cell, "gpu_uuid"] = ladder
    assert ladders(made_up.planted(gpu, cells=cells))[0].is_other_card == is_other


def test_what_a_change_won_has_the_interval_of_its_ratio(own):
    block = own.rung("block")
    clock = block.before.step.value
    assert block.won.low == approx(clock * (1 - 1 / block.gain.low))
    assert block.won.high == approx(clock * (1 - 1 / block.gain.high))


def test_a_prediction_is_one_of_the_clock_where_the_gpu_limits(own):
    assert not own.is_starved and all(rung.predicted_alone is None for rung in own.rungs)
    assert own.rung("sdpa").held_won == own.rung("sdpa").won


def test_a_profiled_step_adds_up_to_the_clock(gpu):
    found = profiled(gpu)
    plain = plain_at(found, subject(gpu), "bf16")
    assert plain.clock.value == approx(0.5) and plain.busy.value == approx(0.36)
    parts = [
        plain.products,
        plain.attention,
        plain.casts,
        plain.optimizer,
        plain.others,
        plain.idle,
    ]
    assert [part.value for part in parts] == approx([0.11, 0.0, 0.06, 0.02, 0.17, 0.14])
    assert sum(part.value for part in parts) == approx(plain.clock.value)
    top = top_at(found, plain)
    assert_values(top, attention=0.02, clock=0.25)


def test_page_one_tells_of_the_largest_place(gpu):
    found = page_one.facts(gpu)
    assert found.limit == "other" and found.arithmetic_share.value == approx(0.1 / 0.5)
    assert_values(found.ladder, left=0.25 - 0.1 - 0.007, sustained=50e12 / 450e12)
    assert found.place.state.value == approx(16e9)
    assert found.reserved.value == approx(90e9)
    assert found.ladder.top.peak.value == approx(50e9)
    assert (found.doubts["missing"].value, found.doubts["older"].value) == (2, 1)
    assert found.doubts["told"] == ["missing", "older", "throttled"]


def test_does_this_apply_to_me(gpu):
    found = page_one.facts(gpu).applies
    rows = {(row["last"].place.size, row["contexts"]): row for row in found}
    assert set(rows) == {("little", "256"), ("big", "256"), ("big", "1,024")}
    told = {key: (row["last"].limits, row["change"], row["saves"]) for key, row in rows.items()}
    assert told["little", "256"] == ("launches", "CUDA graphs", "75 to 97")
    # 11 ms of bytes, of scores 0.9
    assert told["big", "256"] == ("GPU", "fused AdamW", "5")
    # by its ladder, not by bytes
    assert told["big", "1,024"] == ("GPU", "fused attention (SDPA)", "20")


def test_phases_beside_their_bytes(gpu):
    found = time.facts(gpu)
    forward, backward, optimizer = found.phases
    scores = 8 * 16 * 4 * 1024**2 / 4e12
    assert forward.predicted.value == approx(0.1 / 3 + 42 * scores)
    assert backward.predicted.value == approx(0.2 / 3 + 64 * scores)
    assert_values(optimizer, predicted=0.018, gap=0.05 / 0.018 - 1)
    assert found.timed.backward_ratio.value == approx(2.0)
    assert found.timed.both_ratio.value == approx(3.0)
    assert [each.place.name for each in found.sizes] == []  # `little` has another context
    assert [at.context.value for at in found.contexts] == [256, 1024]
    assert found.growth.value == approx(0.5 / 0.2)


def test_facts_that_follow_are_written_with_their_cells(gpu):
    written = book.as_plain(time.facts(gpu))
    assert written["growth"]["value"] == approx(0.5 / 0.2)
    assert len(written["growth"]["cells"]) == 2
    assert written["phases"][2]["gap"]["value"] == approx(0.05 / 0.018 - 1)
    assert "data" not in written and not any(name.startswith("_") for name in written)


def test_kernels_split_what_is_no_product(gpu):
    found = kernels.facts(gpu)
    assert_values(
        found,
        rate=50e12 / 0.11,
        casts_added=0.06 - 0.01,
        overhead=0.72 / 0.5,
    )
    assert_values(found.own, not_products=0.36 - 0.11 - 0.02, products_share=0.11 / 0.36)
    (starved,) = found.limited
    assert_values(starved, host_free=0.015, busy=0.01, launches=3000, each=0.06 / 3000)
    assert found.own.busy_share.value == approx(0.36 / 0.5)


def test_memory_counts_reserved_bytes_where_graphs_run(gpu):
    found = memory.facts(gpu)
    assert found.place.key == ("big", 1024, 4)
    assert (
        found.asked.value,
        found.standing.value,
        found.of_category["activations"].value,
    ) == approx((50e9, 15e9, 20e9))
    assert_values(found, unused=55e9 - 50e9, fp32_change=50 / 60 - 1, inference_share=0.25)
    assert found.growth[0]["squared"].value == approx(0.5)
    assert found.is_computable and found.all.gap.value == 0


def test_a_peak_of_which_a_category_is_off_cannot_be_computed(gpu):
    off = gpu["memory_peak"].assign(predicted=gpu["memory_peak"]["predicted"] * 1.05)
    found = memory.facts(made_up.planted(gpu, memory_peak=off))
    assert found.all.gap.value == 0 and not found.is_computable  # the whole is 0 % off all the same


def test_compiling_costs_what_all_processes_spent_on_it(own):
    assert own.rung("block").compile_time.value == approx(3 * 8.0)
    assert own.has_turns


def test_attention_moves_what_its_code_says(gpu):
    found = attention.facts(gpu)
    assert (found.d_head, found.precision, found.longest.value) == ("64", "bf16", 2048)
    flop = 4 * 8 * 2048**2 * 64
    assert_values(
        found, arithmetic=flop / 500e12, naive_predicted=flop / 500e12 + 38 * 8 * 2048**2 / 4e12
    )
    assert found.kept_gap.value == approx(0) or abs(found.kept_gap.value) < 1e-9
    names = [found.forward[which].name for which in ("first", "second")]
    assert (*names, found.forward["verdict"]) == ("sdpa-cudnn", "triton", "faster")
    assert found.forward["first"].gain.value == approx(40) and found.growth.value == approx(
        found.scores_growth.value
    )
    assert found.oom_length.value == 4096


def test_a_call_of_attention_by_time_operations_and_bytes(gpu):
    found = inside.facts(gpu)
    assert found.place.key == ("big", 1024, 4)
    whole, (_, softmax) = found.whole, found.parts
    assert (whole["gpu_time"].value, whole["gpu_max"].value) == approx((0.01, 0.012))
    told = {name: softmax[name].value for name in ("gpu_time", "flop", "bytes", "kernels")}
    assert told == approx({"gpu_time": 0.005, "flop": 1e9, "bytes": 10e9, "kernels": 2})
    assert softmax["share"].value == approx(0.5)
    assert softmax["bandwidth"].value == approx(2e12)
    assert softmax["intensity"].value == approx(0.1)
    assert softmax["top_mean"].value == approx(0.04 * 0.5 / 16)
    # A quarter of the operations, five times the bytes, four times the time.
    assert {name: each.value for name, each in found.softmax.items()} == approx(
        {"flop": 0.25, "bytes": 5, "gpu_time": 4, "host_time": 1, "kernels": 1}
    )
    assert found.is_by_bytes and found.scores_flop.value == approx(4)
    assert found.longest is softmax and not found.is_host_behind
    assert_values(found, arithmetic=5e9 / 500e12, traffic=12e9 / 4e12, ridge=125)
    assert_values(found, traffic_gap=0.01 / 0.003 - 1, of_forward=0.5, beside=0.5)


def test_the_profiler_beside_the_clock(gpu):
    found = method.facts(gpu)
    assert found.profilers == ["nsys 2025.3"]
    first = found.profiles[0]
    assert first["place"].key == ("big", 1024, 4) and first["forward"].value == approx(1.05)
    (forward,) = first["phases"]
    told = {name: forward[name].value for name in ("host_time", "clock", "clock_std")}
    assert told == approx({"host_time": 0.16, "clock": 0.158, "clock_std": 0.002})
    (warning,) = found.warnings
    assert (warning["warning"], warning["cells"].value) == ("events were lost", 5)


def test_formats(gpu):
    found = precision.facts(gpu)
    assert found.ceiling_gain.value == approx(10)
    assert [(row.place.name, row.step.value) for row in found.speeds] == [
        ("little at context 256", approx(1.0)),
        ("big at context 256", approx(2.5)),
        ("big at context 1,024", approx(4.0)),
    ]
    assert (found.stuck["sum"].value, found.stuck["last_change"].value) == (4.0, 350)
    assert found.stuck["off"].value == approx(-0.6)
    norm = found.find("LayerNorm", precision.WHOLE, "bf16")
    assert norm["error"].value == approx(0.006) and norm["breaks"] is None
    assert found.find("LayerNorm", precision.WHOLE, "fp16")["breaks"].value == 256


def test_cells_that_ran_at_a_time_are_counted():
    start = "2026-01-01T00:00:{:02}+00:00"
    cells = [
        {
            "started": start.format(at),
            "duration_s": 10.0,
            "gpu_uuid": gpu,
        }  # starts are whole seconds
        for at, gpu in ((0, "a"), (9, "b"), (12, "b"), (20, "a"))
    ]
    assert method.at_once(cells[:3]) is None and method.at_once(cells).value == 2


def test_warm_up(gpu):
    found = warmup.facts(gpu)
    assert found.cost.value == approx(6.0)
    assert found.step["off"].value == approx(0.6)
    assert found.step["enough"].value == 2  # 0.51 s is 2 % off, 0.55 s is 10 %
    (step,) = found.phases
    assert (step["phase"], step["after_1"].value, step["std_1"].value) == ("step", 0.55, 0.01)
    assert found.parts[0]["part"] == "launches, module loading"
    assert found.busy["first"].value == approx(1.5)


def test_warm_up_is_enough_from_where_on_each_mean_is_close():
    """Means over a steady step of 1 s after 0, 1, 2, 5 steps: of few the last is of the steady
    steps themselves, and alone says nothing."""

    def enough(*means):
        rows = [
            {"cell": "c", "skipped": skipped, "mean": mean, "steady": 1.0, "first": 2.0, "std": 0.1}
            for skipped, mean in zip((0, 1, 2, 5), means, strict=False)
        ]
        found = warmup._means(rows)["enough"]
        return found and found.value

    assert enough(1.8, 1.04, 0.96, 1.0) == 1
    assert enough(1.02, 1.2, 1.0, 1.0) == 2  # near by chance before
    assert enough(1.5, 1.3, 1.0) is None
    assert enough(1.8, 1.04, 1.0) == 1


def test_published_figures_in_doubt_are_not_compared(gpu):
    found = published.facts(gpu)
    assert [found.counts[name].value for name in ("figures", "compared", "doubted")] == [3, 2, 1]


def test_method_names_what_is_missing(gpu):
    found = method.facts(gpu)
    lacking = {each["state"]: each["rows"] for each in found.lacking}
    huge = {"cell": "gpu-a/timing/huge/ctx1024/bf16", "reason": "no data here"}
    assert lacking["missing"] == [huge]
    assert picked(lacking["of older code"], "cell") == ["gpu-a/memory/old"]
    assert found.throttled.value == 1 and found.throttle == ["power cap"]
    assert found.commands["gpu-a/memory/old"] == "python scripts/measure.py gpu-a/memory/old"


def test_the_model_by_the_rule_of_six(gpu):
    found = setup.facts(gpu)
    assert_values(found, six=6 * 1e9 * 4096, six_gap=50e12 / (6 * 1e9 * 4096) - 1)


def test_heads_of_keys_are_shown_where_they_are_grouped():
    def sizes(*heads):
        rows = [
            {"num_heads": 32, "key_value_heads": Quantity(each, "count"), "parameters": None}
            for each in heads
        ]
        return [row["key_value_heads"] for row in setup._sizes(rows)]

    assert sizes(8, 0) == [Quantity(8, "count"), 32]
    assert sizes(0) == [None]


def test_without_a_gpu(cpu):
    found = page_one.facts(cpu)
    assert not found.machine.is_gpu and found.limit == "arithmetic"
    assert found.arithmetic_share.value == approx(1e9 / 100e9 / 0.02)
    shares = [found.shown.products_share, found.shown.optimizer_share, found.shown.rest_share]
    assert [each.value for each in shares] == approx([0.5, 0.1, 0.4])
    assert found.ladder.top_is_gain and [rung.kind for rung in found.ladder.without_gain] == [
        "fused"
    ]
    assert found.memory.all.gap.value == 0


def test_the_gpu_comes_first(folders):
    assert machines(folders["both"]) == [made_up.GPU, made_up.CPU]
    assert machines(folders["none"]) == []


def test_machines_meet_where_they_ran_the_same(folders):
    found = side_by_side.facts(Data(folders["both"], made_up.GPU))
    assert picked(found.machines, "name") == ["Accelerator <A>", "Processor B"]
    assert found.places == []  # no place of one ran on the other


def test_a_torch_that_is_not_the_pinned_one_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(method, "REQUIREMENTS", tmp_path / "requirements.txt")
    method.REQUIREMENTS.write_text("-r others.txt\ntorch==2.13.0   # why\n")
    cell = dict.fromkeys(method.VERSIONS, "")
    (same,) = method.versions([cell | {"torch": "2.13.0+cpu"}])
    other, driver = method.versions([cell | {"torch": "2.13.0.1", "driver": "580"}])
    assert (str(same), str(driver)) == ("PyTorch 2.13.0+cpu", "driver 580")
    assert "2.13.0.1" in str(other) and "(2.13.0 is" in str(other)
