"""The chapter attention: every number against one worked out by hand, both sides of each threshold, and its budgets."""

from types import SimpleNamespace

import page_one_maker
import pytest
import synthetic_attention as made
import synthetic_ladder
import synthetic_profile
from chapter_checks import example
from stepscope.report.chapters.attention import chapter, implementations, in_model, main_group, matrix
from stepscope.report.data.attention import Attention
from stepscope.report.data.attention_fastest import fastest
from stepscope.report.data.softmax_traffic import softmax_bytes
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import MOST_PICTURES, MOST_ROWS, MOST_TABLES, MOST_TAKEAWAY_WORDS, fitted, words
from stepscope.tables.reader import Tables

GIB = 2**30
# Elements of the scores of synthetic_profile's cell: 2 layers × batch 4 × 2 heads × 128².
ELEMENTS = 262_144


def values(finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}


# In the model ---------------------------------------------------------------------------------------------------------


def profiled(folder, *cells, change=None, rates=(), rungs=()) -> tuple[Machine, list[dict]]:
    timing = [page_one_maker.timed(cell, 15.0) for cell in cells]
    tables = page_one_maker.write(folder, cells, timing, rates, rungs, change)
    machine = Machine(tables)
    return machine, in_model.rows_of_size(machine)


def at(context: int, precision="bf16", **more) -> dict:
    name = f"gpu/profile/s/ctx{context}/{precision}"
    return synthetic_profile.cell(precision, context=context) | {"cell": name} | more


def with_lines(**columns):
    """A change of the attention table: (context, precision, part) → the columns' values; None for any context."""

    def change(frames):
        frame = frames["profile_attention"]
        for name, by_place in columns.items():
            for (context, precision, part), value in by_place.items():
                there = (frame["part"] == part) & (frame["context"] == context) & (frame["precision"] == precision)
                frame.loc[there, name] = value

    return change


def shares(**by_context) -> dict:
    return with_lines(
        share_of_forward_gpu_time={(int(key[1:]), "bf16", "attention"): value for key, value in by_context.items()}
    )


@pytest.mark.parametrize(("last", "cause"), [(0.5, "although"), (0.51, "although"), (0.515, "Its scores are")])
def test_the_share_is_said_to_grow_where_it_does(tmp_path, last, cause):
    machine, rows = profiled(tmp_path, at(512), at(128), change=shares(c128=0.5, c512=last))
    found = in_model.share_by_context(machine, rows)
    assert values(found) == {"first": 0.5, "last": last}
    assert cause in found.cause and "context 128 and" in found.text and "512 (s, bf16)" in found.text


def test_the_share_of_one_context_has_no_cause(tmp_path):
    machine, rows = profiled(tmp_path, at(128), change=shares(c128=0.5))
    assert in_model.share_by_context(machine, rows).text == (
        "Attention takes 50 % of the forward pass's GPU time at context 128 (s, bf16)."
    )


def test_the_size_with_most_contexts_is_spoken_of(tmp_path):
    other = at(128) | {"cell": "gpu/profile/t/ctx128/bf16", "size": "t", "parameters": 9e9}
    _, rows = profiled(tmp_path, other, at(128), at(256))
    assert [(row["size"], row["context"]) for row in rows] == [("s", 128), ("s", 256)]


@pytest.mark.parametrize(("rest", "is_told"), [(4.0, True), (2.05, True), (2.03, False)])
def test_attention_gains_less_in_16_bits_than_the_rest(tmp_path, rest, is_told):
    """Attention takes 2 ms in both precisions here if nothing is changed; in fp32 4, so that it gains 2."""
    lines = {(128, "fp32", "attention"): 4.0}

    def change(frames):
        with_lines(gpu_ms_per_step=lines, gpu_matmul_ms_per_step={(128, "bf16", "attention"): 0.5})(frames)
        frame = frames["profile_attention"]
        for precision, ms in (("fp32", rest), ("bf16", 1.0)):
            row = frame[(frame["part"] == "attention") & (frame["precision"] == precision)].iloc[0].to_dict()
            frame.loc[f"rest in {precision}"] = row | {
                "part": "forward without attention",
                "kind": "forward",
                "gpu_ms_per_step": ms,
            }

    machine, rows = profiled(tmp_path, at(128, "fp32"), at(128), change=change)
    found = in_model.share_by_precision(machine, rows)
    assert bool(found) is is_told
    if found:
        assert values(found) == {"inside": 2.0, "outside": pytest.approx(rest), "products": 0.25}


