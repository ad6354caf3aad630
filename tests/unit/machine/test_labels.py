"""What a cell's program knows of the machine that it should run on."""

from contextlib import nullcontext

import pytest
from stepscope.machine import gpus, identity, labels
from stepscope.machine.identity import MachineError
from stepscope.machine.labels import Hardware

H100 = Hardware("h100", "cuda", 1, here=False, expect="H100", asked={"gpu_model": "h100"})
NODE = Hardware("node", "cpu", 2, here=False, asked={"slurm_partition": "cpu"})


def test_what_a_run_tells_is_known(monkeypatch):
    monkeypatch.setenv(labels.TOLD, "")  # what is set is undone
    labels.tell([H100, NODE])
    assert [labels.told("h100"), labels.told("node")] == [H100, NODE]


@pytest.mark.parametrize(
    "device, expect, gpu, said",
    [
        ("cuda", "h100", "NVIDIA H100 80GB HBM3", None),
        ("cuda", "h100", "Tesla T4", "this machine is Tesla T4, not the expected h100; correct"),
        ("cuda", "", None, "^config key hardware.here: this machine is without a GPU, not"),
        ("cuda", "", "Tesla T4", None),
        ("cpu", "epyc", None, None),
        ("cpu", "Xeon", None, "this machine is AMD EPYC, not the expected Xeon"),
    ],
)
def test_the_type_of_the_machine(device, expect, gpu, said, monkeypatch):
    monkeypatch.setattr(identity, "cpu_name", lambda: "AMD EPYC")
    there = [gpus.Gpu(gpu, "GPU-1", 80, "580")] if gpu else []
    monkeypatch.setattr(gpus, "visible_gpus", lambda: there)
    refused = pytest.raises(MachineError, match=said) if said else nullcontext()
    with refused:
        Hardware("here", device, 1, expect=expect).check_type()
