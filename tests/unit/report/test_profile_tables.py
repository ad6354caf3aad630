"""The profile study's tables and sentences, against numbers worked out by hand."""

import pandas as pd
import pytest
import synthetic_profile as made
from stepscope.report.data.profile import HOST, Profile, costs
from stepscope.report.data.profile_parts import softmax_against_products
from stepscope.report.kit.formatting import shortened
from stepscope.report.kit.table import named
from stepscope.report.studies.profile import findings as told
from stepscope.report.studies.profile import tables as across
from stepscope.report.studies.profile import tables_device as device
from stepscope.report.studies.profile import tables_kernels as kernels
from stepscope.report.studies.profile.findings_modules import elementwise_in_backward
from stepscope.report.studies.profile.tables_cost import cost_table
from stepscope.tables.reader import Tables

STUDIES = ["timing", "ceilings", "profile"]


@pytest.fixture
def four(tmp_path):
    """Launch-bound, mixed, GPU-bound and unsupported."""
    rows = [made.cell(), made.cell("tf32", busy=8.0), made.cell("bf16", busy=9.5)]
    lost = made.cell("fp16", status="unsupported", reason="no kernels were recorded")
    steps = (20.0, 10.0, 10.0, 10.0)
    timings = [made.timing(row, step) for row, step in zip([*rows, lost], steps, strict=True)]
    return Profile(Tables(made.write(tmp_path, [*rows, lost], timings, made.ceilings()), STUDIES))


