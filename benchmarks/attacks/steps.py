"""Training steps of one's own that do what none should: timed, profiled, recorded, and compared
with a good one, as cells are."""

import csv
import io
import json
import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from stepscope.results.records import Damaged, content, read_record

from attacks import models
from attacks.trying import Attempt
from attacks.values import no_file

STEP = """
import os, resource, signal, sys, threading, time, warnings
import torch
from torch import nn
from stepscope import Step, phase, record


def harm():
{harm}


class Odd(nn.Module):
    def named_parameters(self, *given, **named):
        raise RuntimeError("none of yours")


calls = []


def build(context, batch, device, seed, {takes}):
    {in_build}
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(batch, 4)

    def run():
        calls.append(1)
        {in_run}
        with phase("forward"):
            {in_phase}
            loss = model(x).square().mean()
        with phase("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return {loss}

    return {returned}


{in_import}
"""
GOOD = {
    "takes": "**keys",
    "in_build": "pass",
    "in_run": "pass",
    "in_phase": "pass",
    "in_import": "pass",
    "loss": "loss.detach()",
    "returned": 'Step(run, module=model, optimizer=optimizer, items=(batch, "rows"))',
}
PLACES = ("in_build", "in_run", "in_run", "in_phase", "in_import")
# In the place of a part of a good file.
PARTS = {
    "takes": ("", "rate", "*, rate", "rate=1, /", "*given", "context2=1, **keys"),
    "loss": (
        *("None", "loss", "float('nan')", "torch.tensor(float('inf'))", "'text'", "model(x)", "[]"),
        *("{'loss': loss}", "object()", "loss.to('meta')", "torch.tensor(1j)", "10**400", "True"),
        *("float('nan') if len(calls) > 2 else 1.0", "-1e308", "loss if len(calls) % 2 else None"),
    ),
    "returned": (
        *("None", "run", "run()", "Step", "Step()", "Step(None)", "Step(run())", "Step(run, 1)"),
        *("[Step(run)]", "(yield)", "Step(lambda x: 1)", "Step(run, flop=0)", "Step(run, flop=-1)"),
        *("Step(run, flop=float('nan'))", "Step(run, flop='many')", "Step(run, flop=1e300)"),
        *("Step(run, flop=10**400)", "Step(run, flop=True)", "Step(run, flop=torch.tensor(3.0))"),
        *("Step(run, items=(8192,))", "Step(run, items=8192)", "Step(run, items=('a', 8192))"),
        *(
            "Step(run, items=(1e308, 'rows'))",
            "Step(run, items=(5, ''))",
            "Step(run, items=[5, 1])",
        ),
        *("Step(run, items=(5, 'a\\nb|c' * 99))", "Step(run, items=(float('inf'), 'rows'))"),
        *("Step(run, module=3)", "Step(run, module=nn.Linear)", "Step(run, module=Odd())"),
        *("Step(run, module=nn.Linear(4, 3, device='meta'))", "Step(run, module=nn.Module())"),
        *("Step(run, module=model.to(torch.complex64))", "Step(run, optimizer=5)", "Step(print)"),
        *("Step(run, optimizer=[optimizer, None, 'b'])", "Step(run, optimizer=torch.optim.SGD)"),
        *("Step(run, graph=3)", "Step(run, graph=lambda: 1 / 0)", "Step(run, graph=sys.exit)"),
        *("Step(os.abort)", "Step(sys.exit)", "Step(lambda: None)", "Step(torch.cuda.synchronize)"),
    ),
    "in_phase": (
        *(
            "phase('').__enter__()",
            "phase('a').__enter__()",
            "phase(3)",
            "phase('rest')",
            "phase()",
        ),
        *(
            "phase('step')",
            "phase('x' * 10_000)",
            "phase('a\\x00b')",
            "phase('forward').__exit__()",
        ),
        *(
            "with phase('a,b\"c;d|e'): pass",
            "with phase('<script>'): pass",
            "with phase('nan'): pass",
        ),
        *("with phase('forward+backward'): pass", "with phase('ü‮x'): pass", "break_ = 1 / 0"),
        *("with phase(str(len(calls))): pass", "with phase('warmup'), phase('forward'): pass"),
        *("[phase(f'p{n}').__enter__() for n in range(99)]", "with phase('backward'): run.a = 1"),
        "for n in range(3000):\n                with phase(f'phase {n}'): pass",
        "threading.Thread(target=lambda: phase('other').__enter__()).start()",
    ),
    "in_run": (
        *(
            "time.sleep(0.001)",
            "torch.set_num_threads(7)",
            "torch.manual_seed(0)",
            "return",
            "run()",
        ),
        *("globals().clear()", "Step.__init__ = None", "torch.use_deterministic_algorithms(True)"),
        *(
            "torch.set_default_device('meta')",
            "raise StopIteration",
            "yield 1",
            "record('in').step()",
        ),
        *(
            "x.data = torch.randn(batch, 5)",
            "model.to('meta')",
            "os.chdir('/')",
            "del sys.modules['torch']",
        ),
        *("raise torch.OutOfMemoryError('CUDA out of memory')", "optimizer.param_groups.clear()"),
        *(
            "raise ValueError('error: a\\nerror: b\\n' * 99)",
            "sys.stdout.close()",
            "model.weight = None",
        ),
    ),
}
PROGRAMS = ("time_step", "time_step", "snapshot_memory", "profile_step", "time_ladder")
BUDGET = "--max-seconds 0 --processes 1"


