"""Models of one's own that do what no model should, measured as a cell is: by a program of its own
under stepscope.machine.process.run_logged."""

import json
import math
import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from stepscope.machine.process import STARTER, run_logged

from attacks.cells import ROOT
from attacks.trying import Attempt
from attacks.values import no_file

SECONDS = 90  # for a program that loads torch, on a busy machine
MINUTES = 0.5  # its own time limit
FLAGS = "--device cpu --threads 1 --context 6 --batch 2 --warmup 1 --steps 2"
OF_MODEL = ("--model", "net.py:build", "--processes", "1", "--max-seconds", "0")
NET = """
import os, resource, signal, sys, threading, time, warnings
import torch
from torch import nn


def harm():
{harm}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 9)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x).relu()
        {in_forward}
        return {returned}


def loss_of(outputs, batch):
    {in_loss}
    return outputs.square().mean()


def tokens_of(batch, context, device, generator):
    {in_batch}
    return torch.randint(9, (batch, context), generator=generator).to(device)


def build(context, **keys):
    {in_build}
    return {built}


def build_step(context, batch, device):
    from stepscope import Step

    model, inputs = build(6), tokens_of(batch, context, device, None)
    return Step(lambda: loss_of(model(inputs), None).backward(), module=model)


{in_import}
"""
PLACES = ("in_build", "in_forward", "in_loss", "in_batch", "in_import")
HARM = {
    "error": 'raise ValueError("first\\nsecond\\n" * 100)',
    "odd error": "class Odd(Exception):\n    def __str__(self): raise RuntimeError\nraise Odd",
    "interrupt": "raise KeyboardInterrupt",
    "exit": "sys.exit(0)",
    "exit in words": 'sys.exit("bye")',
    "exit at once": "os._exit(0)",
    "generator exit": "raise GeneratorExit",
    "memory error": "raise MemoryError",
    "no memory": "kept = []\nwhile True: kept.append(bytearray(2**26))",
    "no room for a tensor": "torch.empty(2**60)",
    "recursion": "harm()",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "segmentation fault": "os.kill(os.getpid(), signal.SIGSEGV)",
    "terminated": "os.kill(os.getpid(), signal.SIGTERM)",
    "thread": "threading.Thread(target=threading.Event().wait).start()",
    "fork": "if os.fork() == 0: signal.pause()",
    "fork of its own session": "if os.fork() == 0:\n    os.setsid()\n    signal.pause()",
    "fork twice": "if os.fork() == 0:\n    os.fork()\n    signal.pause()",
    "endless": "while True: pass",
    "sleep": "time.sleep(10_000)",
    "prints": 'print("x" * 10_000_000)',
    "prints lines": 'sys.stderr.write("error: x\\n" * 100_000)',
    "warnings": "for number in range(10_000): warnings.warn(str(number))",
    "closed output": "os.close(1)",
    "closed errors": "sys.stderr = None",
    "another folder": 'os.chdir("/")',
    "another type": "torch.set_default_dtype(torch.float64)",
    "no gradients": "torch.set_grad_enabled(False)",
    "ignored signals": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "no clock": "time.perf_counter = time.perf_counter_ns = lambda: 0",
    "environment": "os.environ.clear()",
}
RETURNED = (
    *("None", "[]", "()", "'text'", "{}", "x[..., :0]", "self.head(x) * float('nan')"),
    *("self.head(x) * float('inf')", "self.head(x).detach()", "self.head(x)[:1]", "tokens", "self"),
    *("self.head(x).to(torch.complex64)", "torch.zeros(())", "(self.head(x), None)", "iter([x])"),
)
BUILT = ("None", "Net", "(Net(),)", "(Net(), 1, 2)", "nn.Identity()", "Net().to('meta')", "build")
FILES = (
    "",
    "def build(",
    "\0",
    "def other(context): pass",
    "build = 3",
    "\ufeff#",
    "import no_such",
)


def models(place: Path) -> Callable:
    """A function that makes an attempt with a model."""

    def attempt(work: Path, draw: random.Random) -> Attempt:
        file = work / "net.py"
        way = draw.choice((*["harm"] * 6, "returned", "built", "file", "no file"))
        changes: dict[str, str] = {}
        place_of = draw.choice(PLACES)
        what = draw.choice(list(HARM))
        how = f"{what} {place_of}"
        if way == "harm":
            call = "harm()"
            changes[place_of] = call
            if place_of in ("in_loss", "in_batch"):
                changes["built"] = "(Net(), tokens_of, loss_of)"
        elif way == "returned":
            how = changes["returned"] = draw.choice(RETURNED)
        elif way == "built":
            how = changes["built"] = draw.choice(BUILT)
        file.write_text(source(HARM[what], changes))
        if way == "file":
            text = draw.choice(FILES)
            how = f"file: {text!r}"
            file.write_text(text)
        elif way == "no file":
            how = no_file(file, draw)
        return Attempt(how=how, run=measure, wrong=lambda: wrong(work), seconds=SECONDS)

    return attempt


def source(harm: str, changes: dict[str, str]) -> str:
    """The file of a model that is good but for these parts."""
    parts = dict.fromkeys(PLACES, "pass") | {"returned": "self.head(x)", "built": "Net()"}
    inner = "".join(f"    {line}\n" for line in harm.splitlines())
    return NET.format(harm=inner, **(parts | changes))


def measure(program: str = "time_step", given: Sequence[str] = OF_MODEL) -> None:
    """Measure the cell of net.py; of what the program says the refusal alone is said here."""
    words = [sys.executable, str(ROOT / f"scripts/{program}.py"), *given, *FLAGS.split()]
    words += ["--time-limit", str(MINUTES), "--out", "cell"]
    shown, errors = os.dup(1), os.dup(2)
    log = os.open("log.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    own = {"STEPSCOPE_LOCKS": str(Path.cwd() / "locks"), STARTER: str(os.getpid())}
    code = run_logged(words, os.environ | own)
    os.dup2(shown, 1)
    os.dup2(errors, 2)
    said = Path("log.txt").read_text(errors="replace")
    if "Traceback (most recent call last)" in said:
        print("Traceback: ", *said.splitlines()[-3:])
    if len(said) > 2**21:
        print(f"Traceback: a log of {len(said)} bytes")
    if code:
        print((said.strip().splitlines() or [f"ended by signal {-code}"])[-1])
        if Path("cell/record.json").exists():
            print("although the cell has a record")
        sys.exit(1)


def wrong(work: Path) -> str:
    """What is impossible of a cell that was measured."""
    try:
        record = json.loads((work / "cell/record.json").read_text())
    except (OSError, ValueError) as error:
        return f"exit code 0, but {error}"
    rows = (work / "cell/samples.csv").read_text().splitlines()
    place = rows[0].split(",").index("seconds")
    for row in rows[1:]:
        seconds = float(row.split(",")[place] or "nan")
        if not (math.isfinite(seconds) and 1e-9 < seconds < 3e7):
            return f"a sample of {seconds} s"
    is_ok = record["summary"]["variants"]["step"]["status"] == "ok"
    return "ok, but there is no sample" if is_ok and len(rows) < 2 else ""
