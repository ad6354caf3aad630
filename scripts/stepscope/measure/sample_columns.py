"""Columns of samples.csv of the studies that run training steps, in their order. Standard library only."""

TRAINING = [
    "mode",
    "kind",
    "step",
    "phase",
    "warmup",
    "seconds",
    "event_seconds",
    "sm_clock_mhz",
    "power_w",
    "temperature_c",
]
