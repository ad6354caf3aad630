"""One small program, as several versions of Nsight Systems export it (synthetic): the numbers are the same."""

import pytest
from nsys_exports import HOST_TO_DEVICE, LAYOUTS, Export, thread
from pandas.testing import assert_frame_equal
from stepscope.trace import analysis

MAIN, AUTOGRAD = thread(1), thread(1, 9)


def program(layout):
    """Two steps of 1000 ns: a copy and two kernels in forward, one kernel in backward by autograd's thread."""
    export = Export(layout)
    for step in range(2):
        zero = 5000 + 1000 * step
        export.range("step", zero, zero + 1000, MAIN)
        export.range("forward", zero + 100, zero + 500, MAIN, registered=True)
        export.range("attention", zero + 150, zero + 400, MAIN, registered=True)
        export.range("backward", zero + 500, zero + 900, MAIN)
        copied = export.call(zero + 110, zero + 115, MAIN, name="cudaMemcpyAsync_v3020")
        export.copy(HOST_TO_DEVICE, zero + 120, zero + 130, copied)
        export.launch("void gemm<float>(int)", zero + 160, zero + 170, zero + 200, MAIN)
        export.launch("void gemm<float>(int)", zero + 450, zero + 460, zero + 500, MAIN)
        export.launch("void add<float>(int)", zero + 600, zero + 610, zero + 660, AUTOGRAD)
    return export


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_tells_the_same(layout, tmp_path):
    read = {}
    for name in ("2025.3", layout):
        path = program(LAYOUTS[name]).write(tmp_path / "trace.sqlite")
        read[name] = analysis.analyse(analysis.read(path))
    for name, table in read[layout].items():
        if name not in ("checks", "busy"):  # they name the version and the devices
            assert_frame_equal(table, read["2025.3"][name])
    phases = read[layout]["phases"].set_index("phase")
    # Copy 10 ns, gemm 30 and 40 in forward, add 50 in backward: 130 ns a step.
    assert phases["gpu_ms_total"].to_dict() == pytest.approx({"step": 260e-6, "forward": 160e-6, "backward": 100e-6})
    assert phases["kernels_per_step"].to_dict() == {"step": 3, "forward": 2, "backward": 1}
    assert phases["memory_operations_total"].to_dict() == {"step": 2, "forward": 2, "backward": 0}
    assert phases["kernels_by_thread_rule_total"].to_dict() == {"step": 4, "forward": 4, "backward": 0}
    kernels = read[layout]["kernels"]
    assert set(kernels["full_name"]) == {"void gemm<float>(int)", "void add<float>(int)"}
    assert set(read[layout]["checks"].set_index("quantity").loc["layers"]) == {1}


def test_a_tables_absence_says_that_nothing_was_recorded(tmp_path):
    export = program(LAYOUTS["2025.3"])
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"):
        del export.rows[table]
    tables = analysis.analyse(analysis.read(export.write(tmp_path / "no_kernels.sqlite")))
    assert list(tables["phases"]["gpu_ms_total"]) == [0, 0, 0]
    assert tables["kernels"].empty and tables["categories"].empty and tables["busy"].empty
    assert len(tables["api_calls"]) == 2
    export = program(LAYOUTS["2025.3"])
    del export.rows["NVTX_EVENTS"]
    tables = analysis.analyse(analysis.read(export.write(tmp_path / "no_ranges.sqlite")))
    assert tables["phases"].empty and tables["ranges"].empty and tables["timeline"].empty
    assert set(tables["kernels"]["phase"]) == {"all"} and tables["kernels"]["instances"].sum() == 6
    export = program(LAYOUTS["2025.3"])
    del export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    tables = analysis.analyse(analysis.read(export.write(tmp_path / "no_calls.sqlite")))
    checks = tables["checks"].set_index("quantity")["value"]
    assert checks["kernels_not_linked_to_a_launch"] == 6 and checks["operations_not_linked_to_a_launch"] == 8
    assert checks["gpu_ms_not_linked_to_a_launch"] == pytest.approx(260e-6)
    assert list(tables["phases"]["kernels_total"]) == [0, 0, 0]
