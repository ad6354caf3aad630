"""The precision study's cells."""

from configured import make_config
from stepscope.config.studies import PRECISION
from stepscope.machine.labels import Hardware


def test_a_cell_a_probe():
    probes = ["accumulation", "normalisation"]
    study = {"probes": probes, "time_limit": 5}
    found = PRECISION.cells(make_config() | {"precision": study}, Hardware("machine", "cpu", 3))
    assert [cell.name for cell in found] == [f"machine/precision/{probe}" for probe in probes]
    common = {"study": "precision", "precision": "fp32", "seed": 0, "threads": 3, "device": "cpu"}
    assert [cell.spec for cell in found] == [common | {"probe": probe} for probe in probes]
