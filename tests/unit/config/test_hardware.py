"""The machines of a configuration, and what their jobs ask for."""

import pytest
from common import one_line, picked
from configured import make_config
from stepscope.config import ConfigError
from stepscope.config.hardware import (
    hardware_of,
    job_cpus,
    job_resources,
    limits,
)
from stepscope.machine.identity import MachineError
from stepscope.machine.labels import Hardware

pytestmark = pytest.mark.usefixtures("no_gpu")


def refusal(**given):
    return one_line(ConfigError, lambda: hardware_of(make_config(**given)))


def test_without_entries_there_is_the_machine_at_hand():
    assert hardware_of(make_config()) == [Hardware("amd-epyc-7b13", "cpu", 3)]
    assert hardware_of(make_config(threads=3))[0].threads == 3


def test_an_entry_that_slurm_is_asked_for_is_not_at_hand():
    entries = {
        "h100": {"gpu_model": "h100", "slurm_partition": "gpu", "expect": "H100"},
        "t4": {"constraint": "t4"},
    }
    first, second = hardware_of(make_config(hardware=entries))
    assert first == Hardware(
        "h100",
        "cuda",
        1,
        here=False,
        expect="H100",
        asked={"gpu_model": "h100", "slurm_partition": "gpu"},
    )
    assert (second.label, second.by_jobs, second.asked) == ("t4", True, {"constraint": "t4"})


def test_the_baseline_comes_first():
    entries = {name: {"gpu_model": name} for name in ("a", "b", "c")}
    labels = [one.label for one in hardware_of(make_config(hardware=entries, baseline="b"))]
    assert labels == ["b", "a", "c"]


@pytest.mark.parametrize(
    "given, said",
    [
        (
            {"hardware": {"x": {"gpu_model": "x"}}, "baseline": "d"},
            (
                "baseline: there is no hardware 'd'; choose from x, or, for snakemake compare, give"
                " a results folder"
            ),
        ),
        (
            {"hardware": {"a": {}, "b": {"expect": "EPYC"}, "c": {"measure": False}}},
            "hardware: a is the machine at hand, and a run measures nothing beside it, but a, b",
        ),
        (
            {"hardware": {"a": {}, "b": {"gpu_model": "b"}}},
            "hardware: a is the machine at hand, and a run measures nothing beside it, but a, b",
        ),
        (
            {"hardware": {"node": {"slurm_partition": "cpu", "device": "cpu"}}},
            "hardware.node: threads: auto means all",
        ),
    ],
)
def test_entries_that_cannot_be_are_one_line(given, said):
    found = refusal(**given)
    assert found.startswith(f"config key {said}")


def test_results_that_are_only_used_beside_the_machine_at_hand():
    entries = {"gpu": {"measure": False}, "laptop": {"expect": "epyc"}}
    gpu, laptop = hardware_of(make_config(hardware=entries))
    assert (gpu.device, gpu.measured, gpu.here, gpu.by_jobs) == ("cuda", False, False, False)
    assert (laptop.device, laptop.threads, laptop.here) == ("cpu", 3, True)


@pytest.mark.parametrize("label", ["tables", "slurm", "a\n", 65 * "a"])
def test_a_label_that_no_folder_can_have(label):
    found = refusal(hardware={label: {"gpu_model": "x"}})
    assert found.startswith("config key hardware: ") and "is not a usable name" in found


def test_another_machine_than_the_expected_is_one_line():
    assert one_line(
        MachineError, hardware_of, make_config(hardware={"h100": {"expect": "H100"}})
    ).startswith("config key hardware.h100: this machine is AMD EPYC")


def test_an_interpreter_of_its_own_is_one_of_jobs():
    (one,) = hardware_of(make_config(hardware={"a": {"python": "/x"}}))
    assert (one.by_jobs, one.python, one.device) == (True, "/x", "cuda")


def test_the_device_of_copied_results_is_that_of_their_records(tmp_path):
    config = make_config(hardware={"box": {"measure": False}})
    assert hardware_of(config, tmp_path)[0].device == "cuda"
    (tmp_path / "box/timing").mkdir(parents=True)
    (tmp_path / "box/timing/record.json").write_text('{"machine": {"device": "cpu"}}')
    assert hardware_of(config, tmp_path)[0].device == "cpu"


def test_the_last_limit_that_fits_holds():
    lines = [
        {"memory": 16, "cpus": 4},
        {"study": ["profile"], "memory": 32},
        {"size": ["2.7B"], "memory": 64},
    ]
    config = {"limits": lines, "timing": {"time_limit": 15}, "profile": {"time_limit": 20}}
    assert limits(config, "timing", "small")["memory"] == 16
    assert limits(config, "profile", None)["memory"] == 32
    found = limits(config, "profile", "2.7B")
    assert (found["memory"], found["minutes"]) == (64, 20)
    assert limits(config | {"limits": []}, "timing", "small")["cpus"] == 4


def test_what_a_job_asks_for():
    entry = {"gpu_model": "h100", "slurm_account": "us", "exclusive": True, "slurm_extra": "--nice"}
    config = make_config(
        hardware={"h100": entry},
        limits=[{"memory": 16, "cpus": 6}, {"size": ["2.7B"], "minutes": 40, "memory": 48}],
    )
    (one,) = hardware_of(config)
    assert job_resources(one, config, "timing", "2.7B") == {
        "gpu": 1,
        "gpu_model": "h100",
        "slurm_account": "us",
        "slurm_extra": "--nice --exclusive",
        "minutes": 40,
        "runtime": 45,
        "mem_mb": 48 * 1024,
    }
    assert (
        job_resources(one, config, "timing", "small")["minutes"] == config["timing"]["time_limit"]
    )
    assert job_cpus(one, config, "timing", "2.7B") == 6


def test_a_cpus_job_asks_for_no_gpu_and_for_all_its_threads():
    one = Hardware("node", "cpu", 8, here=False, asked={"slurm_partition": "cpu"})
    assert job_resources(one, make_config(), "timing", "nano")["gpu"] is None
    assert job_cpus(one, make_config(), "timing", "nano") == 8


def test_the_machine_at_hand_gives_a_gpu_cell_a_core_and_a_cpu_cell_all():
    gpu, cpu = Hardware("gpu", "cuda", 1), Hardware("cpu", "cpu", 1)
    config = make_config()
    assert [job_cpus(one, config, "timing", "nano") for one in (gpu, cpu)] == [1, 4]
    assert [job_resources(one, config, "timing", "nano")["gpu"] for one in (gpu, cpu)] == [1, None]


@pytest.mark.parametrize(
    "entry", [{"gpu": 1}, {"measure": "no"}, {"threads": 0}, {"device": "tpu"}, {"expect": ""}]
)
def test_a_wrong_entry_is_one_line(entry):
    with pytest.raises(ConfigError, match=r"^config key hardware\.x.*[^\n]*$"):
        make_config(hardware={"x": entry})


def test_a_cell_on_several_devices_asks_for_as_many_gpus():
    one = Hardware("h100", "cuda", 1, here=False, asked={"gpu_model": "h100"}, gpus=4)
    asked = [job_resources(one, make_config(), "parallel", "xl", devices) for devices in (1, 2, 4)]
    assert picked(asked, "gpu") == [1, 2, 4]
    entry = {"gpu_model": "h100", "gpus": 4}
    assert hardware_of(make_config(hardware={"h100": entry}))[0].gpus == 4
