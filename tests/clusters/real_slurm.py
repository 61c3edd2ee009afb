"""Debian's SLURM on loopback: controller, node and authentication as processes of this user, in a directory."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
_CONFIG = """
ClusterName=rl4sys
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=10
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def can_start() -> bool:
    """Whether SLURM is installed, and this user may start it."""
    return os.geteuid() == 0 and all(shutil.which(program) for program in PROGRAMS)


@contextmanager
def running_slurm(place: Path) -> Iterator[Path]:
    """Start SLURM; yields its configuration file, and ends its processes."""
    for name in ("munge", "state", "spool"):
        (place / name).mkdir(parents=True, mode=0o755)
    key = place / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    config = place / "slurm.conf"
    host = platform.node().partition(".")[0]
    config.write_text(_CONFIG.format(host=host, ports=_free_ports(), place=place, cpus=os.cpu_count()))
    files = [f"--{name}-file={place}/munge/{name}" for name in ("key", "pid", "seed")]
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        daemons.append(_start(place, "munged", "--foreground", "--force", f"--socket={place}/munge/socket", *files))
        _wait(lambda: (place / "munge" / "socket").exists())
        daemons.append(_start(place, "slurmctld", "-D", "-c", "-f", str(config)))
        daemons.append(_start(place, "slurmd", "-D", "-N", host, "-f", str(config)))
        _wait(lambda: b"idle" in _ask(config, "sinfo", "--noheader", "--format=%t"))
        yield config
    finally:
        _ask(config, "scancel", "--user=root")
        with_jobs = time.monotonic() + 30
        while _ask(config, "squeue", "--noheader").strip() and time.monotonic() < with_jobs:
            time.sleep(0.1)
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(30)


def _start(place: Path, *command: str) -> subprocess.Popen[bytes]:
    with (place / f"{command[0]}.out").open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)


def _ask(config: Path, *command: str) -> bytes:
    environment = os.environ | {"SLURM_CONF": str(config)}
    return subprocess.run(command, capture_output=True, env=environment, check=False).stdout


def _wait(fact: object, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not fact():  # type: ignore[operator]
        assert time.monotonic() < deadline, "SLURM did not start"
        time.sleep(0.05)


def _free_ports() -> list[int]:
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("127.0.0.1", 0))
        return [first.getsockname()[1], second.getsockname()[1]]