def line(table, **where):
    """The cells of the row whose column has this text, by `group: label`."""
    names = [f"{column.group}: {column.label}" if column.group else column.label for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return next(row for row in rows if all(row[name].text == text for name, text in where.items()))


def test_verdicts(four):
    table = across.verdicts_table(four)
    assert len(table.rows) == 4
    row = line(table, precision="fp32")
    shown = ["one step: without profiler", "one step: busy", "one step: idle", "kernels: in a step", "verdict"]
    assert [row[name].text for name in shown] == ["20.0", "12.0", "8.00", "1,000", "launch-bound"]
    # 20 ms for 1,000 launches; 15 + 5 ms of kernels for 25 + 1,500 instances.
    assert row["kernels: step / launches"].text == "20.0"
    assert row["kernels: mean length"].text == "13.1"
    assert [line(table, precision=name)["verdict"].text for name in ("tf32", "bf16")] == ["mixed", "GPU-bound"]


def test_the_modules_of_backwards_elementwise_kernels(tmp_path):
    rows = [made.cell(), made.cell("bf16", detail="autograd")]
    key = {"cell": rows[1]["cell"], "hardware": "gpu", "size": "s", "context": 128, "precision": "bf16", "repeat": 1}
    # Milliseconds of all kernels, and of elementwise ones, of each module: 8 and 3 together.
    times = {"FFN": (4.0, 0.5), "softmax": (2.0, 1.5), "FFN norm": (1.5, 1.0), "LM head": (0.5, 0.0)}
    lines = [
        key | {"module": name, "gpu_ms_per_step": whole, "elementwise_ms_per_step": part}
        for name, (whole, part) in times.items()
    ]
    old = [key | {"cell": rows[0]["cell"], "module": "FFN", "gpu_ms_per_step": 9.0, "elementwise_ms_per_step": None}]

    def change(frames):
        frames["profile_modules"] = pd.DataFrame([*old, *lines])

    own = Profile(Tables(made.write(tmp_path, rows, (), (), change), STUDIES))
    found = elementwise_in_backward(own, own.profiled(), "gpu")
    assert {name: number.value for name, number in found.numbers.items()} == {
        **{"whole": 3.0, "share": 3.0 / 8.0},
        **{"part0": 1.5, "part1": 1.0, "part2": 0.5},
    }
    assert {cell for number in found.numbers.values() for cell in number.cells} == {rows[1]["cell"]}
    assert found.text.endswith(
        "take 3.00 ms a step, 38 % of its GPU time; most of it: softmax 1.50, FFN norm 1.00 and FFN 0.500 ms."
    )
    assert elementwise_in_backward(own, own.profiled()[:1], "gpu") is None


def test_matmul_shares_and_rates(four):
    row = line(across.products_table(four), precision="fp32")
    share = "share of the phase's GPU time (%)"
    assert [row[f"{share}: {name}"].text for name in ("forward", "backward", "step")] == ["75.0", "83.3", "66.7"]
    # 233,308,160 operations in 3 ms, of a ceiling of 0.175 TFLOP/s.
    assert (row["TFLOP/s: forward"].text, row["TFLOP/s: forward"].below) == ("0.0778", "44.4 %")
    assert line(across.products_table(four), precision="bf16")["TFLOP/s: forward"].below == ""


def test_kernels_by_phase_and_what_a_count_by_thread_finds(four):
    row = line(across.launches_table(four), precision="fp32")
    assert [row[f"kernels: {name}"].text for name in ("forward", "loss", "backward")] == ["300", "9", "400"]
    assert (row["found by thread: backward"].text, row["found by thread: backward"].below) == ("1", "0.2 %")
    assert (row["found by thread: step"].text, row["found by thread: step"].below) == ("600", "60.0 %")


def test_tiles(four):
    row = line(across.tiles_table(four), precision="fp32")
    assert (row["forward: tensor cores"].text, row["backward: tensor cores"].text) == ("0.0", "100.0")
    assert row["backward: tiles (% of matmul time)"].text == "128×64×8 (100.0)"


def test_bounds(four):
    row = line(across.bounds_table(four), precision="fp32")
    assert (row["ridge"].text, row["matrix products: at most"].text) == ("17.5", "20.1")
    assert (row["matrix products: rate"].text, row["matrix products: rate"].below) == ("0.0875", "50.0 %")
    bound = row["matrix products: bound by"]
    assert (bound.text, bound.below) == ("compute", "100 × 80.0")
    others = "other categories: bound by, kernels a step × mean (µs): "
    assert (row[f"{others}elementwise"].text, row[f"{others}elementwise"].below) == ("latency", "1,000 × 3.00")
    assert (row[f"{others}copy/cast"].text, row[f"{others}copy/cast"].below) == ("memory", "100 × 10.0")
    assert line(across.bounds_table(four), precision="bf16")["matrix products: bound by"].text == "–"


def test_cost_of_the_profiler(four):
    found = costs(four)
    assert [row["ratio"] for row in found] == pytest.approx([2.0] * 9)
    # The range took 8 ms, the clock says 0.99 of that.
    assert [row["difference"] for row in found] == pytest.approx([1 / 0.99 - 1] * 9)
    row = line(cost_table(four), precision="fp32", phase="forward")
    times = ["without profiler", "with profiler", "with / without"]
    assert [row[f"host's clock, median: {name}"].text for name in times] == ["3.600", "7.200", "2.00"]
    assert row["in the profiled run, mean: difference"].text == "+1.01"
    assert row["host's clock, median: with profiler"].below == ""  # where the spread is not known
    assert told.agreement(four).numbers["apart"].value == pytest.approx(1 / 0.99 - 1)


def test_the_profilers_cost_shows_the_spread_of_both(tmp_path):
    cell = made.cell(forward_std_ms=0.4321)
    timings = [made.timing(cell, 20.0, forward_std_ms=0.25)]
    own = Profile(Tables(made.write(tmp_path, [cell], timings, made.ceilings()), STUDIES))
    row = line(cost_table(own), phase="forward")
    below = [row[f"host's clock, median: {name} profiler"].below for name in ("without", "with")]
    assert below == ["± 0.25", "± 0.43"]


def test_a_cell_with_more_recorded_is_judged_against_the_same_step_without_a_profiler(tmp_path):
    plain, detailed = made.cell(), made.cell(detail="autograd", busy=8.0)
    detailed["cell"] += "/detail=autograd"
    folder = made.write(tmp_path, [plain, detailed], [made.timing(plain, 20.0)], made.ceilings())
    own = Profile(Tables(folder, STUDIES))
    assert [row["options"] for row in own.profiled()] == ["", "detail=autograd"]
    assert [own.unprofiled(row)["step_median_ms"] for row in own.profiled()] == [20.0, 20.0]
    assert own.title(own.profiled()[1]).endswith("fp32, detail=autograd")
    # It is in the table of costs, and in no sentence that speaks of the profiled cells.
    assert len(cost_table(own).rows) == 2 * 3
    named = {cell for found in told.findings(own) for number in found.numbers.values() for cell in number.cells}
    assert named == {plain["cell"]}


@pytest.mark.parametrize(
    ("numbers", "text", "below"),
    [
        ({}, "2 × 2 + 1 LM head", "each layer: 2 FFN"),
        ({"remainder": 0.0, "remainder_modules": ""}, "2 × 2", "each layer: 2 FFN"),
        ({"per_layer": 0.0, "layer_modules": ""}, "1 LM head", ""),
        ({"remainder": 3.0, "remainder_modules": "2 final norm, 1 loss"}, "2 × 2 + 2 final norm + 1 loss", None),
        ({"remainder": 3.0, "remainder_modules": "1 LM head"}, "2 × 2 + 3", None),
        ({"per_layer": 5.0}, "2 × 5 + 1 LM head", "each layer: 2 FFN, 3 not known"),
        ({"layer_modules": "", "remainder_modules": ""}, "2 × 2 + 1", ""),
        ({"layers": None}, "–", ""),
        ({"layers": 36.0, "per_layer": 6.0, "layer_modules": "3 FFN, 3 attention"}, "36 × 6 + 1 LM head", None),
    ],
)
def test_instances_are_written_out(numbers, text, below):
    shown = kernels.instances({"layers": 2.0, **made.FIRST, **numbers})
    assert shown.text == text and (below is None or shown.below == below)


def test_kernels_of_a_cell(four):
    row = four.profiled()[0]
    table = kernels.kernels_table(four, row, "s")
    first = line(table, phase="forward", kernel="gemm a")
    assert first["in a step = layers × k + r"].text == "5 = 2 × 2 + 1 LM head"
    assert first["GPU time: share"].text == "75.0"
    names = kernels.names_table(four, row, "s")
    assert {cell[1].text for cell in names.rows} == {
        "void gemm_a<float, 1>(T1)", "void gemm_b<float, 1>(T1)", "void mul<float>(T1)"
    }  # fmt: skip


def test_the_top_kernel_of_forward_and_backward(four):
    found = told.top(four, four.profiled()[0])
    values = {name: number.value for name, number in found.numbers.items()}
    assert values == pytest.approx(
        {"first_share": 0.75, "first_times": 5, "backward_share": 25 / 30, "backward_times": 5}
    )
    assert found.cells == ("gpu/profile/s/ctx128/fp32",)
    assert "“gemm a”" in found.text and "another, “gemm b”" in found.text and "does not run there" in found.text


@pytest.mark.parametrize(("share", "words"), [(None, "It is the same"), (0.1, "the first one takes 10.0 % there")])
def test_the_top_kernel_of_forward_in_backward(tmp_path, share, words):
    def change(frames):
        """It takes the most in backward too, or a tenth besides another one."""
        rows = frames["profile_kernels"]
        backward = rows["phase"] == "backward"
        where = backward & (rows["name"] == ("mul" if share else "gemm b"))
        rows.loc[where, "full_name"] = made.FIRST["full_name"]
        if share:
            rows.loc[where, "share_of_phase_gpu_time"] = share

    own = Profile(Tables(made.write(tmp_path, [made.cell()], change=change), STUDIES))
    assert words in told.top(own, own.profiled()[0]).text


def test_what_takes_time_besides_matrix_products(four):
    numbers = told.others(four, four.profiled()[0]).numbers
    assert [number.value for number in numbers.values()] == pytest.approx([0.25, 1000, 1 / 12, 100])


def test_softmax_against_the_products(four):
    row = four.profiled()[0]
    # 0.75 ms over 0.4 + 0.1 ms; 5 operations over 4 d_head = 128 for an element of the scores.
    found = softmax_against_products(four, row)
    # The products' matmul kernels alone take 0.3 of the 0.5 ms.
    assert (found.time, found.kernels, found.flops) == pytest.approx((1.5, 2.5, 5 / 128))
    assert told.softmax(four, row).numbers["time"].value == [found.time]
    table = kernels.attention_table(four, row, "s")
    # 2 layers x 2 x 4 x 128 x 128 x 64 operations in 0.4 ms.
    scores = line(table, part="attention scores")
    assert (scores["GFLOP"].text, scores["rate"].text) == ("0.0168", "0.0419")
    assert line(table, part="softmax")["GFLOP"].text == "0.00131"
    layers = kernels.layers_table(four, row, "s")
    assert len(layers.rows) == 5
    softmax = line(layers, part="softmax")  # 8 kernels and 0.75 ms a step of 2 layers
    assert (softmax["kernels"].text, softmax["GPU time, one layer (µs): mean"].text) == ("4", "375")


def test_checks_that_hold(four):
    complete, found = told.checks(four, four.profiled()[0])
    assert complete and found.numbers["kernels"].value == 5000


@pytest.mark.parametrize(
    ("quantity", "value", "words"),
    [
        ("kernels_not_linked_to_a_launch", 12, "12 kernels are not linked"),
        ("operations_outside_every_phase", 3, "3 operations lie outside every phase"),
        ("gpu_ms_total", 61.0, "categories add up to 60.000 ms, not to 61.000"),
        ("gpu_ms_in_phases", 59.0, "phases add up to 60.000 ms, not to 59.000"),
    ],
)
def test_checks_that_fail_are_said(tmp_path, quantity, value, words):
    def change(frames):
        checks = frames["profile_checks"]
        checks["value"] = checks["value"].astype(object)
        checks.loc[checks["quantity"] == quantity, "value"] = value

    own = Profile(Tables(made.write(tmp_path, [made.cell()], change=change), STUDIES))
    complete, found = told.checks(own, own.profiled()[0])
    assert not complete and words in found.text and found.text.count(";") == 0


def numbers_of(findings, *names):
    """The value and the cells of each of these numbers, whichever finding has it."""
    every = {name: number for found in findings for name, number in found.numbers.items()}
    numbers = [every[name] for name in names]
    return [(each.value, [cell.removeprefix("gpu/profile/s/ctx128/") for cell in each.cells]) for each in numbers]


def test_findings(four):
    found = told.findings(four)
    assert {each.hardware for each in found} == {"gpu"} and len(found) == 6
    verdicts = numbers_of(found[:1], "launch_bound", "mixed", "GPU_bound")
    assert verdicts == [(1, ["fp32"]), (1, ["tf32"]), (1, ["bf16"])]
    shares = [number.value for name, number in found[0].numbers.items() if name.startswith("share")]
    assert shares == pytest.approx([0.6, 0.8, 0.95])
    products = numbers_of(found, "fp32_forward", "fp32_step", "bf16_step")
    assert products == [([75.0], ["fp32"]), ([pytest.approx(200 / 3)], ["fp32"]), ([pytest.approx(200 / 3)], ["bf16"])]
    done = ["fp32", "tf32", "bf16"]
    assert numbers_of(found, "same", "time") == [(0, done), ([1.5] * 3, done)]
    assert numbers_of(found, "ratio")[0][0] == pytest.approx([2.0] * 9)
    assert numbers_of(found, "unsupported") == [(1, ["fp16"])]


def test_the_opening_names_the_tool_and_the_rule(four):
    recorded, rule = told.opening(four)
    assert recorded.text == "Nsight Systems (2025.3) recorded 5 steps of each of 3 cells, after the warm-up."
    # 3 cells, 5 steps each of 1 and 400 kernels.
    assert [rule.numbers[name].value for name in ("by_thread", "every")] == [15, 6000]


def test_on_a_cpu_operators_stand_for_kernels(tmp_path):
    def change(frames):
        frames["profile_checks"].loc[frames["profile_checks"]["quantity"] == "device_is_host", "value"] = "True"
        del frames["profile_api_gaps"], frames["profile_api_calls"]

    row = made.cell(profiler="torch", profiler_version="2.8.0", device="cpu")
    own = Profile(Tables(made.write(tmp_path, [row], [made.timing(row, 20.0)], made.ceilings(), change), STUDIES))
    assert own.words(own.profiled()[0]) is HOST
    table = across.verdicts_table(own)
    # Half of the profiled step, as the table of busy time has it: the 20 ms without a profiler are no measure.
    own_step = line(table)
    assert own_step["one step: share in operators"].text == "50.0"
    assert (own_step["one step: without profiler"].text, own_step["one step: in operators"].text) == ("20.0", "12.0")
    assert "verdict" not in {column.label for column in table.columns}
    assert across.tiles_table(own) is None and across.bounds_table(own) is None
    tables = [table, across.launches_table(own), across.products_table(own)]
    tables += [kernels.phases_table(own, own.profiled()[0], "s"), device.busy_table(own, own.profiled()[0], "s")]
    heads = " ".join(f"{column.group} {column.label}" for each in tables for column in each.columns)
    assert "kernel" not in heads and "GPU" not in heads
    said = " ".join(found.text for found in told.findings(own) + told.opening(own))
    assert "torch.profiler (of PyTorch 2.8.0)" in said and "operators" in said
    assert "kernel of" not in said and "launch-bound" not in said


def test_nothing_at_all(tmp_path):
    own = Profile(Tables(tmp_path, STUDIES))
    assert [found.text for found in told.findings(own)] == ["No profile cell is in the tables."]
    assert [found.text for found in told.opening(own)] == ["No cell was profiled."]
    assert across.verdicts_table(own) is None and across.launches_table(own) is None
    assert cost_table(own) is None and told.agreement(own) is None


def test_several_machines_are_told_apart(tmp_path):
    rows = [made.cell(), made.cell(hardware="other", busy=19.0)]
    own = Profile(Tables(made.write(tmp_path, rows, [made.timing(row, 20.0) for row in rows]), STUDIES))
    assert line(across.verdicts_table(own), hardware="other")["verdict"].text == "GPU-bound"
    found = told.findings(own)
    assert [each.hardware for each in found] == ["gpu"] * (len(found) // 2) + ["other"] * (len(found) // 2)
    assert "on other" not in " ".join(each.text for each in found)
    assert own.title(own.profiled()[1]) == "s, context 128, fp32, on other"


def test_tables_of_a_study_are_found_by_its_name(tmp_path):
    folder = made.write(tmp_path, [made.cell()])
    assert len(Tables(folder, ["profile"])["profile_kernels"]) == 12
    assert Tables(folder, ["timing"])["profile_kernels"].empty
    read = Tables(folder, ["profile"])["profile_kernels"]
    assert read["name"].dtype == object and pd.api.types.is_float_dtype(read["total_ms"])


def test_long_names_lose_their_middle():
    name = "void " + "a" * 2000 + "(T1)"
    assert len(shortened(name, 60)) == 60 and shortened(name, 60).endswith("(T1)")
    assert named(name).title == name and named("short").title == ""
