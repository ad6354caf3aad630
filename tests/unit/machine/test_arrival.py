"""What a job finds where it starts."""

from contextlib import nullcontext

import pytest
from common import one_line
from stepscope.machine import arrival, identity
from stepscope.machine.labels import Hardware

H100 = Hardware("h100", "cuda", 1, here=False, expect="H100", asked={"gpu_model": "h100"})
OLD = Hardware("old", "cuda", 1, here=False, measured=False)
NODE = Hardware("node", "cpu", 2, here=False, asked={"slurm_partition": "cpu"})


@pytest.fixture
def path(tmp_path):
    """Where a run writes down what it knows."""
    return tmp_path / "machines.json"


def test_what_is_written_is_read(path):
    arrival.write([H100, OLD, NODE], path)
    assert arrival.read("h100", path) == H100
    assert arrival.read("node", path) == NODE
    assert arrival.read("node", path).by_jobs
    assert "says nothing of old; start the run again" in one_line(
        ValueError, arrival.read, "old", path
    )


@pytest.mark.parametrize("text", [None, "", "[]", '{"h100": {"gpu": 1}}'])
def test_what_cannot_be_read_is_one_line(text, path):
    if text is not None:
        path.write_text(text)
    with pytest.raises(
        ValueError, match=rf"^{path} says nothing of h100; start the run again where it began$"
    ):
        arrival.read("h100", path)


@pytest.mark.parametrize(
    "device, expect, gpu, said",
    [
        ("cuda", "h100", "NVIDIA H100 80GB HBM3", None),
        ("cuda", "h100", "Tesla T4", "runs on Tesla T4, but the entry expects 'h100'; correct"),
        ("cuda", "h100", None, "^this job of hardware.here sees no NVIDIA GPU; check"),
        ("cpu", "epyc", None, None),
        ("cpu", "Xeon", None, "runs on AMD EPYC, but the entry expects 'Xeon'"),
    ],
)
def test_the_type_of_the_machine(device, expect, gpu, said, monkeypatch):
    monkeypatch.setattr(identity, "cpu_name", lambda: "AMD EPYC")
    refused = pytest.raises(ValueError, match=said) if said else nullcontext()
    with refused:
        arrival.check_type(Hardware("here", device, 1, expect=expect), gpu)
