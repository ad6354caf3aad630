"""What a job finds where it starts, against what the run that submitted it knows. Standard library only."""

import json
from dataclasses import dataclass
from pathlib import Path

from stepscope.files import write_whole
from stepscope.machine import identity, labels
from stepscope.machine.labels import Hardware, is_expected


@dataclass(frozen=True)
class Expected:
    """A label's device, what its GPU's or CPU's name contains, its interpreter, and its newest record's identity."""

    device: str
    expect: str | None = None
    python: str | None = None
    identity: dict | None = None


def write(path: Path, machines: list[Hardware], seen: dict[str, dict[str, dict | None]]) -> None:
    """Write down what is known of each label, for the jobs to read; whole or not at all.

    `seen`: label → study → identity by the newest records.
    """
    content = {
        one.label: {
            "device": one.device,
            "expect": one.expect,
            "python": one.python,
            "identity": _common(seen.get(one.label, {})),
        }
        for one in machines
        if one.measured
    }
    write_whole({path: [json.dumps(content, indent=1, sort_keys=True) + "\n"]})


def _common(studies: dict[str, dict | None]) -> dict | None:
    found = next(filter(None, studies.values()), None)
    return found and {key: value for key, value in found.items() if key not in (labels.TOOLS, labels.PACKAGES)}


def read(path: Path, label: str) -> Expected:
    """What is known of a label. Raises ValueError, with one line, if that cannot be read."""
    try:
        return Expected(**json.loads(path.read_text())[label])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{path.absolute()} says nothing of {label}; start the run again where it began") from None


def check_type(label: str, expected: Expected, gpu: str | None) -> None:
    """Raise ValueError, with one line, if this machine is not of the label's type; `gpu` is the first one's name."""
    if expected.device == "cuda" and gpu is None:
        raise ValueError(
            f"this job of hardware.{label} sees no NVIDIA GPU; check what the entry asks Slurm for, and the node"
        )
    name = identity.cpu_name() if gpu is None else gpu
    if expected.expect and not is_expected(name, expected.expect):
        raise ValueError(
            f"this job of hardware.{label} runs on {name}, but the entry expects {expected.expect!r}; correct what "
            "it asks Slurm for (gpu_model, slurm_partition, constraint), or expect"
        )


def news(expected: Expected, found: dict) -> str | None:
    """In what this machine differs from the label's newest record, in words; None if in nothing, or there is none."""
    difference = expected.identity and labels.first_difference(found, expected.identity)
    return "{} is {!r}, and was {!r}".format(*difference) if difference else None
