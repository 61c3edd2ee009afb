"""What the tests of clouds share: a real sshd as every machine, the commands of a user, and what the user does.

All of it runs inside a network and process namespace, where the addresses of fake machines are loopback: no real cloud
can be reached, no other Ray is seen, and all that was started ends with the namespace.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import yaml

from rl4sys.clusters.new_file import NewCluster, write_cluster_files

Change = Callable[[dict[str, Any]], None]
"""A change of the values of a cluster file."""
_COMMAND = """#!/bin/sh
echo "rl4sys $@" >> {directory}/commands.txt
echo trained
exit ${{RL4SYS_TEST_EXIT:-0}}
"""


class Machines:
    """A real sshd, which is every machine of a fake cloud, and the user who has an account there."""

    def __init__(self, environment: Path, directory: Path, variables: Mapping[str, str]) -> None:
        self.environment, self.directory = environment, directory
        self.home, self.bin = directory / "home", directory / "bin"
        self.authorized_keys = directory / "authorized_keys"
        for place in (self.home, self.bin):
            place.mkdir()
        os.chdir(directory)
        path = f"{environment / 'bin'}:{os.environ['PATH']}"
        os.environ |= {"HOME": str(self.home), "PATH": path, "RAY_USAGE_STATS_ENABLED": "0", **variables}
        self._start_sshd(variables)
        own = self.bin / "rl4sys"
        own.write_text(_COMMAND.format(directory=directory))
        own.chmod(0o755)

    def rl4sys(self, *words: str) -> dict[str, Any]:
        """Run a command as a user does."""
        done = subprocess.run([sys.executable, "-m", "rl4sys.cli", *words], capture_output=True, text=True, check=False)
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

    def write_file(self, new: NewCluster, *changes: Change) -> str:
        """The file that `init` writes, with machines that need no download, and with changes."""
        path = self.directory / "cluster.yaml"
        write_cluster_files(new, path, force=True)
        values = yaml.safe_load(path.read_text())
        values["auth"]["ssh_user"] = "root"
        path_line = f"export PATH={self.bin}:{self.environment / 'bin'}:$PATH RAY_AUTH_MODE=token"
        values["setup_commands"] = [f"grep -q RAY_AUTH_MODE ~/.bashrc || echo '{path_line}' >> ~/.bashrc"]
        values["head_setup_commands"] = []
        for change in changes:
            change(values)
        path.write_text(yaml.safe_dump(values))
        return str(path)

    def start(self, name: str, port: int, *command: str | Path) -> None:
        """Start a server, and wait until it listens."""
        output = self.directory / f"{name}.out"
        with output.open("wb") as file:
            subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise RuntimeError(output.read_text()) from None
                time.sleep(0.1)
            else:
                return

    def _start_sshd(self, variables: Mapping[str, str]) -> None:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "host_key"], check=True)
        (self.home / ".bashrc").write_text("")
        shell = self.bin / "session"
        shell.write_text(f'#!/bin/bash\nexport HOME={self.home}\ncd\nexec /bin/bash -c "$SSH_ORIGINAL_COMMAND"\n')
        shell.chmod(0o755)
        lines = [
            f"HostKey {self.directory}/host_key",
            f"AuthorizedKeysFile {self.authorized_keys}",
            f"PidFile {self.directory}/sshd.pid",
            f"ForceCommand {shell}",
            f"SetEnv {' '.join(f'{name}={value}' for name, value in variables.items())}",
            "ListenAddress 0.0.0.0:22",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
        ]
        configuration = self.directory / "sshd.conf"
        configuration.write_text("\n".join(lines) + "\n")
        Path("/run/sshd").mkdir(exist_ok=True)
        self.start("sshd", 22, shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", configuration)


class Cloud(Protocol):
    """A fake cloud with its machines."""

    machines: Machines
    bucket: str

    def states(self) -> list[str]:
        """The states of all machines that were ever started."""

    def cluster_file(self, *changes: Change) -> str:
        """A file of this cloud, with changes."""


class User:
    """Runs commands of `rl4sys cluster`, each with the states of the machines after it."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._train = ("--", "train", "--algorithm", "ppo", "--env", "CartPole-v1", "--storage", cloud.bucket)

    def run_and_end(self) -> list[dict[str, Any]]:
        """Up, submit, follow, down, in one command."""
        return [self._cluster("run", self._cloud.cluster_file(), "--yes", *self._train)]

    def step_by_step(self) -> list[dict[str, Any]]:
        """The parts of `run`, one command each."""
        file = self._cloud.cluster_file()
        up = self._cluster("up", file, "--yes")
        twice = self._cluster("up", file, "--yes")
        submitted = self._cluster("submit", file, *self._train)
        status = self._cluster("status", file)
        logs = self._cluster("logs", file)
        return [up, twice, submitted, status, logs, self._cluster("down", file)]

    def failing_set_up(self) -> list[dict[str, Any]]:
        """A set-up command that fails on the machine."""
        file = self._cloud.cluster_file(lambda values: values["setup_commands"].append("echo broken && false"))
        return [self._cluster("run", file, "--yes", *self._train)]

    def failing_command(self) -> list[dict[str, Any]]:
        """A command that fails on the cluster."""
        fail = "echo export RL4SYS_TEST_EXIT=3 >> ~/.bashrc"
        file = self._cloud.cluster_file(lambda values: values["setup_commands"].append(fail))
        return [self._cluster("run", file, "--yes", *self._train)]

    def _cluster(self, *words: str) -> dict[str, Any]:
        return {**self._cloud.machines.rl4sys("cluster", *words), "states": self._cloud.states()}
