"""The chapter precision: every number against one worked out by hand, both sides of each threshold, and its budgets."""

import page_one_maker
import pytest
import synthetic_ladder
import synthetic_precision as made
import synthetic_profile
from chapter_checks import example
from stepscope.report.chapters.precision import chapter, formats, memory, speed
from stepscope.report.data.mixed import Mixed
from stepscope.report.data.precision import Precision
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import MOST_PICTURES, MOST_ROWS, MOST_TABLES, MOST_TAKEAWAY_WORDS, fitted, words
from stepscope.tables.reader import Tables

GIB = 2**30


def values(finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}


# Time -----------------------------------------------------------------------------------------------------------------


def at(context: int, precision: str, **more) -> dict:
    return (
        synthetic_profile.cell(precision, context=context) | {"cell": f"gpu/profile/s/ctx{context}/{precision}"} | more
    )


def machine_of(folder, places, change=None, rates=(), rungs=(), processes=1, **more) -> Machine:
    """places: {context: (ms of a step in fp32, in bf16)}; the GPU is busy for 12 ms in each."""
    cells = [at(context, name, **more) for context in places for name in ("fp32", "bf16")]
    steps = [step for own in places.values() for step in own]
    timing = [page_one_maker.timed(cell, step, processes) for cell, step in zip(cells, steps, strict=True)]
    return Machine(page_one_maker.write(folder, cells, timing, rates, rungs, change))


def in_bf16(context=128, **numbers):
    """A change of bf16's tables: products (ms), casts (ms and instances a step), kernels a step, optimizer (ms)."""

    def change(frames):
        categories, phases = frames["profile_categories"], frames["profile_phases"]
        own = (categories["precision"] == "bf16") & (categories["phase"] == "step") & (categories["context"] == context)
        for name, column, value in (
            ("matmul", "ms_per_step", numbers.get("products")),
            ("copy/cast", "ms_per_step", numbers.get("casts")),
            ("copy/cast", "instances_per_step", numbers.get("instances")),
        ):
            if value is not None:
                categories.loc[own & (categories["category"] == name), column] = value
        there = (phases["precision"] == "bf16") & (phases["context"] == context)
        if "kernels" in numbers:
            phases.loc[there & (phases["phase"] == "step"), "kernels_per_step"] = numbers["kernels"]
        if "optimizer" in numbers:
            phases.loc[there & (phases["phase"] == "optimizer"), "gpu_ms_per_step"] = numbers["optimizer"]

    return change


def ceilings(low="bf16", rate=0.7) -> list[dict]:
    """fp32 has 0.175 TFLOP/s."""
    return [*synthetic_profile.ceilings(), synthetic_profile.ceilings(precision=low, tflops=rate)[0]]


def test_the_range_of_single_processes_has_no_verdict(tmp_path):
    machine = machine_of(tmp_path, {128: (30.0, 40.0), 256: (30.0, 20.0)})
    text = speed.overall(machine.pairs).text
    assert text == (
        "A step in bf16 runs at 0.75 to 1.50 times fp32's speed (least s at 128, most s at 256); "
        "2 cells, single processes: no verdict."
    )
    assert speed.overall([]) is None


def test_the_range_of_several_processes_has_verdicts(tmp_path):
    machine = machine_of(tmp_path, {128: (30.0, 40.0), 256: (30.0, 20.0), 512: (30.0, 10.0)}, processes=3)
    assert "; faster in 2, slower in 1 of 3 cells." in speed.overall(machine.pairs).text


def test_products_and_the_other_kernels(tmp_path):
    """Busy 12 of which products take 8 in fp32 and 3 in bf16: 4 and 9 ms are left. Casts take 1 and 2.5 ms."""
    machine = machine_of(tmp_path, {128: (30.0, 20.0)}, in_bf16(products=3.0, casts=2.5))
    found = speed.where_it_pays(machine)
    assert values(found) == {
        "before": 8.0, "after": 3.0, "rest_before": pytest.approx(4), "rest_after": pytest.approx(9),
        "optimizer": 2.0, "casts": pytest.approx(1.5),
    }  # fmt: skip
    assert found.cause == "The optimizer stays in fp32 ({optimizer} ms) and casts and copies add {casts} ms."


