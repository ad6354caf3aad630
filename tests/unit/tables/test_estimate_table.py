"""estimate.csv: what a run writes down, and what of an earlier run stays."""

from stepscope.config.estimate import Estimate
from stepscope.config.grid import Cell
from stepscope.tables import estimate
from stepscope.tables.reader import Tables


def expected(name, seconds, peak=0):
    return Estimate(Cell(f"gpu/timing/{name}", "timing", "a", "p.py", {}), seconds, "same", peak, None, 5)


def test_rows_of_cells_that_are_measured_again_are_replaced_and_others_stay(tmp_path):
    names = [f"gpu/timing/{name}" for name in "abc"]
    assert estimate.read(tmp_path) == []
    estimate.write([expected("a", 1.5), expected("b", 2.0), expected("c", None)], names, tmp_path)
    estimate.write([expected("b", 3.0, peak=7)], names[:2], tmp_path)
    found = Tables(tmp_path, [])["estimate"]
    assert found[["cell", "expected_s"]].values.tolist() == [["gpu/timing/a", 1.5], ["gpu/timing/b", 3.0]]
    assert found["hardware"].tolist() == ["gpu", "gpu"] and found["peak_bytes"].tolist()[1] == 7.0
    (tmp_path / "estimate.csv").write_text("cell,other\nx,1\n")
    assert estimate.read(tmp_path) == []
