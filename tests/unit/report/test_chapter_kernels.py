"""What the chapter on kernels says, each number worked out by hand on small tables; both sides of each threshold.

By synthetic_profile, ms of any step's kernels: matmul 8, elementwise 3, copy/cast 1; 1,000 kernels in 2 blocks, 305 in
the table of kernels, of 4 ms in all; optimizer 2 ms; profiled 22 ms.
"""

from dataclasses import replace
from pathlib import Path

import page_one_maker
import pytest
import synthetic_ladder
import synthetic_profile
from chapter_checks import example
from stepscope.report.chapters import kernels
from stepscope.report.chapters.kernels import graphs, launching, products, profiler, rest, tables, top
from stepscope.report.data.kernels import launches, mix, tiles
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.blocks import Picture, Table
from stepscope.report.kit.chapter import MOST_PICTURES, MOST_ROWS, MOST_TABLES, MOST_TAKEAWAY_WORDS, fitted, words
from stepscope.tables.reader import Tables

ROOT = Path(__file__).resolve().parents[3]


def machine(folder, fp32=30.0, bf16=20.0, rates=(), rungs=(), change=None, **more) -> Machine:
    cells = [synthetic_profile.cell(**more), synthetic_profile.cell("bf16", **more)]
    timing = [page_one_maker.timed(cell, step) for cell, step in zip(cells, (fp32, bf16), strict=True)]
    return Machine(page_one_maker.write(folder, cells, timing, rates, rungs, change))


def texts(findings) -> list[str]:
    return [each.text for each in findings]


def categories(precision: str, **times):
    """A change that gives a step's categories these times, ms, in one precision."""

    def change(frames):
        frame = frames["profile_categories"]
        for name, time in times.items():
            here = frame["precision"].eq(precision) & frame["phase"].eq("step") & frame["category"].eq(name)
            frame.loc[here, "ms_per_step"] = time

    return change


# What is not a matrix product. ----------------------------------------------------------------------------------------


def test_the_share_of_products_is_a_range_over_the_steps_of_each_precision(tmp_path):
    own = machine(tmp_path, change=categories("bf16", matmul=1.0))  # 8 of 12, and 1 of 5
    assert texts(products.mix_takeaway(own, own.reference.row)) == [
        "Of a step's GPU time matrix products take 67 % in fp32 and 20 % in bf16 (1 step each). "
        "In bf16 fuse the rest first."
    ]


@pytest.mark.parametrize(("matmul", "advised"), [(3.9, True), (4.0, False)])  # of 4 ms that are no products
def test_fusing_is_advised_where_products_take_less_than_half(tmp_path, matmul, advised):
    own = machine(tmp_path, change=categories("bf16", matmul=matmul))
    found = products.mix_takeaway(own, own.reference.row)[0]
    assert bool(found.advice) is advised


def test_the_rest_stands_beside_that_in_fp32(tmp_path):
    own = machine(tmp_path, change=categories("bf16", matmul=1.0, **{"copy/cast": 2.0}))
    found = rest.rest_findings(own, own.reference.row)[0]
    assert found.text.startswith("In s at context 128, products take 8.00 ms in fp32 and 1.00 in bf16; all other")
    assert "kernels 4.00 and 5.00." in found.text
    assert "In bf16 elementwise kernels take 50 % and copy/cast 33 % of kernel time." in found.text  # 3 and 2 of 6 ms


@pytest.mark.parametrize(("elementwise", "short"), [(4.49, True), (4.5, False)])  # + 1 ms of 1,100
def test_kernels_below_five_microseconds_do_not_wait_for_memory(tmp_path, elementwise, short):
    own = machine(tmp_path, change=categories("bf16", elementwise=elementwise))
    found = rest.rest_findings(own, own.reference.row)[0]
    assert ("so short" in found.text) is short and ("memory limits them" in found.text) is not short


def test_what_shrinks_with_the_products_is_given_no_cause(tmp_path):
    own = machine(tmp_path, change=categories("bf16", elementwise=2.5))  # 3.5 of 4 ms is less than 0.9
    assert rest.rest_findings(own, own.reference.row)[0].text.endswith("of kernel time.")


def test_without_fp32_there_are_the_kinds_alone(tmp_path):
    cell = synthetic_profile.cell("bf16")
    own = Machine(page_one_maker.write(tmp_path, [cell], [page_one_maker.timed(cell, 20.0)]))
    assert rest.rest_findings(own, own.reference.row)[0].text == (  # 3 and 1 of 12
        "In s at context 128 in bf16 elementwise kernels take 25 % and copy/cast 8.3 % of all GPU time."
    )


