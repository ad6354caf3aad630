"""Joins and attribution on synthetic exports; expected numbers are worked out by hand. Times in
nanoseconds."""

import numpy as np
import pandas as pd
import pytest
from nsys_exports import DOMAIN, MARK, START_END, analyse, attributed, modules, thread, totals
from pytest import approx
from stepscope.trace import cautions
from stepscope.trace.nesting import latest_before, nest

MAIN, OTHER = thread(1), thread(1, 5)


def kernels_of(tables):
    """Phase → kernels in the whole trace."""
    return totals(tables, "kernels")


def test_a_launch_on_a_boundary_belongs_to_what_starts_there(export):
    """A range holds its start and not its end."""
    export.range("step", 0, 100)
    export.range("forward", 10, 50)
    export.range("part", 20, 30)
    export.range("backward", 50, 90)
    export.launches(9, 10, 19, 20, 29, 30, 49, 50, 89, 90, 99, 100)
    tables = analyse(export)
    assert kernels_of(tables) == {"step": 11, "forward": 6, "backward": 2}
    assert modules(tables)["kernels"].to_dict() == {"part": 2}


def test_correlation_ids_repeat_across_processes(export):
    for pid, phase in ((1, "forward"), (2, "backward")):
        export.correlation = 0
        export.range(phase, 0, 100, thread(pid))
        for at in (10, 20):
            export.launch("k", at, at + 10, at + 10 + pid, pid=pid, device=pid - 1)
    times = totals(analyse(export), "gpu_time")
    assert times == approx({"forward": 2e-9, "backward": 4e-9})


def test_an_id_that_is_used_again_joins_the_latest_call_before_the_operations_end(export):
    """Three calls with one number, each with a kernel of its own."""
    export.range("forward", 0, 100)
    export.range("backward", 100, 200)
    for at in (10, 110, 150):
        export.call(at, at + 5, correlation=7)
        export.kernel("k", at + 10, at + 20, 7)
    assert kernels_of(analyse(export)) == {"forward": 1, "backward": 2}


def test_latest_before_agrees_with_a_plain_search():
    draw = np.random.default_rng(0)
    keys, times = draw.integers(0, 5, 200), draw.integers(0, 50, 200)
    wanted, until = draw.integers(-1, 7, 300), draw.integers(-5, 55, 300)
    tables = (
        pd.DataFrame({"key": key, "time": time}) for key, time in ((keys, times), (wanted, until))
    )
    found = latest_before(*tables)
    for key, limit, at in zip(wanted, until, found, strict=True):
        own = times[keys == key]
        if not len(own):
            assert at == -1
        else:
            assert keys[at] == key
            assert times[at] == max(own[own <= limit], default=own.min())


def nest_one_by_one(ranges, times):
    """(parents, innermost) by asking each range; ranges: (start, end), outer before inner."""
    parents, crossing = [], []

    def around(time):
        held = (j for j, one in enumerate(crossing) if not one)
        return [j for j in held if ranges[j][0] <= time < ranges[j][1]]

    for start, end in ranges:
        outer = around(start)[-1:]
        crossing.append(any(end > ranges[j][1] for j in outer))
        parents.append(-1 if crossing[-1] else max(outer, default=-1))
    return parents, [max(around(time), default=-1) for time in times]


@pytest.mark.parametrize("seed", range(30))
def test_nesting_agrees_with_asking_each_range(seed):
    draw = np.random.default_rng(seed)
    pairs = np.sort(draw.integers(0, 40, (12, 2)), axis=1)
    pairs = pairs[np.lexsort((-pairs[:, 1], pairs[:, 0]))]
    times = draw.integers(-2, 42, 30)
    ranges = pd.DataFrame({"start": pairs[:, 0], "end": pairs[:, 1], "thread": 3, "nested": True})
    found = nest(ranges, np.full(len(times), 3), times, np.full(len(times), True))
    expected = nest_one_by_one(pairs.tolist(), times.tolist())
    assert [part.tolist() for part in found] == [*expected]


def test_a_graph_launch_launches_many_kernels(export):
    export.range("step", 0, 100)
    launched = export.call(10, 20, name="cudaGraphLaunch_v10000")
    for start in (30, 40, 50, 60):
        export.kernel("k", start, start + 5, launched, node=start)
    whole = export.call(50, 60, name="cudaGraphLaunch_v10000")
    export.graph(200, 290, whole)
    tables = analyse(export)
    assert kernels_of(tables) == {"step": 4}
    assert totals(tables, "gpu_time") == approx({"step": 110e-9})
    assert list(tables["phases"]["memory_operations"]) == [0]
    # The delay is that of a launch, not of each node: 30 - 20 and 200 - 60.
    assert tables["gaps"].iloc[-1]["queue_delay_median"] == approx(75e-9)


