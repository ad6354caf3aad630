"""One small program, as several versions of Nsight Systems export it (synthetic): the numbers are
the same."""

import pytest
from nsys_exports import HOST_TO_DEVICE, LAYOUTS, Export, thread
from pandas.testing import assert_frame_equal
from stepscope.trace import analysis
from stepscope.trace.attribution import attribute

MAIN, AUTOGRAD = thread(1), thread(1, 9)


def program(layout):
    """Two steps of 1000 ns: a copy and two kernels in forward, one kernel in backward by autograd's
    thread."""
    export = Export(layout)
    for step in range(2):
        zero = 5000 + 1000 * step
        export.range("step", zero, zero + 1000)
        export.range("forward", zero + 100, zero + 500, registered=True)
        export.range("attention", zero + 150, zero + 400, registered=True)
        export.range("backward", zero + 500, zero + 900)
        copied = export.call(zero + 110, zero + 115, name="cudaMemcpyAsync_v3020")
        export.copy(HOST_TO_DEVICE, zero + 120, zero + 130, copied)
        export.launch("void gemm<float>(int)", zero + 160, zero + 170, zero + 200)
        export.launch("void gemm<float>(int)", zero + 450, zero + 460, zero + 500)
        export.launch("void add<float>(int)", zero + 600, zero + 610, zero + 660, AUTOGRAD)
    return export


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_tells_the_same(layout, tmp_path):
    read = {}
    for name in ("2025.3", layout):
        path = program(LAYOUTS[name]).write(tmp_path / "trace.sqlite")
        read[name] = analysis.analyse(analysis.read(path))
    for name, table in read[layout].items():
        if name not in ("gaps", "processes", "transfers"):  # they name the devices
            assert_frame_equal(table, read["2025.3"][name])
    phases = read[layout]["phases"].set_index("phase")
    # Copy 10 ns, gemm 30 and 40 in forward, add 50 in backward: 130 ns a step.
    assert phases["gpu_time"].to_dict() == pytest.approx(
        {"step": 130e-9, "forward": 80e-9, "backward": 50e-9}
    )
    assert phases["kernels"].to_dict() == {"step": 3, "forward": 2, "backward": 1}
    assert phases["memory_operations"].to_dict() == {"step": 1, "forward": 1, "backward": 0}
    copied = {"step": 10e-9, "forward": 10e-9, "backward": 0}
    assert phases["memory_time"].to_dict() == pytest.approx(copied)
    kernels = read[layout]["kernels"]
    assert set(kernels["full_name"]) == {
        "void gemm<float>(int)",
        "void add<float>(int)",
        "[CUDA memcpy Host-to-Device]",
    }
    assert set(kernels["layers"].dropna()) == {1}


def test_a_tables_absence_says_that_nothing_was_recorded(tmp_path):
    export = program(LAYOUTS["2025.3"])
    del export.rows["NVTX_EVENTS"]
    tables = analysis.analyse(analysis.read(export.write(tmp_path / "no_ranges.sqlite")))
    assert (
        tables["phases"].empty
        and tables["timeline"].empty
        and set(tables["modules"]["kind"]) == {"call"}
    )
    assert set(tables["kernels"]["phase"]) == {"all"} and tables["kernels"]["calls"].sum() == 8
    export = program(LAYOUTS["2025.3"])
    del export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    found = attribute(analysis.read(export.write(tmp_path / "no_calls.sqlite")))
    assert (found.launch < 0).all() and found.durations.sum() == 260
    assert list(analysis.analyse(found.trace)["phases"]["kernels"]) == [0, 0, 0]
