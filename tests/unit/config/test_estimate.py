"""What cells are expected to cost, against numbers worked out by hand."""

import json
import statistics

import committed_example
import pytest
from stepscope.config import cost
from stepscope.config.estimate import (
    CEILINGS,
    FORMULA,
    SAME,
    SIMILAR,
    UNKNOWN,
    Estimate,
    Known,
    against,
    ceilings,
    estimates,
    has_fitted,
    is_whole,
    read_known,
    shares,
    total_seconds,
)
from stepscope.config.grid import Cell

SHAPE = {"d_model": 64, "d_ff": 256, "num_layers": 2, "num_heads": 2, "vocab_size": 1000}
SPEC = {
    **{"study": "warmup", **SHAPE, "context": 128, "batch": 4, "precision": "fp32"},
    **{"warmup": 1, "steps": 9, "seed": 0, "threads": 1, "device": "cuda"},
}
# Ten steps of two blocks that launches limit, 2.7 ms each, after 2 s of start.
SECONDS = 2 + 10 * 2 * 2.7e-3


def cell(name="warmup/a", **changed):
    spec = SPEC | changed
    return Cell(f"gpu/{name}", spec["study"], "a", "program.py", spec)


def record(spec, seconds, status="ok", **summary):
    return {
        "spec": spec,
        "summary": {"modes": {"step": {"status": status}}, **summary},
        "provenance": {"duration_s": seconds, "started": "2026-01-01T00:00:00+00:00", "hardware": {}},
        "machine": {"device": spec["device"], "gpu": "GPU"},
    }


def of_ceilings(precision, median, **changed):
    spec = {"study": "ceilings", "operation": "matmul", "order": 1000, "precision": precision}
    spec |= {"processes": 2, "threads": 1, "device": "cuda"} | changed
    return record(spec, 3.0, processes=[{"median": median / 2}, {"median": median * 2}])


def one(asked, records=(), **known):
    (found,) = estimates([asked], Known("cuda", dict(records), **known))
    return found


def test_nothing_known_is_the_formula():
    found = one(cell())
    assert (found.basis, found.seconds) == (FORMULA, pytest.approx(SECONDS))
    assert found.fits is None


def test_the_same_cell_takes_as_long_as_it_did():
    found = one(cell(), {"gpu/warmup/a": record(SPEC, 7.5)})
    assert (found.basis, found.seconds) == (SAME, 7.5)


def test_the_same_place_with_another_spec_is_only_similar():
    # 90 steps instead of 10: 2 + 9 x 10 x 5.4 ms, over 2 + 10 x 5.4 ms by the formula; it took twice the formula.
    found = one(cell(steps=89), {"gpu/warmup/a": record(SPEC, 2 * SECONDS)})
    assert (found.basis, found.seconds) == (SIMILAR, pytest.approx(2 * (2 + 90 * 2 * 2.7e-3)))


def test_work_grows_with_flop_where_the_arithmetic_limits():
    # At context 8192: 6 operations a weight and token, and 12 x 2 blocks x context x d_model a token.
    def operations(batch):
        weights = 2 * (4 * 64**2 + 3 * 64 * 256) + 64 * 1000
        return batch * 8192 * (6 * weights + 12 * 2 * 8192 * 64)

    def seconds(batch):
        return 2 + 10 * operations(batch) / 40e12

    assert operations(40) / 40e12 > 2 * 2.7e-3
    measured = record(SPEC | {"context": 8192, "batch": 40}, 10.0)
    found = one(cell(context=8192, batch=80), {"gpu/warmup/b": measured})
    assert found.seconds == pytest.approx(10.0 * seconds(80) / seconds(40))


@pytest.mark.parametrize(
    ("nearer", "farther"),
    [
        ({"precision": "bf16"}, {"d_model": 128, "precision": "bf16"}),  # its shape
        ({"d_model": 128}, {"d_model": 128, "precision": "bf16"}),  # its precision
        ({"steps": 10}, {"steps": 400}),  # as many steps
        ({"d_model": 128, "precision": "bf16"}, {"compile": "block"}),  # the same way
    ],
)
def test_the_nearest_record_is_taken(nearer, farther):
    records = {"gpu/warmup/far": record(SPEC | farther, 500.0), "gpu/warmup/near": record(SPEC | nearer, 50.0)}
    ratio = SECONDS / cost.spec_seconds(SPEC | nearer)
    assert one(cell(), records).seconds == pytest.approx(50.0 * ratio)


