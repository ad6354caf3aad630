"""Page one: its budgets, its findings against numbers worked out by hand, and what it does with little data."""

import math
import re

import committed_example
import golden
import page_one_maker as made
import pandas as pd
import pytest
import report_maker
import synthetic
import synthetic_ladder
import synthetic_profile
import synthetic_warmup
from stepscope.figures import theme
from stepscope.report.data.ladder import reached
from stepscope.report.data.profile import Profile
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import every_step, reference, side_by_side
from stepscope.report.kit.chapter import words
from stepscope.report.page import Request, report
from stepscope.report.studies.page_one import section
from stepscope.report.studies.page_one.findings import LEAST_SHARE, Cost, answer, costs
from stepscope.report.studies.page_one.tables import MOST_ROWS, best_rows, ladder_table, largest_ladder
from stepscope.tables.reader import Tables


def found(tables: Tables) -> dict[str, Cost]:
    """question → finding."""
    return {each.finding.question: each for each in costs(Machine(tables))}


# Budgets --------------------------------------------------------------------------------------------------------------


def _example(folder):
    return Tables(committed_example.tables(), made.STUDIES)


def _synthetic(folder):
    return Tables(synthetic.write("h100", folder), made.STUDIES)


SOURCES = {"example": _example, "synthetic": _synthetic, "everything": made.everything}


@pytest.mark.parametrize("source", SOURCES)
def test_the_page_keeps_its_budgets(source, tmp_path):
    tables = SOURCES[source](tmp_path)
    text = golden.page_of("page_one", tables)
    lines = [line for line in text.split("\n") if not re.match(r"\||<sub>|!\[|\*\*(Table|Figure) ", line)]
    prose = re.sub(r"\]\(#[^)]*\)", "]", "\n".join(lines))
    assert 20 < sum(bool(re.search(r"\w", word)) for word in prose.split()) <= 400
    assert text.count("![") <= 1
    tables_there = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert 1 <= len(tables_there) <= 2
    assert all(len(table.strip().split("\n")) - 2 <= 8 for table in tables_there)
    told = costs(Machine(tables))
    assert len(told) <= 7
    assert all(words(each.finding.text) <= 40 for each in told)
    order = [(not each.is_part, -each.cost) for each in told]  # of the reference step first
    assert order == sorted(order)


def test_the_dearest_findings_are_kept_where_words_are_few(tmp_path):
    told = costs(Machine(made.everything(tmp_path)))
    first, second = (words(each.finding.text) + section.MOST_LINK_WORDS for each in told[:2])
    assert section.fitting(told, first + second) == told[:2]
    assert section.fitting(told, first + second - 1) == told[:1]


@pytest.mark.parametrize(("text", "count"), [("", 0), ("× 1.5 as fast (30 %).", 4), ("a — b", 2)])
def test_words_are_what_has_a_letter_or_a_digit(text, count):
    assert words(text) == count


# The step -------------------------------------------------------------------------------------------------------------


def test_a_step_is_taken_apart(tmp_path):
    cells, timing = made.both(fp32=30.0, bf16=20.0)
    first, second = every_step(Profile(made.write(tmp_path, cells, timing)))
    # Busy for 12 ms: 8 in products, 2 in the optimizer, 0.95 in attention beside its products, and so 1.05 in others.
    for each, idle in ((first, 18.0), (second, 8.0)):
        parts = (each.products, each.attention, each.other, each.optimizer, each.idle)
        assert parts == pytest.approx((8.0, 0.95, 1.05, 2.0, idle))
    assert second.share("products") == pytest.approx(0.4) and second.busy == pytest.approx(12.0)


def test_kernels_that_took_longer_under_the_profiler_leave_no_idle_time(tmp_path):
    cells, timing = made.both(bf16=10.0)
    second = every_step(Profile(made.write(tmp_path, cells, timing)))[1]
    assert second.idle == 0.0 and second.total == pytest.approx(12.0)


def _place(size: str, context: int, precision: str, parameters: int) -> dict:
    name = f"gpu/profile/{size}/ctx{context}/{precision}"
    return synthetic_profile.cell(precision) | {
        "cell": name,
        "size": size,
        "context": context,
        "parameters": parameters,
    }