def test_the_optimizer_stands_beside_its_bytes(tmp_path):
    # 28 bytes for each of 257,344 parameters at 10 GB/s are 0.7206 ms, of 2
    own = machine(tmp_path, rates=synthetic_profile.ceilings(gb_per_s=10.0))
    assert rest.rest_findings(own, own.reference.row)[1].text == (
        "The optimizer's kernels take 2.00 ms. At a large copy's rate its 28 bytes a parameter would take 0.721, the "
        "72 that its 300 kernels move 1.85."  # 18 numbers of 4 bytes: 0.7206 × 72 / 28
    )


@pytest.mark.parametrize(("rate", "told"), [(3.97, True), (3.95, False)])  # GB/s: 1.815 and 1.824 ms of 2, around 1.1
def test_an_optimizer_at_the_copy_rate_needs_no_cause(tmp_path, rate, told):
    own = machine(tmp_path, rates=synthetic_profile.ceilings(gb_per_s=rate))
    assert ("the 72 that" in rest.rest_findings(own, own.reference.row)[1].text) is told


def test_without_a_copy_rate_the_optimizer_is_not_judged(tmp_path):
    own = machine(tmp_path)
    assert not any("optimizer's kernels take" in text for text in texts(rest.rest_findings(own, own.reference.row)))


def test_what_a_fused_optimizer_saved_stands_beside_what_its_bytes_let_expect(tmp_path):
    # small has 128,625,408 parameters: 28 bytes of each take 1 ms at 3,601.5 GB/s, of the 4.2 that
    # the rung before takes for its optimizer; a step takes 4 instead of 5
    rates = synthetic_profile.ceilings(gb_per_s=3601.511424)
    own = machine(tmp_path, rates=rates, rungs=synthetic_ladder.chain(), parameters=128_625_408)
    said = rest.rest_findings(own, own.reference.row)[1].text
    assert said.endswith("Fusing it shortened a step by 1.00 ms (small at 128); 3.20 were predicted.")


def test_of_another_number_of_parameters_the_ratio_is_told(tmp_path):
    own = machine(tmp_path, rates=synthetic_profile.ceilings(), rungs=synthetic_ladder.chain())
    said = rest.rest_findings(own, own.reference.row)[1].text
    assert (
        "shortened" not in said and "Fusing it brought × 1.25 [" in said and said.endswith("], faster (small at 128).")
    )


# The kernel that takes most. ------------------------------------------------------------------------------------------


def test_the_top_kernel_of_forward_and_step_is_the_same_one(tmp_path):
    own = machine(tmp_path)
    assert texts(top.top_findings(own, own.reference.row)) == [
        # 15 of 5 × 4 ms in forward, 15 of 5 × 12 in the step
        "In the forward pass of s at context 128 in bf16 “gemm a” takes most: 75 % of the GPU time in 5 launches (2 a "
        "block).",
        "Over the whole step the same one does: 25 % of the GPU time in 5 launches (2 a block).",
    ]


def test_another_top_kernel_of_the_step_is_named_with_its_phase(tmp_path):
    def change(frames):
        frame = frames["profile_kernels"]
        copy = frame["name"].eq("mul") & frame["precision"].eq("bf16")
        frame.loc[copy & frame["phase"].eq("step"), "total_ms"] = 20.0
        frame.loc[copy & frame["phase"].eq("optimizer"), "total_ms"] = 16.0
        frame.loc[copy, "category"] = "copy/cast"

    own = machine(tmp_path, change=change)
    assert texts(top.top_findings(own, own.reference.row))[1] == (
        "Over the whole step “mul” does: 8.3 % of the GPU time in 300 launches, 80 % of it in the optimizer."
    )


@pytest.mark.parametrize(
    ("precision", "category", "said"),
    [
        ("bf16", "copy/cast", "It casts for the products."),
        ("fp32", "copy/cast", "It is no product."),
        ("bf16", "elementwise", "It is no product."),
        ("bf16", "matmul", ""),
    ],
)
def test_a_top_kernel_that_is_no_product_is_called_so(tmp_path, precision, category, said):
    def change(frames):
        frames["profile_kernels"]["category"] = category

    own = machine(tmp_path, change=change)
    row = next(each.row for each in own.steps if each.precision == precision)
    assert top.top_findings(own, row)[0].cause == said


