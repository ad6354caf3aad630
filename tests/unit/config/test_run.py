"""A run is alone in its folder, and counts its cells."""

import errno
import fcntl
import io
import logging
import os
import signal
import threading
from pathlib import Path

import pytest
from stepscope.config import run
from stepscope.config.run import measuring, unusable
from stepscope.machine.locks import lock_run

TAKE = "from stepscope.machine.locks import *; print(lock_run(Path(sys.argv[1])), flush=True)"


@pytest.fixture
def start(start_python):
    """Start a process that tries to take the lock, says what came of it, and stays."""

    def start(path):
        process = start_python(f"{TAKE}; sys.stdin.read()", str(path))
        return process, process.stdout.readline().strip()

    return start


def test_a_command_that_measures_nothing_is_named_as_one_that_measures():
    words = ["report", "--config", "measure=False", "a=1", "-n"]
    assert measuring(words) == ["report", "--config", "measure=true", "a=1", "-n"]
    assert measuring(["-n", "--cores", "1"]) == ["-n", "--cores", "1"]


def test_a_second_run_is_refused_and_told_who_has_the_folder(start, tmp_path):
    path = tmp_path / "new/run.lock"
    assert lock_run(path) is None
    _, said = start(path)
    assert (
        said
        == f"another run (process {os.getpid()}) is at work in {Path.cwd()}; wait until it ends, or"
        " end it"
    )
    # Asking does not take the holder's name away.
    assert start(path)[1] == said
    assert start(tmp_path / "other.lock")[1] == "None"


def test_the_lock_of_a_killed_run_is_free(start, tmp_path):
    path = tmp_path / "run.lock"
    holder, said = start(path)
    assert said == "None"
    assert f"(process {holder.pid})" in lock_run(path)
    holder.kill()
    holder.wait()
    assert lock_run(path) is None
    assert path.read_text() == str(os.getpid())