def steps(place: Path) -> Callable:
    """A function that makes an attempt with a step."""

    def attempt(work: Path, draw: random.Random) -> Attempt:
        file = work / "net.py"
        program = draw.choice(PROGRAMS)
        how, changes, harm = spoilt(draw)
        file.write_text(source(harm, changes))
        if draw.random() < 0.1:
            text = draw.choice(models.FILES)
            how = f"file: {text!r}"
            file.write_text(text)
        elif draw.random() < 0.05:
            how = no_file(file, draw)
        words = ["--step", "net.py:build"]
        if program == "time_ladder":
            (work / "good.py").write_text(source("pass", {}))
            files = {"good": "good.py:build", "bad": "net.py:build"}
            variants = [{"name": name, "step": step} for name, step in files.items()]
            variants[1]["after"] = "good"
            words = ["--variants", json.dumps(variants)]
        if program in ("time_step", "time_ladder"):
            words += BUDGET.split()
        return Attempt(
            how=f"{program}: {how}",
            run=partial(models.measure, program, words),
            wrong=lambda: wrong(work),
            seconds=models.SECONDS,
        )

    return attempt


def spoilt(draw: random.Random) -> tuple[str, dict[str, str], str]:
    """(how, parts that are otherwise, what `harm` does) of a file."""
    if draw.random() < 0.3:
        what, place = draw.choice(list(models.HARM)), draw.choice(PLACES)
        return f"{what} {place}", {place: "harm()"}, models.HARM[what]
    part = draw.choice((*PARTS, "returned", "in_phase"))
    value = draw.choice(PARTS[part])
    return f"{part}: {value!r:.80}", {part: value}, "pass"


def source(harm: str, changes: dict[str, str]) -> str:
    """The file of a step that is good but for these parts."""
    inner = "".join(f"    {line}\n" for line in harm.splitlines())
    return STEP.format(harm=inner, **(GOOD | changes))


def wrong(work: Path) -> str:
    """What is impossible of a cell that was measured, or is refused where it is read."""
    try:
        record = read_record(work / "cell")
        text = content(work / "cell", record["samples_sha256"]).decode()
    except (OSError, Damaged) as error:
        return f"exit code 0, but {error}"
    header, *rows = csv.reader(io.StringIO(text))
    place = header.index("seconds")
    for row in rows:
        if len(row) != len(header):
            return f"a line of {len(row)} fields instead of {len(header)}"
        seconds = float(row[place] or "nan")
        if not (math.isfinite(seconds) and 1e-9 < seconds < 3e7):
            return f"a sample of {seconds} s"
    return next(_impossible(record["summary"].get("built", {})), "")


def _impossible(built: dict[str, dict]) -> Iterator[str]:
    """What nothing can have of what was built."""
    for about in built.values():
        numbers = {name: about.get(name) for name in ("items", "parameters", "trained_bytes")}
        flops = about.get("flops") or {}
        numbers |= {name: flops.get(name) for name in ("given", "counter")}
        for name, number in numbers.items():
            if number is not None and not 0 <= number < 1e60:
                yield f"{name} is {number}"