@pytest.mark.parametrize(("softmax", "predicts"), [(0.75, False), (0.0392, False), (0.0389, True)])
def test_flop_predict_the_softmax_where_its_time_is_less_than_twice_theirs(tmp_path, softmax, predicts):
    """5 operations an element over 2 × 4 · 128 · 128 · 64 · 4 · 2 / 4 of the products: 5 / 128; they take 0.5 ms."""
    machine, rows = profiled(tmp_path, at(128), change=with_lines(gpu_ms_per_step={(128, "bf16", "softmax"): softmax}))
    found = in_model.softmax(machine, rows)
    assert values(found) == {"flops": 5 / 128, "time": pytest.approx(softmax / 0.5), "host": 0.5}
    assert ("Here FLOP predict" in found.cause) is predicts and ("yet takes" in found.answer) is not predicts


def test_the_bytes_of_a_softmax():
    """fp32: 4 + 8 + 8 + 4 + 8 bytes an element; bf16: 2 + 6 + 8 + 4 + 8 + 6."""
    for precision, each in (("fp32", 32), ("bf16", 34)):
        assert softmax_bytes(at(128, precision)) == ELEMENTS * each
    assert softmax_bytes(at(128, "fp7")) is None and softmax_bytes(at(128) | {"num_heads": None}) is None


@pytest.mark.parametrize(
    ("rate", "cause"),
    [
        (11.0, "The caches serve"),  # 8.912896 MB take 0.8103 ms, 1.080 of the 0.75 ms
        (11.4, "may fit in the L2 cache"),  # 1.042 of it
        (23.7, "may fit in the L2 cache"),  # 0.5014 of it
        (23.9, "do not explain"),  # 0.4972 of it
    ],
)
def test_the_softmax_beside_its_bytes(tmp_path, rate, cause):
    rates = synthetic_profile.ceilings(gb_per_s=rate)
    machine, rows = profiled(tmp_path, at(128), rates=rates)
    found = in_model.traffic(machine, rows)
    predicted = 8.912896 / rate
    scores = {"scores": ELEMENTS / 2 * 4} if "may fit" in found.cause else {}  # of one of 2 layers, in fp32
    assert values(found) == scores | {
        "kernels": 4.0,  # 8 in 2 layers
        "moved": 8_912_896,
        "predicted": pytest.approx(predicted),
        "measured": 0.75,
        "gap": pytest.approx(0.75 / predicted - 1),
    }
    assert cause in found.cause


@pytest.mark.parametrize(("largest", "sets"), [(524_288, False), (524_287, True)])
def test_traffic_sets_the_time_of_scores_that_no_cache_holds(tmp_path, monkeypatch, largest, sets):
    """4 sequences × 2 heads × 128 × 128 scores of 4 bytes: 524,288 bytes a layer."""
    monkeypatch.setattr(in_model, "LARGEST_L2", largest)
    found = in_model.traffic(*profiled(tmp_path, at(128), rates=synthetic_profile.ceilings(gb_per_s=11.4)))
    assert ("Mostly memory traffic" in found.text) is sets and ("512 KiB of scores may fit" in found.text) is not sets


def test_no_traffic_without_a_copy_rate_or_on_a_cpu(tmp_path):
    machine, rows = profiled(tmp_path / "none", at(128))
    assert in_model.traffic(machine, rows) is None

    def on_host(frames):
        checks = frames["profile_checks"]
        checks.loc[checks["quantity"] == "device_is_host", "value"] = "True"

    machine, rows = profiled(tmp_path / "cpu", at(128), rates=synthetic_profile.ceilings(), change=on_host)
    assert in_model.traffic(machine, rows) is None
    assert "host time" not in in_model.softmax(machine, rows).text


@pytest.mark.parametrize(("before", "limits"), [(15.1, True), (14.9, False)])
def test_the_gain_of_a_fused_kernel_beside_its_prediction(tmp_path, before, limits):
    """Of 15 ms attention but its products is 0.95: 15 / 14.05. Kernels take 13.5 ms: 90 % of 15 on the ladder, where
    the host may be another and sdpa gains nothing."""
    rungs = [synthetic_ladder.cell("medium", 512, "bf16", step=before)]
    rungs.append(synthetic_ladder.cell("medium", 512, "bf16", synthetic_ladder.SDPA, step=before))
    machine, rows = profiled(tmp_path, at(512, busy=13.5, size="medium"), rungs=rungs)
    found = in_model.remedy(machine, rows)
    assert found.numbers["predicted"].value == pytest.approx(15 / 14.05)
    assert found.numbers["gain"].value == 1.0
    assert ("launches limit" in found.cause) is limits
    if limits:
        assert values(found)["before"] == pytest.approx(before) and values(found)["busy"] == pytest.approx(13.5)