def test_the_reference_is_the_largest_place_in_both_precisions_and_there_bf16(tmp_path):
    places = [("a", 512, "fp32", 100), ("a", 512, "bf16", 100), ("b", 128, "fp32", 300), ("b", 128, "bf16", 300),
              ("c", 512, "fp32", 500)]  # fmt: skip
    cells = [_place(*each) for each in places]
    steps = every_step(Profile(made.write(tmp_path, cells, [made.timed(cell, 20.0) for cell in cells])))
    own = reference(steps)
    assert (own.row["size"], own.precision) == ("a", "bf16")  # 51,200 parameters × tokens; b has 38,400
    assert reference(each for each in steps if each.row["size"] == "c").precision == "fp32"
    assert reference([]) is None
    context, panels = side_by_side(steps)
    assert context == 512 and [each.row["size"] for each in panels["fp32"]] == ["a", "c"]
    assert [each.row["size"] for each in panels["bf16"]] == ["a"]


def test_larger_sizes_that_were_timed_but_not_profiled_are_named(tmp_path):
    cells, timing = made.both()
    others = [("xl", "bf16", 4e9), ("large", "bf16", 2e9), ("huge", "fp32", 8e9), ("tiny", "bf16", 1e5)]
    for size, precision, parameters in others:
        cell = synthetic_profile.cell(precision) | {"size": size, "parameters": parameters, "cell": f"gpu/{size}"}
        timing.append(made.timed(cell, 50.0))
    told = answer(Machine(made.write(tmp_path, cells, timing))).text
    assert told.endswith(" No bf16 step of the larger large and xl was profiled.")


def test_without_a_profile_or_on_a_cpu_there_is_no_step_and_no_figure(tmp_path):
    host = synthetic_profile.cell(hardware="cpu", device="cpu", profiler="torch")

    def on_host(frames):
        checks = frames["profile_checks"]
        checks.loc[checks["quantity"] == "device_is_host", "value"] = "True"

    for name, cells, change in (("none", [], None), ("cpu", [host], on_host)):
        tables = made.write(tmp_path / name, cells, [made.timed(host, 20.0)], change=change)
        own = section.context(tables)
        assert (own["answer"], own["picture"], own["parts"], own["others"], own["about"]) == (None, None, [], [], "")
        assert [table.name for table in own["tables"]] == ["page-best"]
        assert "![" not in golden.page_of("page_one", tables)


# Findings: both sides of each threshold -------------------------------------------------------------------------------

