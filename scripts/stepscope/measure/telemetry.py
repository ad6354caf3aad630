"""What NVML says of the GPU while it measures: clock, power, temperature, throttling, other
processes.

Only reads; never changes a setting of the card.
"""

import contextlib
import time

READINGS = ("sm_clock_mhz", "power_w", "temperature_c")
_EVERY = 0.1  # seconds between two readings: asking takes the driver milliseconds
# nvmlClocksEventReasons of nvml.h that slow the card down (not: idle, or clocks that an
# administrator set).
_THROTTLE_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


class Telemetry:
    """Readings of one GPU, by UUID; without NVML every reading is empty."""

    def __init__(self, uuid: str | None):
        self._handle = None
        self._reasons = 0
        self._last: dict[str, float | None] = dict.fromkeys(READINGS)
        self._read_at = -_EVERY
        if uuid is None:
            return
        with contextlib.suppress(
            Exception
        ):  # no NVML, or a driver that denies it: measuring goes on without
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            self._nvml = pynvml

    def read(self) -> dict[str, float | None]:
        """SM clock in MHz, power in W, temperature in °C, at most 0.1 s old; each None where the
        card does not tell."""
        if self._handle is None or time.monotonic() - self._read_at < _EVERY:
            return dict(self._last)
        nvml = self._nvml
        self._reasons |= self._ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        self._last = {
            "sm_clock_mhz": self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            "power_w": self._thousandth("nvmlDeviceGetPowerUsage"),
            "temperature_c": self._ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        }
        self._read_at = time.monotonic()
        return dict(self._last)

    def throttle(self) -> list[str]:
        """Names of what slowed the card down in any reading so far."""
        return [name for bit, name in _THROTTLE_REASONS.items() if self._reasons & bit]

    def processes(self) -> int | None:
        """Number of processes that compute on the GPU now."""
        found = self._ask("nvmlDeviceGetComputeRunningProcesses")
        return None if found is None else len(found)

    def memory_used(self) -> int | None:
        """Bytes of the GPU's memory that processes hold now, what the driver keeps for itself not
        counted."""
        with contextlib.suppress(Exception):  # an old NVML has no such version
            return self._nvml.nvmlDeviceGetMemoryInfo(
                self._handle, version=self._nvml.nvmlMemory_v2
            ).used
        return None

    def energy(self) -> float | None:
        """Joules that the card has used since the driver was loaded; None where it does not count
        them."""
        return self._thousandth("nvmlDeviceGetTotalEnergyConsumption")

    def limits(self) -> dict:
        """The card's power limit in W, None where it does not tell."""
        return {"power_limit_w": self._thousandth("nvmlDeviceGetEnforcedPowerLimit")}

    def close(self) -> None:
        """Let go of NVML, before processes are forked that open it themselves."""
        if self._handle is not None:
            self._handle = None
            with contextlib.suppress(Exception):
                self._nvml.nvmlShutdown()

    def _thousandth(self, question: str) -> float | None:
        found = self._ask(question)
        return None if found is None else found / 1000

    def _ask(self, question: str, *arguments):
        if self._handle is None:
            return None
        try:
            return getattr(self._nvml, question)(self._handle, *arguments)
        except self._nvml.NVMLError:
            return None