def test_the_gain_of_a_fused_kernel_elsewhere_has_no_cause(tmp_path):
    rungs = [synthetic_ladder.cell("medium", 512, "bf16", step=20.0)]
    rungs.append(synthetic_ladder.cell("medium", 512, "bf16", synthetic_ladder.SDPA, step=20.0))
    found = in_model.remedy(*profiled(tmp_path, at(128, busy=12.0), rungs=rungs))
    assert "(medium at 512)" in found.text and not found.cause


def test_no_gain_of_a_fused_kernel_without_a_ladder(tmp_path):
    assert in_model.remedy(*profiled(tmp_path, at(128))) is None


# By itself ------------------------------------------------------------------------------------------------------------


def group_of(folder, rows, limits=()):
    attention = Attention(Tables(made.write(folder, rows, limits), ["attention", "ceilings"]))
    return main_group(attention, "gpu")


def test_memory_of_the_matrix(tmp_path):
    """d = 64, length 16,384, batch 8, bf16. Exponentials (4 B) and weights (2 B): 8 · 16,384² · 6 = 12 GiB. Q, K, V,
    Q scaled and output: 5 · 8 · 16,384 · 64 · 2 B = 80 MiB. synthetic_attention holds 24 GiB."""
    found = matrix.memory(group_of(tmp_path, made.cell(d_head=64)), "bf16")
    predicted = 12 * GIB + 80 * 2**20
    assert values(found) == {
        "held": 24 * GIB,
        "gap": pytest.approx(24 * GIB / predicted - 1),
        "square": pytest.approx(12 * GIB / predicted),
    }
    assert matrix.memory(group_of(tmp_path, made.cpu(made.cell(d_head=64))), "bf16") is None


def test_time_beside_the_square_of_the_lengths(tmp_path):
    found = matrix.time_growth(group_of(tmp_path, made.cell(d_head=64)), "bf16")
    assert values(found) == {"forward": 16.0, "backward": 16.0, "square": 16.0}
    assert matrix.time_growth(group_of(tmp_path, made.cell(d_head=64, lengths=(1024,))), "bf16") is None


@pytest.mark.parametrize(("factor", "is_flat"), [(4.3, True), (4.5, False)])
def test_what_grows_with_the_length_keeps_no_matrix(tmp_path, factor, is_flat):
    """From 4,096 to 16,384, 4 times the length; triton holds 64 MiB at the longest."""
    rows = [*made.cell(d_head=64), *made.cell("triton", 64)]
    for row in rows:
        if row["implementation"] == "triton" and row["length"] == 4096 and row["direction"] == "backward":
            row["before_backward_bytes"] = 64 * 2**20 / factor
    found = matrix.recomputation(group_of(tmp_path, rows), "bf16")
    assert bool(found) is is_flat
    if found:
        assert values(found) == {"flat": 1, "held": 64 * 2**20}
        assert "1 of 2 implementations holds 64.0 MiB" in found.text


@pytest.mark.parametrize(("capacity", "fits"), [(32, False), (33, True)])
def test_where_it_ran_out_beside_the_closed_form(tmp_path, capacity, fits):
    """Backward in bf16, d = 16: 8 · 16,384² · 16 B and 7 · 8 · 16,384 · 16 · 2 B: 34,389,098,496 B, 32.03 GiB."""
    rows = made.without_result(made.cell(), "oom", "CUDA out of memory", lengths=(16384,), directions=("backward",))
    rows = [row | {"device_memory_bytes": capacity * GIB} for row in rows]
    found = matrix.out_of_memory(rows, "gpu")
    assert values(found) == {"need": 34_389_098_496, "capacity": capacity * GIB}
    assert ("should fit" in found.text) is fits and found.text.count(".") >= 2 and found.text.endswith(".")