# Launches. ------------------------------------------------------------------------------------------------------------


def several(folder, busy, precision="bf16", **axes) -> Machine:
    """Steps of 20 ms, of which the GPU is busy for so many, along a size or a context."""
    (name, values), cells = next(iter(axes.items())), []
    for at, (value, time) in enumerate(zip(values, busy, strict=True)):
        cell = synthetic_profile.cell(precision, busy=time)
        cell |= {name: value, "cell": f"{cell['cell']}/{value}", "parameters": 1e6 * (at + 1), "d_model": 64 + 4 * at}
        cells.append(cell)
    return Machine(page_one_maker.write(folder, cells, [page_one_maker.timed(each, 20.0) for each in cells]))


def test_kernels_of_a_block_and_their_length(tmp_path):
    own = machine(tmp_path)
    found = launches(own.profile, own.reference.row)
    assert found.per_block == 500.0 and found.step_us == 20.0  # 1,000 kernels of 2 blocks in 20 ms
    # the table of kernels has 15 + 5 ms of 25 + 1,500
    assert found.kernel_us == pytest.approx(20_000 / 1525)
    assert texts(launching.launch_findings(own, own.reference.row)) == ["A bf16 step launches 500 kernels a block."]


@pytest.mark.parametrize(("kernels_of_b", "alike"), [(1099, True), (1101, False)])  # beside 1,000: the mark is 1.1
def test_the_width_adds_no_kernels_only_where_widths_differ_and_counts_do_not(tmp_path, kernels_of_b, alike):
    own = with_kernels(several(tmp_path, (12.0, 12.0), size=("a", "b")), "b", kernels_of_b)
    said = launching.launch_findings(own, own.reference.row)[0].text
    assert ("a block, whatever its width." in said) is alike


def test_a_call_of_attention_is_told_with_its_softmax(tmp_path):
    def change(frames):
        rows = []
        for precision in ("fp32", "bf16"):
            cell = f"gpu/profile/s/ctx128/{precision}"
            for name, launched in (("attention", 62), ("softmax", 16)):
                rows.append({"cell": cell, "range": name, "count_per_step": 2.0, "kernels_per_step": launched,
                             "gpu_mean_us": 447.2, "host_mean_us": 1028.4})  # fmt: skip
        frames["profile_ranges"] = frames["profile"][:0].reindex(columns=list(rows[0]))
        frames["profile_ranges"] = frames["profile_ranges"].astype(object)
        for at, row in enumerate(rows):
            frames["profile_ranges"].loc[at] = row

    own = machine(tmp_path, change=change)
    assert texts(launching.launch_findings(own, own.reference.row))[1] == (
        "A forward call of attention in s at context 128 in bf16 launches 31 kernels, 8 of them for the softmax. "
        "Profiled, the host needs 1,028 µs, the GPU 447."
    )


def test_sizes_that_launches_limit_and_from_where_on_the_gpu_does(tmp_path):
    # launch-bound below 0.7 of 20 ms, GPU-bound from 0.9 on
    own = several(tmp_path, (13.9, 14.0, 17.9, 18.0), size=("a", "b", "c", "d"))
    assert texts(launching.limit_findings(own))[0] == (
        "At context 128 in bf16 launches limit a; the GPU limits d; b and c lie between."
    )
    longer = several(tmp_path / "longer", (13.9, 18.0, 19.0), size=("a", "b", "c"))
    assert "from b on the GPU does" in texts(launching.limit_findings(longer))[0]
    # 13.9 of 20
    assert texts(launching.limits_takeaway(own)) == ["Launches limit 1 of 4 steps in bf16 (GPU busy 70 %)."]


def test_a_larger_size_that_launches_limit_contradicts_the_usual_story(tmp_path):
    own = several(tmp_path, (19.0, 10.0), size=("a", "b"))
    assert texts(launching.limit_findings(own))[0] == "At context 128 in bf16 launches limit b; the GPU limits a."


def test_steps_of_another_batch_are_not_counted(tmp_path):
    cells = [synthetic_profile.cell("bf16", parameters=2e6), synthetic_profile.cell("bf16", busy=5.0, batch=8)]
    cells[1]["cell"] += "/batch=8"
    own = Machine(page_one_maker.write(tmp_path, cells, [page_one_maker.timed(each, 20.0) for each in cells]))
    assert own.reference.row["batch"] == 4
    assert texts(launching.limits_takeaway(own)) == ["Launches limit 1 of 1 step in bf16 (GPU busy 60 %)."]  # 12 of 20


