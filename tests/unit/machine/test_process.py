"""The limits of a measuring process, each tried in a process of its own."""

import ast
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from stepscope.config.studies import STUDIES
from stepscope.machine import memory, process

SCRIPTS = Path(process.__file__).resolve().parents[2]
PARENT = """
import subprocess
command, pipe = [sys.executable, "-c", sys.argv[1]], subprocess.PIPE
child = subprocess.Popen(command, stdin=pipe, stdout=pipe)
print(child.stdout.readline().decode().strip(), flush=True)
sys.stdin.read()
"""
CHILD = """
import os, sys
sys.path.insert(0, "{scripts}")
from stepscope.machine import process
process.die_with_parent()
print(os.getpid(), flush=True)
os.pipe(); os.read(os.pipe()[0], 1)  # for ever
"""


def test_a_measuring_process_dies_with_its_parent(start_python):
    parent = start_python(PARENT, CHILD.format(scripts=SCRIPTS))
    child = int(parent.stdout.readline())
    handle = os.pidfd_open(child)  # readable once the process has ended, whoever its parent is
    parent.kill()
    ended, _, _ = select.select([handle], [], [], 20)
    if not ended:
        os.kill(child, signal.SIGKILL)
    os.close(handle)
    assert ended


def test_a_job_whose_starter_has_ended_before_it_looks_ends_at_once(tmp_path):
    """Its starter is a process that has ended; then one that is above it, with a shell between."""
    program = tmp_path / "program.py"
    program.write_text(
        f"import os, sys\nsys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from stepscope.machine import process\nprocess.die_with_starter()\n"
        "print(os.environ.get(process.STARTER))\n"
    )
    gone = subprocess.Popen(["true"])
    gone.wait()

    def told(starter, *wrapper):
        there = os.environ | {process.STARTER: str(starter)}
        command = [*wrapper, sys.executable, str(program)]
        return subprocess.run(command, env=there, capture_output=True, text=True)

    assert told(gone.pid).returncode == -signal.SIGKILL
    assert told(os.getpid()).stdout == "None\n"
    assert told(os.getpid(), "sh", "-c", '"$@"; exit $?', "sh").stdout == "None\n"


def test_the_time_limit_ends_the_process_with_one_line(run_python):
    code = """
import ast
import os
from stepscope.machine import process
process.limit_time(0.001)
os.read(os.pipe()[0], 1)  # a call that never comes back, as a hanging driver's
"""
    expected = "error: gave up after the time limit of 0.001 minutes (config key time_limit)\n"
    assert run_python(code) == (1, "", expected)


def test_a_process_that_is_done_does_not_wait_for_its_time_limit(run_python):
    code = "from stepscope.machine import process\nprocess.limit_time(60)\nprint('done')"
    assert run_python(code) == (0, "done\n", "")


def test_freed_memory_is_kept(run_python):
    code = """
import numpy, resource
from stepscope.machine import process
process.keep_memory()
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    del [numpy.ones(2**20) for _ in range(16)][:]  # 128 MiB, which the second time are there
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1000)
"""
    assert run_python(code) == (0, "True\n", "")


LEAVE = """
import atexit, sys
from stepscope.machine import process
atexit.register(print, "took everything down")
print("said", end="")
print("warned", end="", file=sys.stderr)
process.leave()
"""


def test_a_program_whose_results_are_in_place_is_gone_at_once(run_python):
    assert run_python(LEAVE) == (0, "said", "warned")


def test_a_program_that_another_one_measures_through_ends_as_usual(run_python):
    environment = os.environ | {"STEPSCOPE_HELD": "cpu"}
    assert run_python(LEAVE, env=environment) == (0, "saidtook everything down\n", "warned")


def test_a_log_without_room_does_not_keep_a_program_from_leaving(run_python):
    code = f"import sys\nsys.stdout = open('/dev/full', 'w')\n{LEAVE}"
    assert run_python(code)[0] == 0


@pytest.mark.parametrize("program", sorted(study.program for study in STUDIES))
def test_every_measuring_program_leaves_at_once(program):
    last = (SCRIPTS / f"{program}.py").read_text().splitlines()[-2:]
    assert last == ["    main()", "    process.leave()"]


STARTED = re.compile(r'(.*)python3 "\$STEPSCOPE"/(\w+)\.py')  # by a rule
FILES = sorted((SCRIPTS.parent / "rules").glob("*.smk"))
RULES = STARTED.findall("".join(file.read_text() for file in FILES))