def test_where_it_will_run_out(tmp_path):
    """bf16, d = 16, batch 8: 128 L² + 7 · 256 L bytes exceed 80 GiB = 85,899,345,920 first at L = 25,899."""
    assert 128 * 25_899**2 + 1792 * 25_899 > 80 * GIB >= 128 * 25_898**2 + 1792 * 25_898
    found = matrix.out_of_memory(made.cell(), "gpu")
    # The peak is three times what is held, 72 GiB; the closed form says 34,389,098,496 B.
    assert values(found) == {
        "peak": 72 * GIB,
        "gap": pytest.approx(72 * GIB / 34_389_098_496 - 1),
        "length": 25_899,
    }
    assert found.text.startswith("Naive attention ran out") and "it runs out" in found.text
    assert matrix.out_of_memory(made.cpu(made.cell()), "gpu") is None


@pytest.mark.parametrize(
    ("factor", "cause"),
    [
        (1.0, "set its time and memory"),
        (2.74, "set its time and memory"),  # a quarter of the 7 that d grows by is 1.75
        (2.76, "only in part"),
        (6.24, "only in part"),  # three quarters of it is 5.25
        (6.26, "follows d: arithmetic"),
    ],
)
def test_what_a_larger_d_costs(tmp_path, factor, cause):
    rows = [row for d in (16, 128) for name in ("naive", "triton") for row in made.cell(name, d)]
    for row in rows:
        if (row["implementation"], row["d_head"]) == ("naive", 128):
            row |= made.timed(row["median_ms"] * factor)
    found = matrix.head_dimension(group_of(tmp_path, rows), "bf16", "triton")
    assert values(found)["ratio"] == 8 and values(found)["naive"] == pytest.approx(factor)
    assert values(found)["other"] == pytest.approx(8) and cause in found.cause and "throttled" not in found.text
    one = [row for row in rows if row["d_head"] == 16]
    assert matrix.head_dimension(group_of(tmp_path, one), "bf16", "triton") is None


def test_a_throttled_end_of_d_is_marked(tmp_path):
    rows = [row for name in ("naive", "triton") for row in made.cell(name, 16)]
    for name, throttle in (("naive", ""), ("triton", "SW power cap")):
        rows += made.cell(name, 128, throttle=throttle)
    found = matrix.head_dimension(group_of(tmp_path, rows), "bf16", "triton")
    assert "triton takes" in found.text and found.text.endswith(" (throttled).")


def test_the_fastest_and_who_may_be_as_fast(tmp_path):
    """d = 64, forward at 1,024: naive 1, flash 0.2, flex and triton 0.16 ms each."""
    names = ("naive", "sdpa-flash", "triton")
    rows = [row for name in names for row in made.cell(name, 64)]
    group = group_of(tmp_path, rows)
    assert [(each.name, each.rivals, each.is_judged) for each in fastest(group, "bf16", 64)] == [
        ("triton", (), True)
    ] * 3
    assert fastest(group, "bf16", 64)[0].total == pytest.approx(0.48)
    found = implementations.least_time(group, ["bf16"])
    assert "in bf16 with triton at each (faster than all others at all 3 points)" in found.text
    both = group_of(tmp_path, rows + made.cell("flex", 64))
    assert all(len(each.rivals) == 1 and each.is_judged for each in fastest(both, "bf16", 64))
    assert "at no point surely faster than all others" in implementations.least_time(both, ["bf16"]).text
    single = group_of(tmp_path, [row | made.timed(row["median_ms"], processes=1) for row in rows])
    assert not any(each.is_judged or each.rivals for each in fastest(single, "bf16", 64))
    text = implementations.least_time(single, ["bf16"]).text
    assert "no verdict" in text and "faster than" not in text
    assert implementations.least_time(group_of(tmp_path, made.cell(d_head=64)), ["bf16"]) is None


def test_the_fastest_under_the_models_mask(tmp_path):
    """Without a mask triton takes least at all 3 lengths; causal, flash where triton takes 5 ms: at one of 2 × 3."""
    rows = [row for name in ("naive", "triton") for row in made.cell(name, 64)]
    masked = [row for d in (64, 128) for name in ("sdpa-flash", "triton") for row in made.cell(name, d, **made.PAPERS)]
    for row in masked:
        if (row["implementation"], row["d_head"], row["length"]) == ("triton", 128, 1024):
            row |= made.timed(5.0)
    group = group_of(tmp_path, rows + masked)
    groups = Attention(Tables(tmp_path, ["attention", "ceilings"])).of("gpu")
    found = implementations.least_time(group, ["bf16"], groups)
    assert "(d = 64, not causal)" in found.text
    assert found.text.endswith("Causal, triton does at 5 of 6 points (bf16, d = 64 and 128).")
    assert not implementations.least_time(group, ["bf16"]).cause


