"""What a job finds where it starts."""

import pytest
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
    with pytest.raises(ValueError, match=r"says nothing of old; start the run again"):
        arrival.read("old", path)


@pytest.mark.parametrize("text", [None, "", "[]", '{"h100": {"gpu": 1}}'])
def test_what_cannot_be_read_is_one_line(text, path):
    if text is not None:
        path.write_text(text)
    with pytest.raises(
        ValueError, match=rf"^{path} says nothing of h100; start the run again where it began$"
    ):
        arrival.read("h100", path)


def test_the_type_of_the_machine(monkeypatch):
    expected = Hardware("h100", "cuda", 1, expect="h100")
    arrival.check_type(expected, "NVIDIA H100 80GB HBM3")
    with pytest.raises(
        ValueError, match=r"hardware.h100 runs on Tesla T4, but the entry expects 'h100'; correct"
    ):
        arrival.check_type(expected, "Tesla T4")
    with pytest.raises(ValueError, match=r"^this job of hardware.h100 sees no NVIDIA GPU; check"):
        arrival.check_type(expected, None)
    monkeypatch.setattr(identity, "cpu_name", lambda: "AMD EPYC")
    arrival.check_type(Hardware("node", "cpu", 2, expect="epyc"), None)
    with pytest.raises(ValueError, match="runs on AMD EPYC, but the entry expects 'Xeon'"):
        arrival.check_type(Hardware("node", "cpu", 2, expect="Xeon"), None)