@pytest.mark.parametrize(("optimizer", "stays"), [(2.09, True), (2.11, False)])
def test_the_optimizer_is_said_to_stay_where_it_takes_as_long(tmp_path, optimizer, stays):
    found = speed.where_it_pays(machine_of(tmp_path, {128: (30.0, 20.0)}, in_bf16(products=3.0, optimizer=optimizer)))
    assert ("optimizer" in found.cause) is stays


@pytest.mark.parametrize(("products", "gain"), [(8.1, True), (7.9, False)])
def test_the_other_kernels_gain_too(tmp_path, products, gain):
    """What is left of 12 ms is less than 4 in bf16 where its products take more than 8."""
    found = speed.where_it_pays(machine_of(tmp_path, {128: (30.0, 20.0)}, in_bf16(products=products)))
    assert ("gain too" in found.cause) is gain


def test_without_a_profile_it_says_what_to_run(tmp_path):
    rows = [made.timing(precision="fp32", ms=10.0), made.timing(precision="bf16", ms=5.0)]
    machine = Machine(made.write(tmp_path, {"timing": rows}))
    assert "profile one to see why" in speed.where_it_pays(machine).text
    assert speed.beside_prediction(machine) is speed.where_it_pays_least(machine) is speed.by_size(machine) is None


def test_the_gain_beside_the_ceilings(tmp_path):
    """Products take 8 of 30 ms and become 4 times as fast: 30 / 24. 30 ms against 20 is 1.5, a fifth more."""
    machine = machine_of(tmp_path / "both", {128: (30.0, 20.0)}, rates=ceilings())
    assert values(speed.beside_prediction(machine)) == {
        "predicted": pytest.approx(1.25), "measured": 1.5, "gap": pytest.approx(0.2),
    }  # fmt: skip
    assert speed.beside_prediction(machine_of(tmp_path / "none", {128: (30.0, 20.0)})) is None


@pytest.mark.parametrize(
    ("step", "kernels", "instances", "cause"),
    [
        (17.1, 1600, 400, "do not explain"),  # idle 5.1 of 17.1 ms: 29.8 %
        (17.2, 1600, 400, "casts raise them"),  # 30.2 %; 300 of 600 more kernels are casts
        (17.2, 1600, 399, "only lengthen the wait"),
        (17.2, 1000, 700, "only lengthen the wait"),
    ],
)
def test_where_bf16_gains_least(tmp_path, step, kernels, instances, cause):
    """In fp32 14 ms, busy for 12; there are 1,000 kernels a step, 100 of them casts."""
    change = in_bf16(kernels=kernels, instances=instances)
    machine = machine_of(tmp_path, {128: (14.0, step), 256: (30.0, 20.0)}, change)
    found = speed.where_it_pays_least(machine)
    assert "s at context 128" in found.text and cause in found.cause
    assert values(found)["idle_before"] == pytest.approx(2) and values(found)["idle_after"] == pytest.approx(step - 12)


@pytest.mark.parametrize(("processes", "gain"), [(1, "(× 0.50)"), (3, "(× 0.50, slower)")])
def test_the_least_gain_has_its_verdict(tmp_path, processes, gain):
    machine = machine_of(tmp_path, {128: (20.0, 40.0), 256: (30.0, 20.0)}, processes=processes)
    assert speed.where_it_pays_least(machine).text.startswith(f"s at context 128 gains least of these {gain}: ")


@pytest.mark.parametrize(("step", "asks"), [(30.0, True), (29.7, False)])
def test_tf32_beside_its_prediction(tmp_path, step, asks):
    """Predicted 30 / 24 = 1.25 at the ladder's place; 0.8 of that is 1.00: fp32 takes 30 ms there, tf32 `step`."""
    rungs = [synthetic_ladder.cell("medium", 512, "fp32", step=29.8)]
    rungs.append(synthetic_ladder.cell("medium", 512, "tf32", step=step))
    machine = machine_of(tmp_path, {512: (30.0, 20.0)}, rates=ceilings("tf32"), rungs=rungs, size="medium")
    found = speed.tf32(machine)
    assert values(found) == {"measured": pytest.approx(29.8 / step), "predicted": pytest.approx(1.25)}
    assert bool(found.advice) is asks


