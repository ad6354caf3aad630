"""The precision study's cells."""

import pytest
from stepscope.config import ConfigError
from stepscope.config.studies import PRECISION
from stepscope.machine.labels import Hardware

PROBES = ["accumulation", "autocast", "normalisation"]
STUDY = {"probes": PROBES, "size": "nano", "context": 64, "batch": 2, "time_limit": 5}


@pytest.fixture
def cells(make_config):
    return lambda **over: PRECISION.cells(
        make_config() | {"precision": STUDY | over}, Hardware("machine", "cpu", 3)
    )


def test_a_cell_a_probe_of_which_one_runs_the_model(cells):
    found = cells()
    assert [cell.name for cell in found] == [
        "machine/precision/accumulation",
        "machine/precision/autocast",
        "machine/precision/normalisation",
    ]
    common = {"study": "precision", "precision": "fp32", "seed": 0, "threads": 3, "device": "cpu"}
    model = {"d_model": 128, "d_ff": 512, "num_layers": 4, "num_heads": 4, "vocab_size": 10_000}
    assert found[0].spec == common | {"probe": "accumulation"}
    assert found[1].spec == common | {"probe": "autocast", **model, "context": 64, "batch": 2}
    assert [cell.size for cell in found] == [None, "nano", None]
    assert cells(probes=["normalisation"]) == found[2:3]


def test_an_unknown_size_is_one_line(cells):
    with pytest.raises(
        ConfigError,
        match=r"^config key precision\.size: there is no size 'huge'; .* nano, ",
    ):
        cells(size="huge")
