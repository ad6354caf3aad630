"""A cell on a GPU keeps to a processor core of its own, also where the GPU is the only one."""

import pytest
from stepscope.machine import cores, gpus
from stepscope.measure import cell

GPU = gpus.Gpu("NVIDIA H200", "GPU-a", 143_771, "580.159.04")


@pytest.mark.parametrize(("device", "found"), [("cuda", [GPU]), ("cpu", [])])
def test_the_core_is_chosen_before_torch_is_imported(device, found, monkeypatch, tmp_path):
    class Enough(Exception):
        """Ends the frame where it would import torch."""

    asked = []
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path))
    monkeypatch.setattr(gpus, "visible_gpus", lambda: found)
    monkeypatch.setattr(cores, "keep_to", lambda *given: asked.append(given))
    monkeypatch.setattr(cell.process, "die_with_parent", lambda: None)
    monkeypatch.setattr(cell.process, "limit_time", lambda _minutes: None)

    def stop(_threads):
        raise Enough

    monkeypatch.setattr(cell.process, "set_environment", stop)
    spec = {"study": "timing", "threads": 1, "device": device, "precision": "fp32"}
    with pytest.raises(Enough), cell.Cell("time_step.py", spec, cell.Settings(None, 1.0), {}):
        pass
    if device == "cpu":
        assert asked == []
    else:
        ((command, uuid, uuids),) = asked
        assert (command[0], uuid, uuids) == ("scripts/time_step.py", "GPU-a", ["GPU-a"])
        assert command[command.index("--threads") + 1] == "1"