def test_tf32_without_a_ladder_or_a_profile_of_its_place(tmp_path):
    assert speed.tf32(machine_of(tmp_path / "none", {128: (30.0, 20.0)})) is None
    rungs = [synthetic_ladder.cell("medium", 512, name, step=20.0) for name in ("fp32", "tf32")]
    found = speed.tf32(machine_of(tmp_path / "elsewhere", {128: (30.0, 20.0)}, rates=ceilings("tf32"), rungs=rungs))
    assert values(found) == {"measured": 1.0} and not found.advice


# Formats --------------------------------------------------------------------------------------------------------------


def probes(folder, **frames) -> Precision:
    return Precision(made.write(folder, {"precision": [made.probe()], **frames}))


def test_a_sum_stops_where_the_spacing_is_too_wide(tmp_path):
    """bf16 has 8 significant bits: from 4 on numbers lie 4 / 2⁷ apart; fp16 has 11: from 8 on 8 / 2¹⁰."""
    assert formats.spacing("bf16", 4.0) == 1 / 32 and formats.spacing("bf16", 3.99) == 1 / 64
    assert formats.spacing("fp16", 9.95) == 1 / 128
    rows = [made.summed("fp16 += fp16", 9.953125, 1000), made.summed()]
    found = formats.sums(probes(tmp_path, precision_accumulation=rows), "gpu")
    assert values(found) == {"fp16": 9.953125, "bf16": 4.0, "exact": 10.0, "spacing": 1 / 32}
    assert "gives 9.95 in fp16 and 4.00 in bf16, not 10.0. At 4.00 neighbours in bf16 lie 0.031 apart" in found.text


def test_a_sum_that_does_not_stop(tmp_path):
    rows = [made.summed("fp16 += fp16", 9.953125, 1000)]
    assert "does not stop" in formats.sums(probes(tmp_path, precision_accumulation=rows), "gpu").text
    assert formats.sums(probes(tmp_path / "none"), "gpu") is None


@pytest.mark.parametrize(("total", "tolerates"), [(10.0199, True), (10.0201, False)])
def test_sums_in_fp32_are_off_by_the_rounding(tmp_path, total, tolerates):
    """The addend 0.01001 is off by 0.1 %: twice that of 10 is 10.02."""
    rows = [made.summed("fp32 += bf16", total, 1000) | {"addend": 0.01001}]
    found = formats.sums_in_fp32(probes(tmp_path, precision_accumulation=rows), "gpu")
    assert values(found) == {"off": pytest.approx(total / 10 - 1), "rounding": pytest.approx(0.001)}
    assert bool(found.cause) is tolerates


@pytest.mark.parametrize(("error", "is_kept"), [(0.0, True), (1e-9, False)])
def test_a_softmax_that_stops_counting(tmp_path, error, is_kept):
    one = {"operation": "softmax", "quantity": "equal logits", "way": "sum one by one"}
    rows = [made.tried(**one, value=value, inner=inner, inner_exact=value)
            for value, inner in ((1024, 1024.0), (8192, 2048.0))]  # fmt: skip
    rows.append(made.tried(**one | {"way": "under autocast"}, value=8192, error=error))
    found = formats.softmax_sums(probes(tmp_path, precision_forced=rows), "gpu")
    assert values(found) == {"fp16": 2048.0} and bool(found.cause) is is_kept
    assert formats.softmax_sums(probes(tmp_path / "all", precision_forced=rows[:1]), "gpu") is None


def test_squares_overflow_in_fp16(tmp_path):
    """√65,504 = 255.94."""
    rows = [made.tried(value=value, zero=8 if value >= 256 else 0) for value in (255.0, 256.0, 1024.0)]
    found = formats.overflow(probes(tmp_path, precision_forced=rows), "gpu")
    assert found.text == "In fp16 RMSNorm gives nothing but zeros from |x| = 256 on; squares overflow above 255."
    assert formats.overflow(probes(tmp_path / "all", precision_forced=rows[:1]), "gpu") is None