def test_where_launches_limit_nothing_no_cause_is_given(tmp_path):
    own = several(tmp_path, (19.0, 19.5), size=("a", "b"))
    assert texts(launching.limit_findings(own)) == [
        "At context 128 in bf16 launches limit none; the GPU limits a and b."
    ]
    assert texts(launching.limits_takeaway(own)) == ["Launches limit 0 of 2 steps in bf16."]


def test_over_the_contexts_of_a_size(tmp_path):
    own = several(tmp_path / "a", (10.0, 19.0), context=(128, 256))
    assert "In s the GPU limits at context 256 alone." in texts(launching.limit_findings(own))
    longer = several(tmp_path / "d", (10.0, 19.0, 19.5), context=(128, 256, 512))
    assert "In s the GPU limits from context 256 on." in texts(launching.limit_findings(longer))
    never = several(tmp_path / "b", (10.0, 12.0), context=(128, 256))
    assert "In s in bf16 the GPU limits at none of 128 and 256." in texts(launching.limit_findings(never))
    back = several(tmp_path / "c", (19.0, 12.0), context=(128, 256))
    assert not any(text.startswith("In s") for text in texts(launching.limit_findings(back)))


def with_kernels(own: Machine, size: str, kernels_a_step: float) -> Machine:
    """The same machine, whose steps of a size launch so many kernels."""
    frame = own.tables["profile_phases"]
    here = frame["cell"].str.endswith(f"/{size}") & frame["phase"].eq("step")
    frame.loc[here, "kernels_per_step"] = kernels_a_step
    return Machine(own.tables)


def test_the_time_for_each_kernel_stands_beside_that_of_a_kernel(tmp_path):
    own = with_kernels(several(tmp_path, (10.0, 10.0), size=("a", "b")), "b", 1250.0)
    # 20 ms of 1,000 and of 1,250 kernels; the table of kernels has 20 ms of 1,525
    assert texts(launching.limit_findings(own))[1] == (
        "Where launches limit, a step takes 16.0 to 20.0 µs a kernel, which runs for 13.1."
    )


# CUDA graphs, the profiler, products. ---------------------------------------------------------------------------------


def test_graphs_are_silent_without_a_ladder(tmp_path):
    assert graphs.graph_findings(machine(tmp_path)) == ()


def test_graphs_tell_what_the_ladder_measured(tmp_path):
    # 10 and 5 ms in small; ten times that in 2.7B
    rungs = [*synthetic_ladder.chain(), *synthetic_ladder.chain("2.7B", scale=10.0)]
    own = machine(tmp_path, rungs=rungs)
    said = texts(graphs.graph_findings(own))
    assert said[0].startswith(
        "They cut a compiled step's launches from 1,800 to 1,200 (small at 128) and bring × 2.00 ["
    )
    assert said[0].endswith("], faster. Fewer launches alone would give × 1.50.")
    assert said[1].startswith("In 2.7B at 128 they bring × 2.00 [") and len(said) == 2


@pytest.mark.parametrize(("launched", "told"), [(1000, True), (900, False)])  # of 1,800: × 1.8 and × 2, as measured
def test_what_fewer_launches_would_give_is_told_where_graphs_bring_more(tmp_path, launched, told):
    rungs = [synthetic_ladder.cell("small", 128, "bf16", options, step, launches=count) for options, step, count in (
        (synthetic_ladder.BLOCK, 10.0, 1800), (synthetic_ladder.GRAPHS, 5.0, launched))]  # fmt: skip
    assert ("alone" in texts(graphs.graph_findings(machine(tmp_path, rungs=rungs)))[0]) is told


@pytest.mark.parametrize(("reasons", "told"), [(["power cap"], True), ([], False)])
def test_a_gain_on_a_throttled_gpu_is_told_so(tmp_path, reasons, told):
    rungs = [synthetic_ladder.cell("small", 128, "bf16", options, step, processes=1, throttle=reasons) for options, step
             in ((synthetic_ladder.BLOCK, 10.0), (synthetic_ladder.GRAPHS, 5.0))]  # fmt: skip
    said = texts(graphs.graph_findings(machine(tmp_path, rungs=rungs)))[0]
    assert said == f"In small at 128 they bring × 2.00, once measured{', throttled' * told}."


