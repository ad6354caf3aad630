"""A throw-away Slurm on this machine: munge, slurmctld and two nodes, in namespaces of their own.

Needs root, Linux namespaces and Debian's munge, slurmctld, slurmd, slurm-client and iproute2; no
systemd, no slurmdbd. Up in two seconds; several may run side by side, because each has a network of
its own.

| node | GPU (a fake: /dev/null) | partitions |
|---|---|---|
| n1 | h100 | gpu (the default), h100 |
| n2 | t4 | gpu, t4 |

Both nodes see the same files, as on a shared file system, except for the folder LOCAL, which each
node has for itself.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare", "nsenter", "ip")
NODES = {"n1": "h100", "n2": "t4"}
SECONDS_TO_START = 60
CONFIGURATION = """\
ClusterName=lab
SlurmctldHost=login(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
# No control groups: processes are found by their parents, and memory is looked at every 2 seconds.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
# Schedule at once instead of when it suits a large cluster: waiting would be most of a test's time.
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
KillWait=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n1 NodeAddr=127.0.0.1 Port=26818 CPUs=8 RealMemory=8000 Gres=gpu:h100:1
NodeName=n2 NodeAddr=127.0.0.1 Port=26819 CPUs=8 RealMemory=8000 Gres=gpu:t4:1
PartitionName=gpu  Nodes=n1,n2 Default=YES MaxTime=60
PartitionName=h100 Nodes=n1 MaxTime=60
PartitionName=t4   Nodes=n2 MaxTime=60
"""


def cannot_run():
    """Why there can be no lab here, as a reason to skip a test; None if there can."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if lacking:
        return f"no Slurm to test with: {', '.join(lacking)} not installed (.ci/run installs them)"
    if os.geteuid() != 0:
        return "a Slurm to test with needs root"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--uts", "--fork", "true"], capture_output=True
    )
    return (
        None
        if tried.returncode == 0
        else "a Slurm to test with needs namespaces, which are forbidden here"
    )


class Lab:
    """The lab from outside: `with Lab() as lab: lab.command(["sbatch", ...])`."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-lab-"))
        self.folder.chmod(0o711)  # munge refuses folders that others may write to
        self.local = self.folder / "local"
        self._write_files()
        alone = [
            "unshare",
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        self._process = subprocess.Popen(
            [*alone, sys.executable, __file__, str(self.folder)],
            # its end ends the lab, so that nothing is left however this process ends
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + SECONDS_TO_START
        while self._idle_nodes() < len(NODES):
            if self._process.poll() is not None or time.monotonic() > deadline:
                logs = "\n".join(_ends(sorted(self.folder.glob("log/*"))))
                self.__exit__()
                raise RuntimeError(f"the Slurm to test with did not start:\n{logs}")
            time.sleep(0.05)
        return self

    def __exit__(self, *exception):
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, words, folder="."):
        """A command line that runs a command inside the lab, in a folder."""
        inside = (
            Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            .read_text()
            .split()[0]
        )
        namespaces = ["--mount", "--pid", "--net", "--uts", f"--wdns={Path(folder).resolve()}"]
        return [
            "nsenter",
            "--target",
            inside,
            *namespaces,
            "env",
            f"PATH={_path()}",
            *map(str, words),
        ]

    def _idle_nodes(self):
        if not (self.folder / "started").exists():
            return 0
        asked = ["timeout", "2", "sinfo", "--noheader", "--Node", "--partition=gpu", "--format=%T"]
        return (
            subprocess.run(self.command(asked), capture_output=True, text=True)
            .stdout.split()
            .count("idle")
        )

    def _write_files(self):
        of_each_node = [f"{part}/{node}" for part in ("spool", "node") for node in NODES]
        for name in ("etc", "munge", "state", "log", "local", *of_each_node):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "munge").chmod(0o711)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost login {' '.join(NODES)}\n")
        (self.folder / "etc/slurm.conf").write_text(CONFIGURATION.format(folder=self.folder))
        fakes = [
            f"NodeName={node} Name=gpu Type={gpu} File=/dev/null\n" for node, gpu in NODES.items()
        ]
        (self.folder / "etc/gres.conf").write_text("".join(fakes))
        key = self.folder / "munge/key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))


def _path():
    """PATH with the folders in which Debian puts the daemons."""
    return f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def _ends(logs):
    """The last lines of each log."""
    return [
        f"{log.name}: {line}"
        for log in logs
        for line in log.read_text(errors="replace").splitlines()[-5:]
    ]


def run_inside(folder):
    """Process 1 of the lab's own namespaces: start the daemons, wait for the end of stdin. The
    kernel ends the rest."""
    deadline = time.monotonic() + SECONDS_TO_START
    Path("/etc/slurm").mkdir(exist_ok=True)
    for command in (
        ["hostname", "login"],
        ["ip", "link", "set", "lo", "up"],
        # glibc resolves no name to IPv4 where 127.0.0.1 is the only address (AI_ADDRCONFIG in
        # getaddrinfo(3)).
        ["ip", "address", "add", "127.0.0.2/8", "dev", "lo"],
        ["mount", "--bind", folder / "hosts", "/etc/hosts"],
        [
            "mount",
            "--bind",
            folder / "etc",
            "/etc/slurm",
        ],  # where Slurm's programs look, whoever starts them
    ):
        subprocess.run(command, check=True)
    munge = folder / "munge"
    files = {
        "key-file": "key",
        "socket": "socket",
        "pid-file": "pid",
        "log-file": "log",
        "seed-file": "seed",
    }
    _start(
        folder,
        "munged",
        ["munged", "--foreground", *(f"--{flag}={munge / name}" for flag, name in files.items())],
    )
    while not (munge / "socket").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    _start(folder, "slurmctld", ["slurmctld", "-D"])
    for (
        node
    ) in NODES:  # each with its own name, and its own folder for what is not shared between nodes
        own = (
            f"hostname {node} && mount --bind {folder}/node/{node} {folder}/local && exec slurmd -D"
            f" -N {node}"
        )
        _start(folder, node, ["unshare", "--mount", "--uts", "sh", "-c", own])
    (folder / "started").touch()
    sys.stdin.read()


def _start(folder, name, command):
    with open(folder / f"log/{name}.out", "w") as log:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


if __name__ == "__main__":
    os.environ["PATH"] = _path()
    run_inside(Path(sys.argv[1]))