# bf16 has 8 significant bits: a rounding to nearest is off by 2⁻⁸ = 0.00390625 at most, twice that is 0.0078125.
@pytest.mark.parametrize(
    ("error", "kept", "cause"),
    [
        (0.0079, 0.0039, "accuracy does"),
        (0.0077, 0.002, "Neither range nor accuracy"),
        (0.0041, 0.002, "Neither range nor accuracy"),
        (0.0039, 0.002, "little better"),
    ],
)
def test_layer_norm_in_bf16(tmp_path, error, kept, cause):
    rows = [
        made.tried("LayerNorm", value=value, name="bf16", error=each) for value, each in ((1, 0.001), (16384, error))
    ]
    rows.append(made.tried("LayerNorm", value=1, name="bf16", way="under autocast", error=kept))
    found = formats.layer_norm_in_bf16(probes(tmp_path, precision_forced=rows), "gpu")
    expected = {"rounding": 1 / 256} if cause == "Neither range nor accuracy" else {}
    assert values(found) == {"largest": 16384, "error": error, "kept": kept} | expected and cause in found.cause


def test_layer_norm_that_overflows_in_bf16_too(tmp_path):
    rows = [made.tried("LayerNorm", value=value, name="bf16", zero=8) for value in (512, 256)]
    found = formats.layer_norm_in_bf16(probes(tmp_path, precision_forced=rows), "gpu")
    assert values(found) == {"lost": 256} and "treat it apart" in found.text
    assert formats.layer_norm_in_bf16(probes(tmp_path / "none"), "gpu") is None


@pytest.mark.parametrize(("inner", "is_lost"), [(0.49, True), (0.51, False)])
def test_a_variance_that_cancels(tmp_path, inner, is_lost):
    way = {"way": "variance as mean(x²) − mean(x)²", "quantity": "mean of x", "name": "bf16"}
    rows = [made.tried("LayerNorm", value=100, inner=inner, inner_exact=1.0, **way)]
    found = formats.variance(probes(tmp_path, precision_forced=rows), "gpu")
    assert bool(found) is is_lost
    if found:
        assert values(found) == {"mean": 100, "inner": inner, "exact": 1.0}


def test_dtypes_of_the_toy_model(tmp_path):
    rows = [made.dtypes("linear_1", "fp16", name="fp16"), made.dtypes("layer_norm", "fp32", name="fp16")]
    rows += [made.dtypes("linear_1", "bf16"), made.dtypes("layer_norm", "bf16")]
    rows = [row | {"parameter_gradient": "fp32"} for row in rows]
    precision = probes(tmp_path, precision_dtypes=rows)
    assert formats.dtypes(precision, "gpu").text == (
        "Under fp16 autocast the first linear layer gives fp16, LayerNorm gives fp32."
    )
    table = formats.dtypes_table(precision, "gpu")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["first linear layer", "fp16", "bf16", "fp32", "fp32"],
        ["LayerNorm", "fp32", "bf16", "fp32", "fp32"],
    ]
    none = probes(tmp_path / "none")
    assert formats.dtypes(none, "gpu") is formats.dtypes_table(none, "gpu") is None


def gradients(folder, **fp16) -> object:
    rows = [{"cell": "c", "hardware": "gpu", "autocast": name, "error": error, "zero_share": 0.0, "not_finite": 0}
            for name, error in (("fp32", 0.0), ("fp16", 0.001), ("bf16", 0.01))]  # fmt: skip
    rows[1] |= fp16
    return formats.gradients(probes(folder, precision_gradients=rows), "gpu")


def test_gradients_without_loss_scaling(tmp_path):
    found = gradients(tmp_path / "zero", zero_share=0.02)
    assert values(found) == {"zero": 0.02, "error": 0.001, "other": 0.01}
    assert "loses none but is off by 1.0 %, fp16 by 0.10 %" in found.text and found.advice
    none = gradients(tmp_path / "none")
    assert none.cause == "None is lost that fp32 has." and not none.advice
    more = gradients(tmp_path / "infinite", not_finite=3)
    assert "3 gradients of a small model overflow in fp16" in more.text and more.advice
    assert "is off by" not in gradients(tmp_path / "worse", zero_share=0.02, error=0.02).text


# Memory ---------------------------------------------------------------------------------------------------------------

SHAPE = {"d_model": 64, "d_ff": 256, "num_layers": 2, "num_heads": 2, "vocab_size": 1000}
# Two bytes for each weight of a product: a layer has 4 · 64² of attention and 3 · 64 · 256; the head 64 · 1000.
COPIES = 2 * (2 * (4 * 64**2 + 3 * 64 * 256) + 64 * 1000)


