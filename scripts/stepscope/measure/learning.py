"""One process of the learning study: each variant is trained from the same weights on the same
batches of bytes, which every process takes in an order of its own.

The text is what every machine has: the modules of Python's standard library, in the order of their
names. Of so many files one is held out. A byte is a token. The least that training has to reach is
the loss of one who knows how often each byte occurs, and nothing of what comes before it.
"""

import math
import sysconfig
from pathlib import Path

import torch
from torch import Tensor

from . import memory, models
from .found import Found
from .ladder import spec_of
from .steps import caught
from .telemetry import Telemetry
from .workload import Workload, workload

BYTES = 256  # different tokens
EVERY = 10  # of so many files the last is held out
EXAM = 32  # batches of what is held out
POINTS = 25  # of a curve at most: each the mean of as many steps


def measure(spec: dict, telemetry: Telemetry, process: int) -> Found:
    """All variants, one after another. Of each that could be trained `checks` has what trained()
    gives."""
    found = Found(process)
    with caught() as of_texts:
        lessons, exam = batches(spec, process)
    for variant in spec["variants"]:
        name = variant["name"]
        outcome = of_texts
        if of_texts.is_ok:
            with caught() as outcome:
                found.checks[name] = trained(spec_of(spec, variant), lessons, exam)
        found.status(name, outcome)
        memory.release(spec["device"])
    return found


def texts() -> tuple[bytes, bytes]:
    """(what is trained on, what is held out); empty where Python's library has no sources."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    contents = [path.read_bytes() for path in files]
    held_out = contents[EVERY - 1 :: EVERY]
    del contents[EVERY - 1 :: EVERY]
    return b"\n".join(contents), b"\n".join(held_out)


def batches(spec: dict, order: int) -> tuple[Tensor, Tensor]:
    """(steps, batch, context + 1) bytes to train on, and EXAM batches held out, on the device.

    The batches are the same whatever the order, a number from 1. Where the text is short some of
    it comes again. Raises models.Unsupported for a context that is longer than a text.
    """
    shape = spec["batch"], spec["context"] + 1
    drawn = torch.Generator().manual_seed(spec["seed"])
    found = []
    for text, count in zip(texts(), (spec["steps"], EXAM), strict=True):
        if len(text) < shape[1]:
            raise models.Unsupported(
                f"context {spec['context']} is longer than the text ({len(text)} bytes)"
            )
        whole = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        windows = whole.unfold(0, shape[1], spec["context"])
        mixed = windows[torch.randperm(len(windows), generator=drawn)]
        again = torch.arange(count * shape[0]) % len(windows)
        found.append(mixed[again].view(count, *shape).to(spec["device"]))
    lessons, exam = found
    in_order = torch.randperm(len(lessons), generator=torch.Generator().manual_seed(order))
    return lessons[in_order.to(lessons.device)], exam


def of_frequencies(lessons: Tensor, exam: Tensor) -> float:
    """Mean loss, in nats, of predicting each held out byte by how often it was trained on; one
    that never was counts as seen once."""
    counts = torch.bincount(lessons.flatten().int(), minlength=BYTES).clamp(min=1).double()
    losses = -(counts / counts.sum()).log()
    return float(losses[exam[..., 1:].long()].mean())


def trained(spec: dict, lessons: Tensor, exam: Tensor) -> dict:
    """Of a variant its `curve` ((steps, mean training loss)), its `held_out` loss, and that of the
    `frequencies` alone; None for what is no finite number. Raises models.Unsupported."""
    work = workload(spec)
    work.optimizer = work.optimizer_of(work.parameters, lr=spec["learning_rate"])
    is_scaled = spec.get("scaled", False)
    if is_scaled and not isinstance(work.optimizer, torch.optim.Optimizer):
        raise models.Unsupported("PyTorch scales the loss for its own optimizers alone")
    scaler = torch.amp.GradScaler(spec["device"], enabled=is_scaled)
    losses = torch.empty(len(lessons), device=lessons.device)  # so that no step waits for it
    for step, batch in enumerate(lessons):
        work.clear_gradients()
        scaler.scale(forward(work, batch)).backward()
        losses[step] = work.loss.detach()
        scaler.step(work.optimizer)
        scaler.update()
        work.drop_graph()
    known = of_frequencies(lessons, exam)
    return {"curve": curve(losses), "held_out": finite(examined(work, exam)), "frequencies": known}


def examined(work: Workload, exam: Tensor) -> float:
    """The mean loss of these batches. Nothing of the training, or of another batch, is in memory
    beside one."""
    work.clear_gradients()
    losses = []
    for batch in exam:
        losses.append(float(forward(work, batch).detach()))
        work.drop_graph()
    return math.fsum(losses) / len(losses)


def forward(work: Workload, batch: Tensor) -> Tensor:
    """The loss of a batch, with its graph also where it is only looked at: else the compiler would
    make a second version."""
    work.model.take(batch)
    work.phases("forward")["forward"]()
    return work.loss


def curve(losses: Tensor) -> list[tuple[int, float | None]]:
    """(steps so far, mean loss of the last ones) of at most POINTS parts of the training."""
    points = []
    ended = 0
    for part in losses.split(math.ceil(len(losses) / POINTS)):
        ended += len(part)
        points.append((ended, finite(float(part.mean()))))
    return points


def finite(number: float) -> float | None:
    """The number; None for one that no file can hold."""
    return number if math.isfinite(number) else None


def summary(found: list[Found]) -> dict:
    """What a record holds of all processes: a row a point of each curve, and a row for each
    variant's end."""
    curves, ends = [], []
    for process in found:
        for name, seen in process.checks.items():
            where = {"variant": name, "order": process.process}
            curves += [where | {"step": step, "loss": loss} for step, loss in seen["curve"]]
            ends.append(where | {key: seen[key] for key in ("held_out", "frequencies")})
    return {"tables": {"curves": curves, "ends": ends}}