@pytest.mark.parametrize("before, program", RULES)
def test_a_rule_says_who_starts_its_program(before, program):
    assert before.strip() == "STEPSCOPE_STARTER=$PPID exec"


@pytest.mark.parametrize(
    "program", sorted({program for _, program in RULES} | {study.program for study in STUDIES})
)
def test_every_program_of_a_run_looks_for_its_starter_before_its_imports(program):
    """These take seconds, in which the starter may end."""
    first = ast.parse((SCRIPTS / f"{program}.py").read_text()).body[1:3]  # behind the docstring
    assert "stepscope.machine.process import" in ast.unparse(first[0])
    assert ast.unparse(first[1]) == "die_with_starter()"


def test_torch_uses_the_threads_that_were_set(run_python):
    code = """
from stepscope.machine import process
process.set_environment(1)
import torch
print(torch.get_num_threads())
"""
    environment = os.environ | {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    assert run_python(code, env=environment)[1] == "1\n"


ALLOCATE = """
import resource
import torch
from stepscope.machine import process
from stepscope.measure import memory
process.available_memory = lambda: 500 * 2**20
{before}
process.limit_address_space()
torch.empty({fits} * 2**20, dtype=torch.uint8)
try:
    torch.empty({too_large} * 2**20, dtype=torch.uint8)
except Exception as error:
    print(memory.is_out_of_memory(error), str(error).splitlines()[0])
"""


LOGGED = """
import os, sys
from stepscope.machine import process
print(process.run_logged([sys.executable, "-c", sys.argv[1]], os.environ))
"""


def test_of_a_long_log_the_beginning_and_the_end_are_kept(run_python, tmp_path):
    program = "import sys; print('first'); print('x' * 10**7); sys.exit('last')"
    log = tmp_path / "measure.log"
    with log.open("wb") as file:
        assert run_python(LOGGED, program, stdout=file, stderr=file)[0] == 0
    said = log.read_text()
    assert said.startswith("first\n") and said.endswith("xx\nlast\n1\n")
    left_out = len("first\n\nlast\n") + 10**7 - process.MOST_SHOWN - process.LAST_SHOWN
    assert said.count(f"\n[{left_out} bytes are left out here]\n") == 1
    assert len(said) < process.MOST_SHOWN + process.LAST_SHOWN + 100


def test_what_a_program_leaves_behind_ends_with_it(run_python):
    program = (
        "import os, signal\n"
        "left = os.fork()\n"
        "if left: print(left, flush=True), os._exit(3)\n"
        "os.setsid(), os.close(1), os.close(2), signal.pause()\n"
    )
    code, out, _ = run_python(LOGGED, program)
    left, ended = out.split()
    assert (code, ended) == (0, "3")
    with pytest.raises(ProcessLookupError):
        os.kill(int(left), 0)


def test_an_allocation_beyond_the_available_memory_is_out_of_memory(run_python):
    # 0.9 x 500 MiB
    code, out, err = run_python(ALLOCATE.format(before="", fits=400, too_large=460))
    assert (code, err) == (0, "")
    assert re.match(r"True .*can't allocate memory", out)


@pytest.mark.parametrize("hard", ["limit", "resource.RLIM_INFINITY"])
def test_a_lower_limit_of_the_users_own_stays(hard, run_python):
    before = (
        "limit = int(open('/proc/self/statm').read().split()[0]) * 4096 + 200 * 2**20\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (limit, {hard}))"
    )
    code, out, err = run_python(ALLOCATE.format(before=before, fits=100, too_large=250))
    assert (code, err) == (0, "")
    assert out.startswith("True")


@pytest.mark.parametrize(
    "maximum, current, expected",
    [
        ("max", "5", 8000 * 1024),
        ("3000000", "1000000", 2000000),
        ("99999999999", "1", 8000 * 1024),
        (None, None, 8192000),
    ],
)
def test_available_memory_is_the_machines_or_the_control_groups_rest(
    maximum, current, expected, tmp_path, monkeypatch
):
    told = {"meminfo": "MemFree: 1 kB\nMemAvailable:    8000 kB\nBuffers: 2 kB"}
    told |= {"memory.max": maximum, "memory.current": current}
    for name, text in told.items():
        if text:
            (tmp_path / name).write_text(f"{text}\n")
    for name in ("PROC", "GROUP"):
        monkeypatch.setattr(memory, name, tmp_path)
    assert memory.available_memory() == expected


def test_importing_the_limits_does_not_import_torch(run_python):
    code = "import stepscope.measure.cell; print('torch' in sys.modules)"
    assert run_python(code)[1] == "False\n"
