"""The machines of a configuration, and what their jobs ask for."""

import re

import pytest
from common import one_line, picked
from configured import make_config
from stepscope.config import ConfigError
from stepscope.config.hardware import (
    asked_of_any,
    hardware_of,
    job_cpus,
    job_resources,
    limits,
    measured_pattern,
)
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
    "said, given",
    {
        (
            "baseline: there is no hardware 'd'; choose from x, or, for snakemake compare, give"
            " a results folder"
        ): {"hardware": {"x": {"gpu_model": "x"}}, "baseline": "d"},
        (
            "hardware: a and b would both be the machine at hand; give one of them measure:"
            " false, or say how"
        ): {"hardware": {"a": {}, "b": {"expect": "EPYC"}}},
        (
            "hardware: a is the machine at hand and b is measured by Slurm's jobs, but a run"
            " does one of the two"
        ): {"hardware": {"a": {}, "b": {"gpu_model": "b"}}},
        "hardware.a.python: a is the": {"hardware": {"a": {"python": "/x"}}},
        "threads: 5 is more than the processors of this machine; use at most 4": {"threads": 5},
        "hardware.a.threads: 5 is more ": {"hardware": {"a": {"threads": 5}}},
        (
            "hardware.h100: this machine is AMD EPYC 7B13, not the expected 'H100'; give the"
            " entry measure: "
        ): {"hardware": {"h100": {"expect": "H100"}}},
        "hardware.node: threads: auto means all": {
            "hardware": {"node": {"slurm_partition": "cpu", "device": "cpu"}}
        },
    }.items(),
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


@pytest.mark.parametrize(
    "entry",
    [
        {"threads": 3},
        {"threads": 4},
        {"threads": 5, "device": "cpu", "gpu_model": "x"},
        {"threads": 8, "device": "cpu", "slurm_partition": "cpu"},
    ],
)
def test_threads_of_an_entry_are_more_than_the_processors_of_this_machine_only_elsewhere(entry):
    assert hardware_of(make_config(hardware={"a": entry}))[0].threads == entry["threads"]


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
    asked = {"gpu_model": "h100", "slurm_account": "us", "exclusive": True, "slurm_extra": "--nice"}
    one = Hardware("h100", "cuda", 1, here=False, asked=asked)
    config = make_config(
        limits=[{"memory": 16, "cpus": 6}, {"size": ["2.7B"], "minutes": 40, "memory": 48}]
    )
    found = {
        key: value
        for key, value in job_resources(one, config, "timing", "2.7B").items()
        if value is not None
    }
    assert found == {
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
    assert [job_resources(one, config, "timing", "nano")["gpu"] for one in (gpu, cpu)] == [1, 0]
    found = job_resources(gpu, config, "timing", "nano")
    assert found["runtime"] == found["minutes"] == config["timing"]["time_limit"]


def test_a_wildcard_matches_labels_that_are_measured():
    machines = [Hardware("a.b", "cuda", 1), Hardware("a", "cuda", 1, here=False, measured=False)]
    path = re.compile(rf"results/(?P<hardware>{measured_pattern(machines)})/timing")
    assert path.fullmatch("results/a.b/timing") and path.fullmatch("results/ab/timing")
    assert not path.fullmatch("results/a/timing")


@pytest.mark.parametrize(
    "entry", [{"gpu": 1}, {"measure": "no"}, {"threads": 0}, {"device": "tpu"}, {"expect": ""}]
)
def test_a_wrong_entry_is_one_line(entry):
    with pytest.raises(ConfigError, match=r"^config key hardware\.x.*[^\n]*$"):
        make_config(hardware={"x": entry})


def test_rules_name_the_resources_that_some_machine_asks_for():
    """One that none asks for would hide what a profile's default-resources say of it."""
    here = Hardware("a", "cuda", 1)
    assert asked_of_any([here]) == ["gpu", "minutes", "runtime"]
    jobs = [
        Hardware("b", "cuda", 1, here=False, asked={"constraint": "x"}),
        Hardware("c", "cuda", 1, here=False, asked={"gpu_model": "y", "exclusive": True}),
    ]
    assert asked_of_any([*jobs, here]) == [
        "gpu",
        "minutes",
        "runtime",
        "mem_mb",
        "gpu_model",
        "constraint",
        "slurm_extra",
    ]


def test_a_cell_on_several_devices_asks_for_as_many_gpus():
    one = Hardware("h100", "cuda", 1, here=False, asked={"gpu_model": "h100"}, gpus=4)
    asked = [job_resources(one, make_config(), "parallel", "xl", devices) for devices in (1, 2, 4)]
    assert picked(asked, "gpu") == [1, 2, 4]
    entry = {"gpu_model": "h100", "gpus": 4}
    assert hardware_of(make_config(hardware={"h100": entry}))[0].gpus == 4