def test_other_studies_and_cells_that_ran_out_of_memory_say_nothing():
    records = {
        "gpu/memory/a": record(SPEC | {"study": "memory"}, 50.0),
        "gpu/warmup/b": record(SPEC | {"steps": 4}, 50.0, status="oom"),
    }
    assert one(cell(), records).basis == FORMULA


def test_measured_ceilings_scale_the_rates():
    # 2 x 1000^3 operations in the geometric mean of 2 s and 0.5 s times the median.
    assert ceilings([of_ceilings("fp32", 1e-3)]) == {"fp32": pytest.approx(2e12)}
    on_cpu = of_ceilings("fp32", 1e-3, threads=4, device="cpu")
    assert ceilings([on_cpu]) == {"fp32": pytest.approx(0.5e12)}
    large = cell(context=8192, batch=40)
    records = {"gpu/ceilings/matmul/fp32": of_ceilings("fp32", 2e9 / 25.5e12)}
    found = one(large, records)
    # Half of the example's ceiling in fp32: the steps take twice as long, the start as long.
    assert found.basis == CEILINGS
    assert found.seconds - 2 == pytest.approx(2 * (cost.seconds(large) - 2))


def test_a_precision_without_a_ceiling_is_scaled_as_the_others():
    found = cost.rates("cuda", {"fp32": 51e12 / 4, "bf16": 773e12 / 2})
    assert found.operations == pytest.approx({"fp32": 10e12, "tf32": 37.5e12, "bf16": 80e12, "fp16": 60e12})


def test_threads_of_a_processor_share_the_work():
    large = SPEC | {"context": 1024, "batch": 40, "device": "cpu"}
    at = cost.rates("cpu", {})
    assert cost.step_seconds(large, at) == pytest.approx(4 * cost.step_seconds(large | {"threads": 4}, at))


def test_a_model_of_unknown_shape_is_estimated_from_its_records_alone():
    spec = {key: value for key, value in SPEC.items() if key not in SHAPE} | {"model": "mine.py:Net"}
    asked = Cell("gpu/warmup/mine", "warmup", "mine", "program.py", spec)
    assert (one(asked).seconds, one(asked).basis, one(asked).peak) == (None, UNKNOWN, 0)
    assert one(asked, {"gpu/warmup/a": record(SPEC, 9.0)}).basis == UNKNOWN
    other = record(spec | {"model": "other.py:Net"}, 9.0)
    assert one(asked, {"gpu/warmup/other": other}).basis == UNKNOWN
    found = one(asked, {"gpu/warmup/mine/ctx64": record(spec | {"context": 64}, 9.0)})
    assert (found.seconds, found.basis) == (9.0, SIMILAR)
    assert one(cell(), {"gpu/warmup/mine": record(spec, 9.0)}).basis == FORMULA


def test_what_fits_is_known_from_the_record_else_from_the_closed_form():
    peak = one(cell()).peak
    # At least weights, gradients and two moments in fp32.
    weights = 2 * 64 * 1000 + 2 * (4 * 64**2 + 3 * 64 * 256 + 2 * 64) + 64
    assert peak > 16 * weights
    assert one(cell(), capacity=peak).fits is True
    assert one(cell(), capacity=peak - 1).fits is False
    assert one(cell(), {"gpu/warmup/a": record(SPEC, 1.0)}, capacity=1).fits is True
    assert one(cell(), {"gpu/warmup/a": record(SPEC, 1.0, status="oom")}, capacity=2**40).fits is False


def test_a_cell_that_will_not_fit_ends_as_it_starts():
    found = one(cell(), {"gpu/warmup/b": record(SPEC | {"steps": 4}, 50.0)}, capacity=1)
    assert (found.fits, found.seconds, found.basis) == (False, 2.0, FORMULA)


def test_a_timing_cell_that_will_not_fit_runs_the_modes_that_do():
    asked = cell("timing/a", study="timing", processes=2)
    inference = cost.peak_bytes(cell("timing/a", study="timing", mode="inference"))
    assert inference < cost.peak_bytes(cell("timing/a", study="timing", mode="forward"))
    # Two processes of 1.6 s, each with the ten steps of one mode instead of four.
    found = one(asked, capacity=inference)
    assert (found.fits, found.seconds) == (False, pytest.approx(2 * (1.6 + 10 * 2 * 2.7e-3)))
    assert one(asked, capacity=inference - 1).seconds == 1.6


