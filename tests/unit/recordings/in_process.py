"""Running a program of scripts/ in the tests' own process: starting a Python for each case takes
seconds."""

import runpy
import signal
import sys
from types import SimpleNamespace


def run_program(program, words, monkeypatch, capsys):
    """What it printed and its exit code, as subprocess.run() tells them."""
    monkeypatch.setattr(sys, "argv", [str(program), *map(str, words)])
    capsys.readouterr()
    pipe, code, said = signal.getsignal(signal.SIGPIPE), 0, ""
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as error:
        code, said = (
            (1, f"{error.code}\n") if isinstance(error.code, str) else (error.code or 0, "")
        )
    finally:
        signal.signal(signal.SIGPIPE, pipe)
    out, err = capsys.readouterr()
    return SimpleNamespace(returncode=code, stdout=out, stderr=err + said)