def pairs_of(folder, *peaks, **more):
    """(size, context, inference in fp32, in bf16, step in fp32, in bf16), all in GiB; a step of None ran out."""
    rows = []
    for size, context, *own in peaks:
        for precision, inference, step in (("fp32", own[0], own[2]), ("bf16", own[1], own[3])):
            row = made.timing(size, context, precision) if step else made.lost(("step",), size=size, context=context,
                                                                               precision=precision)  # fmt: skip
            row |= {"inference_peak_allocated_bytes": inference * GIB, "step_peak_allocated_bytes": step and step * GIB}
            rows.append(row | SHAPE | more)
    machine = Machine(made.write(folder, {"timing": rows}))
    return machine.pairs, Mixed(machine.tables).of("gpu", "bf16")


def test_what_casts_cost_in_inference(tmp_path):
    _, every = pairs_of(tmp_path, ("small", 128, 2, 3, 10, 11), ("small", 256, 4, 5, 10, 8))
    found = memory.inference(every)
    assert values(found) == {"change_least": 0.25, "change_most": 0.5, "more": GIB, "copies": COPIES}
    assert "+25 % (small at 256) to +50 % (small at 128) in all 2 cells" in found.text


def test_casts_that_activations_make_up_for(tmp_path):
    _, every = pairs_of(tmp_path, ("small", 128, 2, 2, 10, 11))
    assert "made up for" in memory.inference(every).cause


def test_no_closed_form_for_the_memory_of_a_whole_process(tmp_path):
    resident = {"inference_peak_allocated_bytes": None, "inference_peak_resident_bytes": GIB}
    _, every = pairs_of(tmp_path, ("small", 128, 2, 3, 10, 11), **resident)
    found = memory.inference(every)
    assert values(found) == {"change_least": 0.0, "change_most": 0.0} and not found.cause
    assert memory.inference([]) is None


@pytest.mark.parametrize(("after", "is_halved"), [(5.1, False), (4.9, True)])
def test_what_a_step_saves(tmp_path, after, is_halved):
    pairs, every = pairs_of(tmp_path, ("small", 128, 2, 3, 10, 11), ("small", 256, 4, 5, 10, after))
    found = memory.step(pairs, every)
    assert values(found) == {"change_least": pytest.approx(after / 10 - 1), "change_most": pytest.approx(0.1)}
    assert ("not halved" in found.cause) is not is_halved and "not in fp32" not in found.text


def test_what_fits_in_bf16_and_not_in_fp32(tmp_path):
    found = memory.step(*pairs_of(tmp_path, ("small", 128, 2, 3, 10, 11), ("small", 256, 4, 5, None, 8)))
    assert found.text.endswith("small at 256 fits in bf16, not in fp32.") and "in 1 of 2 cells" in found.text
    assert memory.step([], []) is None


# The whole ------------------------------------------------------------------------------------------------------------


def test_budgets_of_the_example_and_that_nothing_falls_off():
    whole = chapter(example())
    assert fitted(whole) == whole
    shown = [each for part in whole.parts for each in part.shows]
    tables = [each for each in shown if hasattr(each, "rows")]
    assert words(" ".join(each.text for each in whole.takeaway)) <= MOST_TAKEAWAY_WORDS and whole.words <= 450
    assert len(tables) <= MOST_TABLES and all(len(each.rows) <= MOST_ROWS for each in tables)
    assert len(shown) - len(tables) <= MOST_PICTURES
    assert all("{" not in each.text for each in whole.findings)


def test_the_table_by_size_of_the_example():
    """2.7B at 256 by the tables: 553.6 / 153.6 ms; products 458.2 of 553.6 ms, ceilings 50.45 and 740.6 TFLOP/s."""
    machine = example()
    table = speed.by_size(machine)
    assert [row[0].text for row in table.rows] == ["small", "medium", "large", "xl", "2.7B"]
    assert [cell.text for cell in table.rows[-1][1:5]] == ["554", "154", "3.60", "4.37"]
    assert table.rows[-1][2].badges == ("unsteady", "slow_host") and table.rows[-1][2].below == "[149, 158]"


def test_no_chapter_without_tables(tmp_path):
    assert chapter(Machine(Tables(tmp_path, page_one_maker.STUDIES))) is None