def test_what_checkpoints_save_is_not_known():
    with_checkpoints = cell(checkpoint=1)
    assert one(with_checkpoints, capacity=1).fits is None
    assert one(with_checkpoints, capacity=2**40).fits is True


def test_each_cell_of_the_example_is_foretold_by_the_others():
    known = read_known(committed_example.MACHINE, "cuda", dict.fromkeys(cost.START), committed_example.results(), None)
    assert len(known.records) > 200
    expected, taken = [], []
    for name, measured in [*known.records.items()][::3]:
        others = {other: record for other, record in known.records.items() if other != name}
        asked = Cell(name, measured["spec"]["study"], None, "program.py", measured["spec"])
        found = one(asked, others, capacity=known.capacity)
        expected.append(found.seconds)
        taken.append(measured["provenance"]["duration_s"])
        assert found.fits in (None, has_fitted(measured)), name
    assert 0.8 < sum(expected) / sum(taken) < 1.25
    apart = [max(a / b, b / a) for a, b in zip(expected, taken, strict=True)]
    assert statistics.median(apart) < 1.3


def test_what_a_recording_takes_is_that_of_the_cell_then_of_the_nearest_then_a_rule():
    asked = cell("memory/a", study="memory")
    assert one(asked).recorded == 2 * 2**20
    assert one(cell()).recorded == 0
    near = {"gpu/memory/b": record(asked.spec | {"steps": 3}, 1.0)}
    assert one(asked, near, recorded={"gpu/memory/b": 700}).recorded == 700
    both = near | {"gpu/memory/a": record(asked.spec, 1.0)}
    assert one(asked, both, recorded={"gpu/memory/b": 700, "gpu/memory/a": 500}).recorded == 500


def test_statuses_are_found_wherever_they_stand():
    assert is_whole({"summary": {"series": [{"status": "ok"}, {"status": "ok"}]}})
    lost = {"summary": {"series": [{"status": "ok"}, {"status": "oom"}]}}
    assert not is_whole(lost) and not has_fitted(lost)
    assert has_fitted({"summary": {"status": "unsupported"}})


def made(seconds, basis=FORMULA):
    return Estimate(cell(), seconds, basis, 0, None, 0)


def test_cells_of_unknown_time_count_as_the_mean_of_the_others():
    assert total_seconds([made(10.0), made(20.0), made(None, UNKNOWN)]) == 45.0
    assert total_seconds([made(None, UNKNOWN)]) == 0.0
    found = shares([made(10.0), made(20.0, SAME), made(5.0), made(None, UNKNOWN)])
    assert [*found.items()] == [(SAME, (1, 20.0)), (FORMULA, (2, 15.0)), (UNKNOWN, (1, 0.0))]


def test_a_run_is_held_against_its_estimate():
    found = {"a": made(60.0), "b": made(60.0), "c": made(None, UNKNOWN)}
    assert against(found, {"a": 90.0, "b": 60.0}) == "2 cells took 2.5 min; the plan expected 2.0 min (1.25 times that)"
    assert against(found, {"a": 90.0, "c": 210.0}) == (
        "2 cells took 5.0 min; the plan expected 1.0 min for 1 of them (1.50 times that)"
    )
    assert against(found, {"c": 10.0}) == "1 cell took 10 s, of which nothing was expected"


def test_what_the_results_of_a_label_say_is_read_and_damaged_records_are_left_out(tmp_path):
    def write(name, content):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "record.json").write_text(json.dumps(content))

    good = record(SPEC | {"study": "memory"}, 5.0)
    good["provenance"]["hardware"]["gpu_memory_bytes"] = 80 * 2**30
    write("gpu/memory/a/ctx128/fp32", good)
    write("gpu/memory/a/ctx256/fp32", {"spec": 3})
    write("gpu/memory/a/ctx512/fp32", record({"study": "memory", "device": "cuda"}, 5.0))
    write("other/memory/a/ctx128/fp32", good)
    snapshot = tmp_path / "gpu/memory/a/ctx128/fp32/snapshot"
    snapshot.mkdir()
    (snapshot / "snapshot.pickle").write_bytes(bytes(300))
    (snapshot / "known.json").write_bytes(bytes(11))
    found = read_known("gpu", "cuda", {"memory": "snapshot", "timing": None}, tmp_path, None)
    name = "gpu/memory/a/ctx128/fp32"
    assert (set(found.records), found.recorded, found.capacity) == ({name}, {name: 311}, 80 * 2**30)
    assert read_known("new", "cuda", {"memory": "snapshot"}, tmp_path, None).records == {}
