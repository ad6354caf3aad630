"""Readings of a GPU that is made up."""

import sys
import types

import pynvml as real
import pytest
from stepscope.measure import telemetry
from stepscope.measure.telemetry import Telemetry

EMPTY = {"sm_clock_mhz": None, "power_w": None, "temperature_c": None}


@pytest.fixture
def now(monkeypatch):
    """The time, set by the test."""
    time = types.SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(telemetry, "time", types.SimpleNamespace(monotonic=lambda: time.seconds))
    return time


@pytest.fixture
def card(monkeypatch):
    """A GPU whose readings the test sets; a reading that is an exception is raised."""
    card = types.SimpleNamespace(
        clock=1980,
        milliwatts=412_500,
        heat=61,
        reasons=0,
        processes=["one", "two"],
        used=3 * 2**30,
        limit=700_000,
        energy=5_000_250,
    )
    card.questions = 0

    class NVMLError(Exception):
        pass

    def ask(name):
        def answer(handle, *arguments, **_):
            card.questions += 1
            assert handle == "handle of GPU-1"
            value = getattr(card, name)
            if value == "denied":
                raise NVMLError(name)
            return value

        return answer

    fake = types.SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlMemory_v2=2,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: f"handle of {uuid}",
        nvmlDeviceGetClockInfo=lambda handle, kind: (
            ask("clock")(handle) if kind == real.NVML_CLOCK_SM else 1
        ),
        nvmlDeviceGetPowerUsage=ask("milliwatts"),
        nvmlDeviceGetTemperature=ask("heat"),
        nvmlDeviceGetCurrentClocksThrottleReasons=ask("reasons"),
        nvmlDeviceGetComputeRunningProcesses=ask("processes"),
        nvmlDeviceGetEnforcedPowerLimit=ask("limit"),
        nvmlDeviceGetTotalEnergyConsumption=ask("energy"),
        nvmlDeviceGetMemoryInfo=lambda handle, version: types.SimpleNamespace(
            used=ask("used")(handle)
        ),
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return card


def test_readings_are_in_the_units_of_their_names(card, now):
    found = Telemetry("GPU-1")
    assert found.read() == {"sm_clock_mhz": 1980, "power_w": 412.5, "temperature_c": 61}
    assert found.processes() == 2
    assert found.memory_used() == 3 * 2**30
    assert found.limits() == {"power_limit_w": 700.0}
    assert found.energy() == 5000.25


def test_a_reading_is_kept_for_a_tenth_of_a_second(card, now):
    found = Telemetry("GPU-1")
    found.read()
    asked, card.clock, card.reasons = card.questions, 1000, real.nvmlClocksEventReasonSwPowerCap
    now.seconds += 0.099
    assert found.read()["sm_clock_mhz"] == 1980
    assert card.questions == asked
    now.seconds += 0.002
    assert found.read()["sm_clock_mhz"] == 1000
    assert found.throttle() == ["power cap"]


@pytest.mark.parametrize(
    "reason, name",
    {
        real.nvmlClocksEventReasonGpuIdle: None,
        real.nvmlClocksEventReasonApplicationsClocksSetting: None,
        real.nvmlClocksEventReasonSyncBoost: None,
        real.nvmlClocksEventReasonSwPowerCap: "power cap",
        real.nvmlClocksThrottleReasonHwSlowdown: "hardware slowdown",
        real.nvmlClocksEventReasonSwThermalSlowdown: "software thermal slowdown",
        real.nvmlClocksThrottleReasonHwThermalSlowdown: "hardware thermal slowdown",
        real.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: "hardware power brake",
    }.items(),
)
def test_what_slows_the_card_down_is_named_as_nvml_numbers_it(reason, name, card, now):
    card.reasons = reason
    found = Telemetry("GPU-1")
    assert found.throttle() == []
    found.read()
    assert found.throttle() == ([name] if name else [])


def test_reasons_of_all_readings_are_kept(card, now):
    found = Telemetry("GPU-1")
    for card.reasons in (
        real.nvmlClocksEventReasonSwThermalSlowdown,
        "denied",
        real.nvmlClocksEventReasonSwPowerCap,
        0,
    ):
        now.seconds += 1
        found.read()
    assert found.throttle() == ["power cap", "software thermal slowdown"]


@pytest.mark.parametrize(
    "denied, key", [("clock", "sm_clock_mhz"), ("milliwatts", "power_w"), ("heat", "temperature_c")]
)
def test_a_question_that_the_card_does_not_answer_leaves_the_others(denied, key, card, now):
    setattr(card, denied, "denied")
    reading = Telemetry("GPU-1").read()
    assert [name for name, value in reading.items() if value is None] == [key]


def test_what_the_driver_denies_is_none(card, now):
    card.processes = card.used = card.limit = card.energy = "denied"
    found = Telemetry("GPU-1")
    assert (found.processes(), found.memory_used(), found.limits()) == (
        None,
        None,
        {"power_limit_w": None},
    )
    assert found.energy() is None


@pytest.mark.parametrize("reason", ["no NVML", "no such GPU", "a CPU"])
def test_without_nvml_every_reading_is_empty(reason, card, monkeypatch):
    def refuse(uuid):
        raise sys.modules["pynvml"].NVMLError(uuid)

    if reason == "no NVML":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(sys.modules["pynvml"] or real, "nvmlDeviceGetHandleByUUID", refuse)
    found = Telemetry(None if reason == "a CPU" else "GPU-1")
    assert found.read() == EMPTY
    assert found.throttle() == []
    assert (found.processes(), found.memory_used(), found.limits()) == (
        None,
        None,
        {"power_limit_w": None},
    )
    assert found.energy() is None
