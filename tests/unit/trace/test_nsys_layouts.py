"""One small program, as several versions of Nsight Systems export it (synthetic): the numbers are
the same."""

import pytest
from nsys_exports import HOST_TO_DEVICE, LAYOUTS, Export, analyse, attributed, thread
from pandas.testing import assert_frame_equal
from pytest import approx
from stepscope.trace import analysis

AUTOGRAD = thread(1, 9)
GEMM, ADD = "void gemm<float>(int)", "void add<float>(int)"


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
        export.launch(GEMM, zero + 160, zero + 170, zero + 200)
        export.launch(GEMM, zero + 450, zero + 460, zero + 500)
        export.launch(ADD, zero + 600, zero + 610, zero + 660, AUTOGRAD)
    return export


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_tells_the_same(layout, tmp_path):
    read = {}
    for name in ("2025.3", layout):
        path = program(LAYOUTS[name]).write(tmp_path / "trace.sqlite")
        read[name] = analysis.analyse(analysis.read(path))
    for name, table in read[layout].items():
        if name not in ("processes", "transfers"):  # not all layouts name the process
            assert_frame_equal(table, read["2025.3"][name])
    # Copy 10 ns, gemm 30 and 40 in forward, add 50 in backward: 130 ns a step.
    columns = ["phase", "gpu_time", "kernels", "memory_operations", "memory_time"]
    assert read[layout]["phases"][columns].to_numpy().tolist() == [
        ["step", approx(130e-9), 3, 1, 10e-9],
        ["forward", approx(80e-9), 2, 1, 10e-9],
        ["backward", approx(50e-9), 1, 0, 0],
    ]
    kernels = read[layout]["kernels"]
    assert set(kernels["full_name"]) == {GEMM, ADD, "[CUDA memcpy Host-to-Device]"}


def test_a_tables_absence_says_that_nothing_was_recorded():
    export = program(LAYOUTS["2025.3"])
    del export.rows["NVTX_EVENTS"]
    tables = analyse(export)
    assert tables["phases"].empty and tables["timeline"].empty
    assert set(tables["modules"]["kind"]) == {"call"}
    assert set(tables["kernels"]["phase"]) == {"all"} and tables["kernels"]["calls"].sum() == 8
    export = program(LAYOUTS["2025.3"])
    del export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    found = attributed(export)
    assert (found.launch < 0).all() and found.durations.sum() == 260
    assert list(analyse(export)["phases"]["kernels"]) == [0, 0, 0]