QUESTIONS = {
    "what does the optimizer cost": 2.0,
    "what does attention cost": 0.95,
    "what do memory-bound kernels cost": 1.05,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_part_is_told_from_a_share_of_the_step_on(question, tmp_path):
    limit = QUESTIONS[question] / LEAST_SHARE
    for at, step in enumerate((0.999 * limit, 1.001 * limit)):
        cells, timing = made.both(bf16=step)
        told = found(made.write(tmp_path / str(at), cells, timing))
        assert (question in told) == (at == 0)
        if question in told:
            assert told[question].cost == pytest.approx(QUESTIONS[question])


def test_waiting_is_told_from_a_share_of_the_step_on(tmp_path):
    for at, step in enumerate((12.0 / 0.951, 12.0 / 0.949)):  # idle for 4.9 and for 5.1 %
        cells, timing = made.both(bf16=step)
        told = found(made.write(tmp_path / str(at), cells, timing))
        assert ("what does waiting for launches cost" in told) == (at == 1)


def test_the_gain_that_was_predicted_is_that_of_the_closed_form(tmp_path):
    told = found(made.everything(tmp_path))
    numbers = {name: each.finding.numbers for name, each in told.items()}
    # A step of 20 ms: without 8 idle, without 1.05 of others; 28 bytes of 257,344 parameters at 10 GB/s are 0.7206 ms.
    assert numbers["what does waiting for launches cost"]["predicted"].value == pytest.approx(20 / 12)
    assert numbers["what do memory-bound kernels cost"]["predicted"].value == pytest.approx(20 / 18.95)
    assert numbers["what does the optimizer cost"]["least"].value == pytest.approx(0.72056, rel=1e-4)
    assert numbers["what does the optimizer cost"]["predicted"].value == pytest.approx(20 / 18.72056, rel=1e-5)
    # In fp32 8 of 30 ms are products, which the ceilings say to become 8 times as fast.
    assert numbers["what does mixed precision bring"]["predicted"].value == pytest.approx(30 / 23)


def test_the_gain_that_was_measured_is_the_ladders(tmp_path):
    told = found(made.everything(tmp_path))
    # synthetic_ladder.STEPS: 15 to 10 ms by compiling, 10 to 5 by graphs, 5 to 4 by the fused optimizer.
    for question, gain in (
        ("what do memory-bound kernels cost", 1.5),
        ("what does waiting for launches cost", 2.0),
        ("what does the optimizer cost", 1.25),
    ):
        number = told[question].finding.numbers["gain"]
        assert number.value == pytest.approx(gain) and str(number).endswith("], faster")
        assert "Use " in told[question].finding.reasons
        assert "measured (small at 128): {}" in told[question].finding.reasons.replace(str(number), "{}")


def test_the_largest_kind_of_other_kernels_need_not_be_most_of_them(tmp_path):
    def change(frames):  # outside the optimizer 1 ms each of elementwise, copy/cast and reduction
        kinds = frames["profile_categories"]
        copies = kinds[kinds["category"].eq("copy/cast") & kinds["phase"].eq("step")]
        frames["profile_categories"] = pd.concat([kinds, copies.assign(category="reduction", ms_per_step=1.1)])

    cells, timing = made.both()
    told = found(made.write(tmp_path, cells, timing, change=change))["what do memory-bound kernels cost"].finding
    assert told.cause == "Reduction takes most: {most} ms, with that of attention."


def test_the_most_that_graphs_could_bring_is_of_one_of_the_steps_that_launches_limit(tmp_path):
    # Busy for 12 ms: of 36 at 128, of 20 at 256, which is the larger place.
    cells = [synthetic_profile.cell("bf16", context=at) | {"cell": f"gpu/profile/s/ctx{at}/bf16"} for at in (128, 256)]
    timing = [made.timed(cell, step) for cell, step in zip(cells, (36.0, 20.0), strict=True)]
    text = found(made.write(tmp_path, cells, timing))["what does waiting for launches cost"].finding.text
    assert "launches limit s at 128, s at 256: the GPU idles 40 to 67 %. " in text
    assert text.endswith("Try CUDA graphs: at most × 1.7 to 3.0 there.")


def test_graphs_are_judged_where_launches_limited_the_step_before(tmp_path):
    """nano, the nearest, waits for no launch, and a single process measured medium: small tells."""
    cells, timing = made.both(processes=3)
    options = (synthetic_ladder.BLOCK, synthetic_ladder.GRAPHS)

    def pair(size: str, graphs: float, launch: float, **more) -> list:
        return [
            synthetic_ladder.cell(size, 128, "bf16", own, step, compile_seconds=20.0, launch=launch, **more)
            for own, step in zip(options, (10.0, graphs), strict=True)
        ]

    rungs = [*pair("nano", 9.9, 0.2), *pair("small", 5.0, 0.95), *pair("medium", 6.0, 0.95, processes=1)]
    told = found(made.write(tmp_path, cells, timing, rungs=rungs))["what does waiting for launches cost"]
    assert "Use CUDA graphs: at most × 1.67 here; measured (small at 128): × 2.00" in told.finding.text


def test_graphs_without_compiled_blocks_before_them_are_both(tmp_path):
    cells, timing = made.both(processes=3)
    rungs = [rung for rung in synthetic_ladder.chain() if rung.entry["spec"].get("compile") != "block"]
    told = found(made.write(tmp_path, cells, timing, rungs=rungs))
    text = told["what does waiting for launches cost"].finding.text
    # Without 8 ms idle and 1.05 others of 20; 15 to 5 ms on the ladder.
    assert "Use compiled blocks in CUDA graphs: at most × 1.83 here; measured (small at 128): × 3.00" in text
    assert "measured" not in told["what do memory-bound kernels cost"].finding.text


def test_what_did_not_help_is_not_advised(tmp_path):
    steps = [list(each) for each in synthetic_ladder.STEPS]
    steps[5][2] = 20.0  # compiling makes 15 ms 20
    cells, timing = made.both()
    tables = made.write(tmp_path, cells, timing, rungs=synthetic_ladder.chain(steps=steps))
    told = found(tables)["what do memory-bound kernels cost"].finding.text
    assert "No gain from compiled blocks" in told and "measured (small at 128): × 0.75" in told and "slower." in told


def test_where_nothing_else_is_in_the_step_there_is_no_prediction(tmp_path):
    def only_idle(frames):
        frames["profile_busy"]["busy_ms_per_step"] = 0.0
        frames["profile_categories"]["ms_per_step"] = 0.0
        frames["profile_phases"]["gpu_ms_per_step"] = 0.0
        del frames["profile_attention"]

    cells, timing = made.both()
    told = found(made.write(tmp_path, cells, timing, change=only_idle))["what does waiting for launches cost"]
    assert told.cost == 20.0 and "Try CUDA graphs." in told.finding.reasons


def test_a_ladder_of_the_same_size_comes_before_a_nearer_one(tmp_path):
    cells = [synthetic_profile.cell() | {"size": "small", "parameters": 10**9}]
    chains = synthetic_ladder.chain("small", 128) + synthetic_ladder.chain("medium", 512)
    tables = made.write(tmp_path, cells, [made.timed(cells[0], 20.0)], rungs=chains)
    told = found(tables)["what does the optimizer cost"].finding.text
    assert told.endswith("measured × 1.25 [1.24, 1.26], faster.")  # at the step's own place, which needs no name


PRECISION = "what does mixed precision bring"


@pytest.mark.parametrize(
    ("fp32", "processes", "words"),
    [
        (20.3, 1, None),  # 1.5 %, less than the least margin of 2 %
        (20.6, 1, "no verdict"),
        (20.3, 3, None),
        (30.0, 3, "faster"),
        (15.0, 3, "slower"),
    ],
)
def test_mixed_precision_is_told_where_it_makes_a_difference(fp32, processes, words, tmp_path):
    cells, timing = made.both(fp32, 20.0, processes)
    told = found(made.write(tmp_path, cells, timing)).get(PRECISION)
    assert (told is None) == (words is None)
    if words:
        end = " (s at 128)." if words == "no verdict" else f": {words}."
        assert told.finding.verdict.endswith(end) and told.cost == pytest.approx(abs(fp32 - 20.0))
        urged = {"faster": "Use bf16", "slower": "No gain from bf16", "no verdict": "Try bf16"}[words]
        assert urged in told.finding.reasons


@pytest.mark.parametrize(("fp32", "end"), [(12.6, "× 0.63, slower."), (20.3, "× 1.02, same.")])
def test_the_least_that_mixed_precision_brings_has_its_verdict(fp32, end, tmp_path):
    cells, timing = made.both(30.0, 20.0, 3)
    shorter = [made.timed(cell | {"context": 64}, step, 3, cell=cell["cell"].replace("128", "64"))
               for cell, step in zip(cells, (fp32, 20.0), strict=True)]  # fmt: skip
    told = found(made.write(tmp_path, cells, [*shorter, *timing]))[PRECISION].finding
    assert told.verdict.endswith("(s at 128): faster.") and told.reasons.endswith(f"In s at 64: {end}")


def test_mixed_precision_is_told_of_cells_whose_processes_agree(tmp_path):
    _, timing = made.both(30.0, 20.0, processes=3)
    again = [row | {"context": 256, "cell": row["cell"].replace("ctx128", "ctx256")} for row in timing]
    again[0] |= {"step_median_ms": 80.0, "step_ci_low_ms": None, "step_ci_high_ms": None, "step_spread": None,
                 "step_spread_degrees": None, "step_unsteady": True, "step_noisy": True}  # fmt: skip
    told = found(made.write(tmp_path, timing=[*timing, *again]))[PRECISION].finding
    assert told.verdict.startswith("bf16 autocast is × 1.50 [") and told.verdict.endswith(" (s at 128): faster.")


def test_what_does_not_fit_is_told_where_something_does_not(tmp_path):
    cells, timing = made.both()
    fits = found(made.write(tmp_path / "fits", cells, timing))
    lost = found(made.write(tmp_path / "lost", cells, [*timing, made.lost(cells[1], 256), made.lost(cells[1], 512)]))
    assert "what does not fit" not in fits
    text = lost["what does not fit"].finding.verdict
    assert text == "A step of s in bf16 fits up to context 128 (60.0 of 80.0 GiB); 256 runs out of memory."


def test_checkpoints_cost_what_the_ladder_measured(tmp_path):
    told = found(made.everything(tmp_path))["what does not fit"].finding
    assert told.numbers["added"].value == pytest.approx(4.0)  # 20 instead of 16 ms
    assert str(told.numbers["checkpointed"]) == "1.50"  # the half of 3 GiB


def test_where_a_rung_fits_it_comes_before_checkpoints(tmp_path):
    cells, timing = made.both(processes=3)
    rungs = synthetic_ladder.chain("medium", 512)
    lost = [synthetic_ladder.without_step(each) for each in rungs[:3]]
    tables = made.write(tmp_path, cells, [*timing, made.lost(cells[1], 256)],
                        rungs=[*lost, *rungs[3:], *synthetic_ladder.checkpoints()])  # fmt: skip
    told = found(tables)["what does not fit"]
    assert "SDPA makes medium at 512 fit" in told.finding.reasons and "heckpoint" not in told.finding.reasons
    others = [each for each in costs(Machine(tables)) if not each.is_part]
    assert told.cost == math.inf and others[0] == told  # what does not run at all comes first
    (ladder, _) = section.context(tables)["tables"]
    assert [ladder.columns[at].label for at in (2, 3)] == ["the rung before", "SDPA"]
    gains = [row[3].text for row in ladder.rows]
    assert gains[:4] == ["–", "–", "–", "1"] and gains[4] == "1.07"  # 16 and 15 ms


@pytest.mark.parametrize(("first", "is_told"), [((1000.0, 200.0, 50.0), True), ((0.0, 0.0, 0.0), False)])
def test_warm_up_is_told_where_a_mean_without_it_is_sure_to_be_off(first, is_told, tmp_path):
    plan = synthetic_warmup.Plan(tmp_path / "results")
    for warmup in (0, 1, 2, 5):
        plan.cell(warmup=warmup, noise=0.002, first=first)
    plan.write(tmp_path)
    told = found(Tables(tmp_path, made.STUDIES)).get("how much warm-up is needed")
    assert (told is not None) == is_told
    # Ten steps: the second and the third take 7 and 3.5 ms more than 35, together 3 % of the mean's 350.
    if told:  # the first takes 1,250 ms more
        assert told.finding.numbers["ratio"].value == pytest.approx(1 + 1260.5 / 350, rel=0.01)
        assert told.cost == 0.0  # it costs a measurement, not a step


def test_a_mean_without_warm_up_is_beside_the_late_steps_of_its_own_process(tmp_path):
    """Other processes take half as long: 1,610.5 / 350 is beside the process's own 35 ms, not beside theirs."""
    plan = synthetic_warmup.Plan(tmp_path / "results")
    plan.cell(warmup=0)
    for warmup in (1, 2, 5):
        plan.cell(warmup=warmup, steady=(5.0, 10.0, 2.5))
    plan.write(tmp_path)
    told = found(Tables(tmp_path, made.STUDIES))["how much warm-up is needed"]
    assert told.finding.numbers["ratio"].value == pytest.approx(1610.5 / 350, rel=0.01)
    assert told.finding.numbers["excess"].value == pytest.approx(1250, rel=0.01)


# Tables ---------------------------------------------------------------------------------------------------------------


def test_a_step_that_ran_out_shows_what_it_reached_not_what_fitted_before():
    ran_out = {"status": "oom", "reached_bytes": 76.0, "peak_allocated_bytes": 63.0}
    assert reached(ran_out) == 76 and reached(ran_out | {"status": "ok"}) == 63
    assert reached(ran_out | {"reached_bytes": None}) == 63


def test_the_largest_ladder_is_that_of_the_most_parameters_and_tokens(tmp_path):
    rungs = [*synthetic_ladder.chain("medium", 128), *synthetic_ladder.chain("small", 128)]
    one = largest_ladder(Machine(made.write(tmp_path, rungs=rungs)))
    assert (one.size, one.context) == ("medium", 128)


def test_below_the_ladder_stands_why_rungs_cannot_be_had(tmp_path):
    rungs = synthetic_ladder.chain()
    why = "no compiler was found. Install gcc."
    lost = [synthetic_ladder.without_step(each, "unsupported", why, both=True) for each in rungs[5:]]
    notes = ladder_table(Machine(made.write(tmp_path, rungs=[*rungs[:5], *lost]))).notes
    names = [row["name"] for row in largest_ladder(Machine(made.write(tmp_path / "b", rungs=rungs))).rungs[5:]]
    assert f"n/a ({', '.join(names[:-1])} and {names[-1]}): no compiler was found." in notes
    assert notes[-1] == "n/a: not possible, for the reason above."


def test_the_best_is_at_the_longest_context_that_fits_and_a_tie_is_the_plainer(tmp_path):
    cell, mixed = synthetic_profile.cell(), synthetic_profile.cell("bf16")
    longer = {"context": 256}
    rows = [made.timed(cell, 5.0), made.timed(cell, 30.0, cell="a", **longer),
            made.timed(mixed, 29.5, cell="b", **longer), made.lost(cell, 512)]  # fmt: skip
    (tie,) = best_rows(Machine(made.write(tmp_path / "tie", timing=rows)))
    assert (tie["context"], tie["precision"]) == (256, "fp32")  # 1.7 %
    rows[2] = made.timed(mixed, 29.0, cell="b", **longer)
    (clear,) = best_rows(Machine(made.write(tmp_path / "clear", timing=rows)))
    assert (clear["context"], clear["precision"]) == (256, "bf16")  # 3.4 %


def test_of_many_sizes_the_largest_are_shown(tmp_path):
    rows = [made.timed(synthetic_profile.cell(), 5.0, size=f"s{at}", cell=f"c{at}", parameters=1000 + at)
            for at in range(MOST_ROWS + 2)]  # fmt: skip
    assert [row["size"] for row in best_rows(Machine(made.write(tmp_path, timing=rows)))] == [
        f"s{at}" for at in range(2, MOST_ROWS + 2)
    ]


# The report -----------------------------------------------------------------------------------------------------------


def test_it_opens_the_report_and_its_links_lead_to_the_data(tmp_path):
    tables = made.everything(tmp_path / "tables")
    (tmp_path / "figures").mkdir()
    for path in (golden.TEMPLATES / "snakemake_captions").glob("*.rst"):
        theme.write(lambda _tables: theme.empty("not drawn"), tables, tmp_path / "figures", path.stem)
    for name in ("fp32", "bf16"):
        theme.write(
            lambda _tables: theme.empty("not drawn"), tables, tmp_path / "figures", f"profile_cell_gpu_s_ctx128_{name}"
        )
    places = tables.folder, tmp_path / "figures", report_maker.ROOT / "report", tmp_path / "report"
    files = report(Request(made.STUDIES, *places, "Title", "snakemake", comparisons=("page_one",)))
    headings = re.findall(r"^#{2,3} (.*)$", files["report.md"], re.MULTILINE)
    assert headings[:4] == ["Summary", "What to change first", "What else to know", "What was reached"]
    ids = re.findall(r'<h2 id="([^"]+)"', files["data.html"])
    for page, pattern in (("index.html", r'<a href="data.html#([^"]+)">'), ("report.md", r"\(data.html#([^)]+)\)")):
        targets = re.findall(pattern, files[page])
        assert len(targets) >= 4 and set(targets) <= set(ids)


def test_what_disturbed_the_step_stands_beside_its_time(tmp_path):
    cells, timing = made.both(processes=3)
    plain = answer(Machine(made.write(tmp_path / "plain", cells, timing))).text
    assert " ms: " in plain and "(" not in plain.split(" ms: ")[0].split("bf16 takes")[1]
    timing[1] |= {"step_unsteady": True, "step_noisy": True, "slow_host": True}
    marked = answer(Machine(made.write(tmp_path / "marked", cells, timing))).text
    assert " ms (unsteady, slow host): " in marked and "In fp32 it takes" in marked
    timing[0] |= {"step_noisy": True}
    marked = answer(Machine(made.write(tmp_path / "noisy", cells, timing))).text
    assert " ms (noisy), " in marked.split("In fp32 it takes")[1]


# What ran, and what not to trust --------------------------------------------------------------------------------------


def test_the_strip_and_the_doubts_are_of_the_pages_machine(tmp_path):
    def change(frames):
        timing = frames["timing"]
        first = timing["hardware"] == timing["hardware"][0]
        for name in [name for name in timing if name.endswith("_noisy")]:
            timing[name] = False
        timing["throttle"] = ""
        timing.loc[timing.index[0], "step_noisy"] = timing.loc[~first, "step_noisy"] = True
        timing.loc[timing.index[1], "throttle"] = "power cap"

    tables = Tables(synthetic.write("two", tmp_path, change), ["timing"])
    own = section.context(tables)
    strip = dict(own["strip"])
    assert strip["Machine"].endswith("; not on this page: nvidia-a100-sxm4-40gb")
    timing = tables["timing"][tables["timing"]["hardware"] == "nvidia-h100-80gb-hbm3"]
    lost = (timing["status"] == "oom").sum()
    words = f"{len(timing) - lost} measured (1 noisy, 1 throttled), {lost} out of memory"
    assert strip["Cells"] == words
    assert own["doubts"] == [
        "Noisy: 1 cell. Read the interval, not the median.",
        "Throttled, at lowered clocks: 1 cell.",
    ]


def test_of_the_figure_a_step_that_is_noisy_counts_not_a_phase(tmp_path):
    cells, timing = made.both(processes=3)
    timing[0] |= {"step_noisy": False, "forward_noisy": True}
    timing[1] |= {"step_noisy": True, "forward_noisy": False}
    shown = section.context(made.write(tmp_path / "figure", cells, timing))
    assert shown["doubts"][0] == "Noisy: 1 of 2 bars of the figure. Read the interval, not the median."
    assert "(2 noisy" in dict(shown["strip"])["Cells"]
    assert "(± half its 95 % interval between processes; ~: noisy)" in shown["picture"].caption
    timing[1] |= {"step_noisy": False}
    assert "~" not in section.context(made.write(tmp_path / "steady", cells, timing))["picture"].caption

    made.write(tmp_path / "ladder", rungs=synthetic_ladder.chain())
    rows = pd.read_csv(tmp_path / "ladder" / "ladder.csv")
    rows["optimizer_noisy"] = rows.index < 3
    rows["step_noisy"] = rows.index == 2
    rows.to_csv(tmp_path / "ladder" / "ladder.csv", index=False)
    told = section.context(Tables(tmp_path / "ladder", made.STUDIES))["doubts"]
    assert "Noisy: 1 of 8 rungs of the ladder above. Read the interval, not the median." in told


def test_cells_are_counted_against_the_plan_where_some_are_missing(tmp_path):
    def change(frames):
        frames["timing"].loc[frames["timing"].index[-1], "status"] = "missing"

    tables = Tables(synthetic.write("h100", tmp_path, change), ["timing"])
    measured, every = (tables["timing"]["status"] == "ok").sum(), len(tables["timing"])
    assert dict(section.context(tables)["strip"])["Cells"].startswith(f"{measured} of {every} measured")


def test_a_single_process_and_studies_that_disagree_are_told(tmp_path):
    cells, timing = made.both()
    alone = section.context(made.write(tmp_path / "alone", cells, timing))["doubts"]
    assert alone == ["One process measured each timing cell: no ratio has an interval or a verdict."]
    # The ladder takes 40 ms for its first rung, and here the timing study 80 for the same.
    row = made.timed(cells[0], 80.0, 3, size="small", cell="gpu/timing/small/ctx128/fp32", step_spread=0.005)
    (told,) = section.context(made.write(tmp_path / "both", timing=[row], rungs=synthetic_ladder.chain()))["doubts"]
    assert told == (
        "Studies that measured the same disagree in 1 of 1 comparisons, most in small at 128 in fp32: the ladder "
        "study's time is 0.50 times the timing study's. Compare within one."
    )


def test_without_any_cell_there_is_no_page(tmp_path):
    assert not section.applies(Tables(tmp_path, made.STUDIES))
    assert section.applies(made.write(tmp_path, timing=[made.timed(synthetic_profile.cell(), 5.0)]))