def test_crossing_ranges_of_two_domains_and_start_end_ranges(export):
    export.range("step", 0, 100)
    export.range("a", 10, 40)
    export.range("b", 20, 60, domain=1)  # crosses a
    export.range("inside a", 25, 30)
    export.range("epoch", 5, 95, kind=START_END)
    export.range("library", 0, 0, kind=DOMAIN)
    export.range("mark", 50, None, kind=MARK)
    export.launches(15, 27, 35, 50)
    ranges = modules(analyse(export))
    assert ranges["kernels"].to_dict() == {"a": 3, "b": 3, "inside a": 1, "epoch": 4}
    assert ranges["parent"].to_dict() == {"a": "step", "b": "", "inside a": "a", "epoch": ""}


def test_start_end_phases_hold_what_any_thread_launches(export):
    """A start-end range is no thread's own (NVTX)."""
    export.range("forward", 0, 100, kind=START_END)
    export.launches(10, tid=OTHER)
    export.launches(20)
    assert kernels_of(analyse(export)) == {"forward": 2}


def test_a_range_cut_off_by_the_end_lasts_to_the_last_event(export):
    """As ranges that are open when a recording ends."""
    export.range("step", 0, 100)
    export.range("step", 100, None)
    export.range("forward", 110, None)
    export.launch("k", 120, 130, 150)
    tables = analyse(export)
    assert kernels_of(tables) == {"step": 1, "forward": 1}
    assert totals(tables, "host_time") == approx({"step": 150e-9, "forward": 40e-9})


def test_phases_of_one_name_that_overlap_on_two_threads(export):
    export.range("forward", 0, 60)
    export.range("forward", 40, 100, OTHER)
    export.launches(10, 50, 80)
    export.launches(50, 70, 100, tid=OTHER)
    tables = analyse(export)
    assert kernels_of(tables) == {"forward": 5}
    assert totals(tables, "host_time") == approx({"forward": 120e-9})


def test_phases_in_phases_add_up(export):
    for zero in (0, 1000):
        export.range("step", zero, zero + 1000)
        export.range("forward", zero + 100, zero + 500)
        export.range("block", zero + 150, zero + 350)
        export.range("loss", zero + 400, zero + 450)
        export.launches(*(zero + at for at in (50, 120, 160, 410, 460, 600)), length=10)
    phases = analyse(export)["phases"].set_index("phase")
    assert phases["host_exclusive"].to_dict() == approx(
        {"step": 600e-9, "forward": 350e-9, "loss": 50e-9}
    )
    assert phases["gpu_time"].to_dict() == approx({"step": 60e-9, "forward": 40e-9, "loss": 10e-9})
    found = attributed(export)
    assert (found.durations.sum(), cautions.covered(found)) == (120, 1)


def test_times_may_be_negative_and_operations_unlinked(export):
    """An event may lie before the time that all are counted from."""
    export.range("step", -500, -1)
    export.launch("k", -400, -390, -380)
    export.kernel("alone", -50, -40, 999)
    export.fill(-30, -20, 998)
    tables = analyse(export)
    assert kernels_of(tables) == {"step": 1}
    found = attributed(export)
    assert not found.trace.ranges["cut"].any()
    assert found.durations[found.launch < 0].tolist() == [10, 10]
    # Busy counts what ran while the step was open: all three.
    busy = tables["gaps"].set_index("phase").loc["step"]
    assert busy[["busy", "wall"]].tolist() == approx([30e-9, 499e-9])


def test_without_known_phases_the_outermost_ranges_are_phases(export):
    """Phases that are given go before the outermost ranges; one that is absent is none."""
    for zero in (0, 100):
        export.range("turn", zero, zero + 100)
        export.range("inner", zero + 10, zero + 50)
        export.launches(zero + 20)
    assert kernels_of(analyse(export)) == {"turn": 2}
    assert kernels_of(analyse(export, ["inner", "turn"])) == {"turn": 2, "inner": 2}
    assert kernels_of(analyse(export, ["inner", "absent"])) == {"inner": 2}


def test_two_processes_with_a_gpu_each(export):
    # Data parallel: each process has 2 steps of 100 ns and is busy for 40 (process 1) or 60 ns
    # (process 2) in each.
    for pid, half in ((1, 20), (2, 30)):
        for zero in (0, 100):
            export.range("step", zero + pid, zero + 100 + pid, thread(pid))
            for at, start in ((10, 20), (15, 90 - half)):
                export.launch("k", zero + at, zero + start, zero + start + half, pid=pid)
        # each sees its own as number 0
        export.add("TARGET_INFO_CUDA_DEVICE", gpuId=pid - 1, cudaId=0, pid=pid)
    tables = analyse(export)
    step = tables["phases"].iloc[0]
    assert step[["kernels", "gpu_time", "host_time"]].tolist() == approx([2, 50e-9, 100e-9])
    busy = tables["gaps"].query("phase == 'step'").set_index("device")
    assert busy["wall"].to_dict() == approx({0: 100e-9, 1: 100e-9})
    assert busy["busy"].tolist() == approx([40e-9, 60e-9])
    assert busy["gap_median"].tolist() == approx([30e-9, 10e-9])