@pytest.mark.parametrize(("launched", "word"), [(1799, "cut"), (1800, "do not cut")])
def test_graphs_that_save_no_launch_are_told_so(tmp_path, launched, word):
    rungs = [synthetic_ladder.cell("small", 128, "bf16", options, step, launches=count) for options, step, count in (
        (synthetic_ladder.BLOCK, 10.0, 1800), (synthetic_ladder.GRAPHS, 5.0, launched))]  # fmt: skip
    said = texts(graphs.graph_findings(machine(tmp_path, rungs=rungs)))[0]
    assert said.startswith(f"They {word} a compiled step's launches from 1,800 to {launched:,} (small at 128)")


@pytest.mark.parametrize(("timed", "told"), [(15.9, True), (16.1, False)])  # beside 20 ms: the mark is 1.25
def test_a_slow_host_of_the_ladder_is_told(tmp_path, timed, told):
    rungs = synthetic_ladder.chain()
    cells = [synthetic_profile.cell("bf16")]
    timing = [page_one_maker.timed(cells[0], 20.0)]
    batch = rungs[0].entry["spec"]["batch"]
    timing.append(timing[0] | {"cell": "gpu/timing/small/ctx128/bf16", "size": "small", "batch": batch,
                               "step_median_ms": timed})  # fmt: skip
    own = Machine(page_one_maker.write(tmp_path, cells, timing, rungs=rungs))
    said = texts(graphs.graph_findings(own))
    slow = f"That ladder ran slowly: plain bf16 took 20.0 ms, in the timing study {timed}."
    assert (slow in said) is told and len(said) == 1 + told


@pytest.mark.parametrize(("bf16", "alike"), [(24.4, True), (24.5, False)])  # 22 ms profiled, of which 0.9 are the mark
def test_a_step_that_the_profiler_seems_to_shorten_tells_no_cost(tmp_path, bf16, alike):
    own = machine(tmp_path, bf16=bf16)
    found = profiler.profiler_findings(own, own.reference.row)[0]
    assert found.text.startswith(f"Under Nsight Systems a bf16 step takes {22 / bf16:.3f} times as long (1 step).")
    assert (found.cause == "") is alike


def test_the_cost_of_the_profiler_is_least_where_the_gpu_limits_only_if_it_is(tmp_path):
    own = several(tmp_path / "a", (10.0, 19.0), size=("a", "b"))
    assert "least" not in profiler.profiler_findings(own, own.reference.row)[0].text  # both 22 of 20 ms

    own = several(tmp_path / "b", (10.0, 19.0), size=("a", "b"))
    frame = own.tables["profile_phases"]
    frame.loc[frame["cell"].str.endswith("/b") & frame["phase"].eq("step"), "host_ms_per_step"] = 21.0
    own = Machine(own.tables)
    assert texts(profiler.profiler_findings(own, own.reference.row))[0] == (
        "Under Nsight Systems a bf16 step takes 1.05 to 1.10 times as long (2 steps), least where the GPU limits."
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--trace=cuda,nvtx", "recorded CUDA calls, kernels and the model's ranges, no system calls or Python stacks."),
        ("--trace=cuda,osrt --python-backtrace=cuda", "recorded CUDA calls, kernels and the operating system's calls."),
        ("--python-backtrace=none --trace=osrt", "recorded the operating system's calls, no Python stacks."),
    ],
)
def test_what_the_options_recorded(tmp_path, options, said):
    own = machine(tmp_path, profiler_options=options)
    assert texts(profiler.profiler_findings(own, own.reference.row))[1].endswith(said)


def test_without_options_nothing_is_said_of_them(tmp_path):
    own = machine(tmp_path, profiler_options="")
    assert len(profiler.profiler_findings(own, own.reference.row)) == 1


def test_rates_stand_beside_the_large_product(tmp_path):
    # by hand: 3 × 233,308,160 operations in 8 ms are 0.0875 TFLOP/s; both kernels of the step are SIMT
    rates = [*synthetic_profile.ceilings(tflops=0.175), *synthetic_profile.ceilings(tflops=2.0, precision="bf16")]
    own = machine(tmp_path, rates=rates)
    assert texts(products.product_findings(own, own.reference.row))[0] == (
        "Products of s at context 128 reach, of a large one's TFLOP/s, 0.0875 of 0.175 on SIMT units in fp32 and "
        "0.0875 of 2.00 on SIMT units in bf16."
    )


