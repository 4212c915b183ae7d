"""Starts Slurm on this machine without systemd: munged, slurmctld and a slurmd for each node. They are ended by process id.

A node does not see the temporary folder of the machine that submits jobs.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo", "unshare")
# Slurm's commands look here, because the environment of a job does not name the file.
CONFIGURATION = Path("/etc/slurm/slurm.conf")
KILL_WAIT_S = 10
# This setup has no cgroups, so Slurm does not enforce a job's memory limit.
CONF = """
ClusterName=fedrepro
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool.%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
MinJobAge=300
KillWait={kill_wait}
SlurmdTimeout=20
MailProg=/bin/true
PartitionName=main Nodes=ALL Default=YES MaxTime=1-0 DefaultTime=30 State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory={memory} State=UNKNOWN\n"


def missing() -> list[str]:
    """What this machine lacks to start Slurm: programs, or root's rights."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return lacking + ([] if os.geteuid() == 0 else ["root's rights"])


def free_ports(count: int) -> list[int]:
    """Free ports on 127.0.0.1."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@dataclass
class Slurm:
    """A running cluster with its files in `root`."""

    root: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, nodes: int, cpus: int, memory_mib: int, hidden: Sequence[Path]) -> None:
        """Starts the daemons. The folders `hidden` are empty on the nodes, because real machines do not share them."""
        host, (port, *others) = socket.gethostname(), free_ports(1 + nodes)
        names = [f"n{number}" for number in range(1, nodes + 1)]
        each = {"host": host, "cpus": cpus, "memory": memory_mib}
        lines = [NODE.format(name=name, port=other, **each) for name, other in zip(names, others, strict=True)]
        conf = self.root / "slurm.conf"
        head, _, partition = CONF.format(host=host, port=port, root=self.root, kill_wait=KILL_WAIT_S).rpartition("Partition")
        conf.write_text(head.lstrip() + "".join(lines) + "Partition" + partition)
        for name in ("state", *(f"spool.{name}" for name in names)):
            (self.root / name).mkdir()
        key = self.root / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        of_munge = {"key-file": key, "socket": self.root / "munge.socket", "pid-file": self.root / "munged.pid"}
        of_munge |= {"log-file": self.root / "munged.log", "seed-file": self.root / "munge.seed"}
        # munged refuses a socket in a folder that others may write to, such as any below /tmp, unless it is forced.
        self._spawn("munged", "--force", "--foreground", *(f"--{name}={value}" for name, value in of_munge.items()))
        wait_until((self.root / "munge.socket").exists, 10, "munge")
        self._spawn("slurmctld", "-D", "-c", "-f", str(conf))
        mounts = "for folder in $3; do mount -t tmpfs none $folder || exit 1; done; exec slurmd -D -N $1 -f $2"
        for name in names:
            folders = " ".join(map(str, hidden))
            self._spawn("unshare", "--mount", "sh", "-c", mounts, "node", name, str(conf), folders)
        wait_until(lambda: self.ask("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * nodes, 30, "nodes")

    def _spawn(self, *command: str) -> None:
        """Starts a daemon. Its output goes to a file beside the log."""
        with (self.root / f"{command[0]}.{len(self.processes)}.out").open("wb") as out:
            more = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out, "env": self.environment}
            self.processes.append(subprocess.Popen(command, start_new_session=True, **more))

    @property
    def environment(self) -> dict[str, str]:
        """Our environment, with the path of Slurm's configuration."""
        return os.environ | {"SLURM_CONF": str(self.root / "slurm.conf")}

    def ask(self, *command: str) -> str:
        """The output of one of Slurm's commands; "" if it fails."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        return done.stdout if done.returncode == 0 else ""

    def jobs(self) -> dict[str, tuple[str, str]]:
        """Jobs that wait or run: id -> (state, the comment that Snakemake gave it)."""
        lines = self.ask("squeue", "-h", "-o", "%i|%T|%k").splitlines()
        return {job: (state, comment) for job, state, comment in (line.split("|", 2) for line in lines)}

    def stop(self) -> None:
        """Ends the jobs first, then the nodes, the controller and munge."""
        with contextlib.suppress(subprocess.SubprocessError):
            if self.jobs():
                self.ask("scancel", "--user", "root")
                with contextlib.suppress(TimeoutError):
                    wait_until(lambda: not self.jobs(), KILL_WAIT_S + 10, "jobs")
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def configured(conf: Path) -> Iterator[None]:
    """Links Slurm's default path to `conf` for the block. Puts back what was there before."""
    saved = CONFIGURATION.with_name("slurm.conf.before-fedrepro")
    CONFIGURATION.parent.mkdir(exist_ok=True)
    if CONFIGURATION.is_symlink() and not CONFIGURATION.exists():  # a test that was killed left it
        CONFIGURATION.unlink()
    there = os.path.lexists(CONFIGURATION)
    if there:
        CONFIGURATION.rename(saved)
    CONFIGURATION.symlink_to(conf)
    try:
        yield
    finally:
        CONFIGURATION.unlink(missing_ok=True)
        if there:
            saved.rename(CONFIGURATION)


@contextlib.contextmanager
def running(root: Path, nodes: int = 2, cpus: int = 1, memory_mib: int = 32000, hidden: Sequence[Path] = ()) -> Iterator[Slurm]:
    """A running cluster for the block. `root` needs a short name: the path of a socket has at most about a hundred bytes."""
    slurm = Slurm(root)
    with configured(root / "slurm.conf"):
        try:
            slurm.start(nodes, cpus, memory_mib, hidden)
            yield slurm
        finally:
            slurm.stop()


def wait_until(condition, seconds: float, what: str) -> None:
    """Waits for `condition`. Raises TimeoutError after `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.1)