def test_lengths_at_which_another_is_the_fastest(tmp_path):
    rows = [row for name in ("naive", "triton") for row in made.cell(name, 64)]
    slow = [
        row | made.timed(5.0) if (row["implementation"], row["length"]) == ("triton", 1024) else row for row in rows
    ]
    text = implementations.least_time(group_of(tmp_path, slow), ["bf16"]).text
    assert "in bf16 with naive at 1,024 and triton at 4,096 to 16,384" in text


def test_the_alternative_at_the_longest_length(tmp_path):
    """Naive 1 + 2, triton 0.16 + 0.32 at any length: 6.25 times; 24 GiB over 64 MiB: 384."""
    rows = [row for name in ("naive", "triton") for row in made.cell(name, 64)]
    found = implementations.alternative(group_of(tmp_path, rows), "bf16")
    assert values(found) == {"times": pytest.approx(6.25), "less": 384.0}
    assert "forward plus backward of triton" in found.text and "memory before backward" in found.text
    assert "holds" not in implementations.alternative(group_of(tmp_path, made.cpu(rows)), "bf16").text
    only = [row for row in rows if row["implementation"] == "naive"]
    assert implementations.alternative(group_of(tmp_path, only), "bf16") is None


@pytest.mark.parametrize(
    ("slowdown", "rate", "has_cause"),
    [(10.0, 24.0, True), (10.0, 26.0, False), (4.0, 24.0, False)],
)
def test_our_kernel_in_fp32(tmp_path, slowdown, rate, has_cause):
    """Without a slowdown triton runs at 6.25 times naive's speed; the ceiling is 50 TFLOP/s, half of it 25."""
    rows = [row for name in ("naive", "triton") for row in made.cell(name, 64, "fp32")]
    for row in rows:
        if row["implementation"] == "triton":
            row |= made.timed(row["median_ms"] * slowdown) | {"tflops": rate / (1 + (row["direction"] == "backward"))}
    limits = [row | {"precision": "fp32"} for row in made.ceilings(rate=50.0)]
    group = group_of(tmp_path, rows, limits)
    machine = Machine(Tables(tmp_path, ["attention", "ceilings"]))
    found = implementations.ours_in_fp32(machine, group)
    assert found.numbers["speed"].value == pytest.approx([6.25 / slowdown] * 6)
    assert ("slower in 6" if slowdown > 6.25 else "faster in 6") in found.text
    assert bool(found.cause) is has_cause
    if has_cause:
        assert found.numbers["share"].value == 0.48 and "no tensor cores either" in found.cause


def test_throttled_cells_are_named():
    rows = [*made.cell(d_head=64), *made.cell("triton", 64, throttle="SW power cap"), *made.cell("flex", 64)]
    found = implementations.throttled(rows, "gpu")
    assert values(found) == {"throttled": 1} and found.text == "1 of 3 cells ran throttled: triton."
    assert implementations.throttled(made.cell(), "gpu") is None


# The whole ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [made.grid(), made.cpu(made.grid())], ids=["gpu", "cpu"])
def test_budgets_without_a_profile(tmp_path, rows):
    _keeps_budgets(fitted(chapter(Machine(Tables(made.write(tmp_path, rows), page_one_maker.STUDIES)))))


def test_budgets_of_the_example_and_that_nothing_falls_off():
    whole = chapter(example())
    _keeps_budgets(fitted(whole))
    assert fitted(whole) == whole


def _keeps_budgets(one):
    shown = [each for part in one.parts for each in part.shows]
    tables = [each for each in shown if hasattr(each, "rows")]
    assert words(" ".join(each.text for each in one.takeaway)) <= MOST_TAKEAWAY_WORDS and one.words <= 450
    assert len(tables) <= MOST_TABLES and all(len(each.rows) <= MOST_ROWS for each in tables)
    assert len(shown) - len(tables) <= MOST_PICTURES
    assert all("{" not in each.text for each in one.findings)


def test_no_chapter_without_tables(tmp_path):
    assert chapter(Machine(Tables(tmp_path, page_one_maker.STUDIES))) is None


def test_points_of_single_processes_get_no_verdict_beside_the_others():
    points = [SimpleNamespace(is_judged=judged, rivals=rivals) for judged, rivals in
              ((False, ()), (True, ()), (True, ("flex",)), (True, ()))]  # fmt: skip
    said = "faster than all others at 2 of 4 points; no verdict at 1"
    assert implementations._verdict(points) == said
    assert implementations._verdict(points[:1]) == "no interval: no verdict"