@pytest.mark.parametrize(("other", "unit"), [(0.78, "SIMT"), (0.8, "")])  # ms beside 15: the mark is 95 %
def test_a_unit_is_named_where_nearly_all_products_run_on_it(tmp_path, other, unit):
    def change(frames):
        frame = frames["profile_kernels"]
        here = frame["name"].eq("mul") & frame["phase"].eq("forward")
        frame.loc[here, ["category", "unit", "total_ms"]] = ["matmul", "tensor core", other]

    own = machine(tmp_path, change=change)
    found = tiles(own.profile, own.reference.row, "forward")
    assert found.unit == unit and found.outputs == 64 * 64


SMALLER = (
    "In backward a thread block's output tile is 0.891 (fp32) and 0.891 (bf16) times forward's. Smaller tiles load "
    "operands more often (fp32 and bf16)."
)


@pytest.mark.parametrize(("tile", "said"), [("58x64x8", False), ("57x64x8", True)])  # of 64x64: 0.906 and 0.891
def test_smaller_tiles_of_backward_are_called_so(tmp_path, tile, said):
    def change(frames):
        frame = frames["profile_kernels"]
        frame.loc[frame["phase"].eq("backward") & frame["category"].eq("matmul"), "tile"] = tile

    own = machine(tmp_path, change=change)
    said_of = texts(products.product_findings(own, own.reference.row))
    assert said_of == ([SMALLER] if said else [])


# The chapter as a whole. ----------------------------------------------------------------------------------------------


def test_the_chapter_of_the_example_keeps_its_budgets():
    found = kernels.chapter(example())
    assert found.words <= 450 and fitted(found).parts == tuple(part for part in found.parts if part.findings)
    assert sum(words(each.text) for each in found.takeaway) <= MOST_TAKEAWAY_WORDS
    shown = [each for part in found.parts for each in part.shows]
    tables_shown = [each for each in shown if isinstance(each, Table)]
    assert sum(isinstance(each, Picture) for each in shown) <= MOST_PICTURES
    assert len(tables_shown) <= MOST_TABLES and all(len(each.rows) <= MOST_ROWS for each in tables_shown)
    sentences = [one for each in found.findings for one in each.text.replace("? ", ". ").split(". ")]
    assert max(map(words, sentences)) <= 30


def test_nothing_measured_gives_no_chapter(tmp_path):
    assert kernels.chapter(Machine(Tables(tmp_path, page_one_maker.STUDIES))) is None


def test_a_cpu_has_operators_and_no_launches(tmp_path):
    def change(frames):
        checks = frames["profile_checks"]
        checks.loc[checks["quantity"].eq("device_is_host"), "value"] = "True"

    cell = synthetic_profile.cell(device="cpu", profiler="torch", profiler_options="")
    own = Machine(page_one_maker.write(tmp_path, [cell], [page_one_maker.timed(cell, 20.0)], change=change))
    found = fitted(kernels.chapter(own))
    said = " ".join(each.text for each in found.findings)
    assert "time in operators" in said and "launch" not in said and "GPU" not in said
    assert [table.columns[5].label for part in found.parts for table in part.shows if isinstance(table, Table)] == [
        "runs on"
    ]


def test_a_long_grid_shows_twelve_rows_and_counts_the_rest(tmp_path):
    names = [f"s{at:02d}" for at in range(13)]
    own = several(tmp_path, [10.0] * 13, size=names)
    found = tables.launches_table(own)
    assert len(found.rows) == 12 and "1 more stand in the data." in found.notes


def test_the_steps_that_launches_limit_have_their_intervals_and_marks():
    """medium at 128 by the tables: 61.3 ms, noisy; medium at 1,024: 115, not."""
    found = tables.launches_table(example())
    steps = {(row[0].text, row[1].text): row[4] for row in found.rows}
    noisy, other = steps["medium", "128"], steps["medium", "1,024"]
    assert (noisy.text, noisy.below, noisy.badges) == ("61", "[47, 80]", ("noisy",))
    assert (other.text, other.badges) == ("115", ()) and "~: noisy" in found.notes[-1]


def test_a_mix_without_kernels_is_none(tmp_path):
    own = machine(tmp_path)
    assert mix(own.profile, {**own.reference.row, "cell": "another"}) is None
    assert replace(mix(own.profile, own.reference.row), products=4.0, rest=12.0).share == 0.25