def test_a_file_system_without_locks_is_noted_and_the_run_goes_on(tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert lock_run(tmp_path / "lock") is None
    assert (
        "cannot be locked (Operation not supported); start one run at a time"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "name", ["plain", "a b", "it's", 'say "x"', "$HOME;`x`", "ümläut", "-dash", "*[x]", 'a"$`']
)
def test_a_path_that_jobs_can_be_given(name):
    assert unusable(f"/home/{name}") is None


@pytest.mark.parametrize(
    "name, harmful",
    {
        "{wild}": "'{'",
        "x}": "'}'",
        "a\\b": "'\\\\'",
        "a\nb": "'\\n'",
        "a\x01": "'\\x01'",
        "a\udcff": "'\\udcff'",
        'it\'s "x"': 'a single quote beside "',
        "it's $x": r"a single quote beside $",
        "it's `x`": "a single quote beside `",
    }.items(),
)
def test_a_path_that_jobs_cannot_be_given_is_one_line(name, harmful):
    line = unusable(f"/home/{name}")
    assert (
        line
        == f"{f'/home/{name}'!r}: Snakemake cannot run programs by a path with {harmful}; rename it"
    )
    assert line.isprintable()


def test_a_cell_is_forgotten_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for cell in ("cpu/timing/a", "cpu/timing/a/batch=2", "cpu/memory/a"):
        (run.KEPT / cell).mkdir(parents=True)
        (run.KEPT / cell / "record.json").touch()
    run.forget(["results/cpu/timing/a/batch=2/record.json", "results/cpu/ladder/a/record.json"])
    assert sorted(path.name for path in (run.KEPT / "cpu").glob("*/*")) == ["a", "a"]
    assert not (run.KEPT / "cpu/timing/a/batch=2").exists()
    run.forget(["results/cpu/timing/a/record.json"])
    assert [path.name for path in run.KEPT.glob("*/*")] == ["memory"]
    run.forget(["results/cpu/memory/a/record.json"])
    assert not run.KEPT.exists() and run.KEPT.parent.exists()


def test_sigterm_is_handled_though_the_interrupted_code_holds_the_lock_that_its_handler_takes():
    lock, ended = threading.Lock(), threading.Event()

    def as_snakemake_does(*_):
        with lock:
            ended.set()

    before = signal.signal(signal.SIGTERM, as_snakemake_does)
    try:
        run.end_from_a_thread()
        with lock:
            signal.raise_signal(signal.SIGTERM)  # without a thread of its own it stays here
            assert not ended.is_set()
        assert ended.wait(60)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture
def terminal(monkeypatch):
    """The handler that writes what Snakemake says, into a pipe; its reader's end."""
    from snakemake.logging import ColorizingTextHandler, logger

    ended, written = os.pipe()
    with io.TextIOWrapper(open(written, "wb", buffering=0), write_through=True) as stream:
        handler = ColorizingTextHandler(stream=stream, nocolor=True)
        handler.setFormatter(logging.Formatter("%(message)s"))
        handler.name = "DefaultStreamHandler"
        monkeypatch.setattr(logger, "handlers", [handler])
        yield logger, ended


@pytest.mark.parametrize("is_main", [True, False])
def test_a_run_whose_reader_was_ended_goes_on_and_ends_as_by_sigterm(
    is_main, terminal, monkeypatch
):
    logger, ended = terminal
    signals = []
    monkeypatch.setattr(logging, "raiseExceptions", True)  # what is set is undone
    before = signal.signal(signal.SIGTERM, lambda number, frame: signals.append(number))
    try:
        run.speak_safely(is_main)
        logger.error("read")
        assert os.read(ended, 100) == b"read\n" and not signals
        os.close(ended)
        logger.error("Error in rule time_step")  # Snakemake's own handler raises BrokenPipeError
        assert signals == [signal.SIGTERM] * is_main
    finally:
        signal.signal(signal.SIGTERM, before)


def test_of_a_full_disk_one_line_is_said_whatever_errors_come_of_it(tmp_path, monkeypatch, capsys):
    shown = run.OneCause(tmp_path)
    other = logging.makeLogRecord({"msg": "Error in rule time_step", "levelno": logging.ERROR})
    lost = {"msg": "Error recording metadata ([Errno 28] No space left on device)"}
    assert shown.filter(other)
    assert not shown.filter(logging.makeLogRecord(lost | {"levelno": logging.ERROR}))
    monkeypatch.setattr(run, "is_full", lambda folder: folder == tmp_path)
    assert not shown.filter(other)
    assert shown.filter(logging.makeLogRecord({"msg": "Job stats", "levelno": logging.INFO}))
    said = f"error: the disk of {tmp_path} is full; make room and run again, nothing is lost"
    assert capsys.readouterr().err == f"{said}\n"


def refuse(refused, monkeypatch):
    """Have a path closed to this user, who may be root."""

    def access(path, mode):
        return os.path.exists(path) if mode == os.F_OK else path != refused

    monkeypatch.setattr(os, "access", access)


def test_a_folder_that_snakemake_cannot_write_to_is_one_line(tmp_path, monkeypatch):
    assert run.unready(tmp_path) is run.unready(tmp_path / "new") is None
    notes = tmp_path / ".snakemake"
    # as another user's are with umask 022; a dry run, too, writes to iocache
    for refused in (tmp_path, notes, notes / "iocache", notes / "metadata/of-a-record"):
        refused.mkdir(parents=True, exist_ok=True)
        refuse(refused, monkeypatch)
        said = f"cannot change {refused}, which belongs to {refused.owner()}: "
        assert run.unready(tmp_path).startswith(said)
    monkeypatch.setattr(Path, "owner", lambda path: {}[path])  # of no known user
    assert "which belongs to another user: " in run.unready(tmp_path)
    refuse(tmp_path, monkeypatch)
    assert run.unready(tmp_path) is None  # its notes can be written
    monkeypatch.setattr(run, "is_full", lambda folder: True)
    said = f"the disk of {tmp_path} is full; make room and run again, nothing is lost"
    assert run.unready(tmp_path) == said
    monkeypatch.setattr(run, "is_full", lambda folder: folder.name == "results")
    assert f"the disk of {tmp_path}/results is full" in run.unready(tmp_path)


def test_of_what_another_user_has_to_share_one_line_is_said(tmp_path, capsys):
    shown = run.OneCause(tmp_path)

    def is_shown(text):
        return shown.filter(logging.makeLogRecord({"msg": text, "levelno": logging.ERROR}))

    denied = "PermissionError: [Errno 13] Permission denied: '/data/own'"
    assert is_shown(f"Logfile results/mine/measure.log:\n{denied}")  # a model's own
    assert not is_shown(
        'ProtectedOutputException in rule pages in file "rules/report.smk", line 58:\n'
        "Write-protected output files for rule pages:\n    output: results/report\n"
        "    affected files:\n        results/report\n        results/report.log"
    )
    assert not is_shown(
        "WorkflowError:\nFailed to create output directory results/a/b.\n"
        "PermissionError: [Errno 13] Permission denied: 'results/a'"
    )
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: cannot change {tmp_path}/results/report, which belongs to ")


def test_what_snakemake_would_answer_by_itself_is_one_line_before_it_begins(tmp_path, monkeypatch):
    given, folder = tmp_path / "given.yaml", tmp_path / "read-only"
    folder.mkdir()
    given.write_text("a: [")
    assert run.refused(["report", "--configfile", str(given)]).startswith(f"{given}, line ")
    refuse(folder, monkeypatch)
    assert run.refused(["report", "-d", str(tmp_path)]) is None
    for words in (["-d", str(folder)], [f"--directory={folder}", "-np"]):
        assert run.refused(words).startswith(f"cannot change {folder}, ")
    assert run.refused(["-d", str(folder / "new/er")]).startswith(f"cannot change {folder}, ")
    assert run.refused(["-d", str(tmp_path / "new/er")]) is None  # Snakemake makes it
    (folder / ".snakemake").mkdir()
    assert run.refused(["-d", str(folder), "--dry-run"]) is None
