"""Runs `rl4sys cluster` against EC2 as moto fakes it, with a real sshd as every machine.

It runs inside a network and process namespace of its own, where all addresses of the fake machines are loopback: no
real cloud can be reached, no other Ray is seen, and all that was started ends with the namespace. Prints JSON.

    python -m clusters.ec2_inside ENVIRONMENT DIRECTORY SCENARIO
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from rl4sys.clusters.new_file import NewCluster, write_cluster_files

ENDPOINT = "http://127.0.0.1:5555"
TRAIN = ["--", "train", "--algorithm", "ppo", "--env", "CartPole-v1", "--storage", "s3://bucket/runs"]
_PREPARE = """
import boto3
boto3.client("iam").create_instance_profile(InstanceProfileName="rl4sys-head")
boto3.client("ec2").import_key_pair(KeyName="test", PublicKeyMaterial=open("key.pub", "rb").read())
print(boto3.client("ec2").describe_images(Owners=["amazon"])["Images"][0]["ImageId"])
"""
_STATES = """
import boto3, json
found = boto3.client("ec2").describe_instances()["Reservations"]
print(json.dumps([i["State"]["Name"] for r in found for i in r["Instances"]]))
"""
_COMMAND = """#!/bin/sh
echo "rl4sys $@" >> {directory}/commands.txt
echo trained
exit ${{RL4SYS_TEST_EXIT:-0}}
"""


class Inside:
    """The fake cloud, and the commands of a user on it."""

    def __init__(self, environment: Path, directory: Path) -> None:
        self.environment, self.directory = environment, directory
        self.home, self.bin = directory / "home", directory / "bin"
        for place in (self.home, self.bin):
            place.mkdir()
        os.chdir(directory)
        os.environ |= {
            "HOME": str(self.home),
            "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
            "AWS_ENDPOINT_URL": ENDPOINT,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-west-2",
            "AWS_EC2_METADATA_DISABLED": "true",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # The addresses that moto gives to machines.
        subprocess.run(["ip", "route", "add", "local", "54.0.0.0/8", "dev", "lo"], check=True)
        self._start_moto()
        self._start_sshd()
        self.image = self.cloud(_PREPARE).strip()
        own = self.bin / "rl4sys"
        own.write_text(_COMMAND.format(directory=directory))
        own.chmod(0o755)

    def cloud(self, program: str) -> str:
        """Run a program with boto3; what it prints."""
        python = self.environment / "bin" / "python"
        return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout

    def states(self) -> list[str]:
        """The states of all machines that were ever started."""
        found: list[str] = json.loads(self.cloud(_STATES))
        return found

    def rl4sys(self, *words: str) -> dict[str, Any]:
        """Run a command as a user does."""
        done = subprocess.run([sys.executable, "-m", "rl4sys.cli", *words], capture_output=True, text=True, check=False)
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "states": self.states()}

    def cluster_file(self, change: Callable[[dict[str, Any]], None] = lambda values: None) -> str:
        """The file that `init` writes, with machines that need no download."""
        path = self.directory / "cluster.yaml"
        write_cluster_files(NewCluster("ec2"), path, force=True)
        values = yaml.safe_load(path.read_text())
        values["auth"] |= {"ssh_user": "root", "ssh_private_key": str(self.directory / "key")}
        for node in values["available_node_types"].values():
            node["node_config"] |= {"ImageId": self.image, "KeyName": "test"}
        path_line = f"export PATH={self.bin}:{self.environment / 'bin'}:$PATH RAY_AUTH_MODE=token"
        values["setup_commands"] = [f"grep -q RAY_AUTH_MODE ~/.bashrc || echo '{path_line}' >> ~/.bashrc"]
        values["head_setup_commands"] = []
        change(values)
        path.write_text(yaml.safe_dump(values))
        return str(path)

    def _start_moto(self) -> None:
        with (self.directory / "moto.out").open("wb") as output:
            command = [self.environment / "bin" / "moto_server", "--port", "5555"]
            subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self._wait("moto", 5555)

    def _start_sshd(self) -> None:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "host_key"], check=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f", "key"], check=True)
        (self.home / ".bashrc").write_text("")
        shell = self.bin / "session"
        shell.write_text(f'#!/bin/bash\nexport HOME={self.home}\ncd\nexec /bin/bash -c "$SSH_ORIGINAL_COMMAND"\n')
        shell.chmod(0o755)
        lines = [
            f"HostKey {self.directory}/host_key",
            f"AuthorizedKeysFile {self.directory}/key.pub",
            f"PidFile {self.directory}/sshd.pid",
            f"ForceCommand {shell}",
            "ListenAddress 0.0.0.0:22",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
        ]
        variables = [f"{name}={os.environ[name]}" for name in os.environ if name.startswith("AWS_")]
        (self.directory / "sshd.conf").write_text("\n".join([*lines, f"SetEnv {' '.join(variables)}"]) + "\n")
        Path("/run/sshd").mkdir(exist_ok=True)
        with (self.directory / "sshd.out").open("wb") as output:
            command = ["/usr/sbin/sshd", "-D", "-e", "-f", str(self.directory / "sshd.conf")]
            subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self._wait("sshd", 22)

    def _wait(self, name: str, port: int) -> None:
        import socket

        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise RuntimeError((self.directory / f"{name}.out").read_text()) from None
                time.sleep(0.1)
            else:
                return


def run_and_end(inside: Inside) -> list[dict[str, Any]]:
    """Up, submit, follow, down, in one command."""
    return [inside.rl4sys("cluster", "run", inside.cluster_file(), "--yes", *TRAIN)]


def step_by_step(inside: Inside) -> list[dict[str, Any]]:
    """The parts of `run`, one command each."""
    file = inside.cluster_file()
    up = inside.rl4sys("cluster", "up", file, "--yes")
    twice = inside.rl4sys("cluster", "up", file, "--yes")
    submitted = inside.rl4sys("cluster", "submit", file, *TRAIN)
    status = inside.rl4sys("cluster", "status", file)
    logs = inside.rl4sys("cluster", "logs", file)
    return [up, twice, submitted, status, logs, inside.rl4sys("cluster", "down", file)]


def failing_set_up(inside: Inside) -> list[dict[str, Any]]:
    """A set-up command that fails on the machine."""
    file = inside.cluster_file(lambda values: values["setup_commands"].append("echo broken && false"))
    return [inside.rl4sys("cluster", "run", file, "--yes", *TRAIN)]


def failing_command(inside: Inside) -> list[dict[str, Any]]:
    """A command that fails on the cluster."""
    file = inside.cluster_file(
        lambda values: values["setup_commands"].append("echo export RL4SYS_TEST_EXIT=3 >> ~/.bashrc")
    )
    return [inside.rl4sys("cluster", "run", file, "--yes", *TRAIN)]


if __name__ == "__main__":
    place = Inside(Path(sys.argv[1]), Path(sys.argv[2]))
    print(json.dumps(globals()[sys.argv[3]](place)))
