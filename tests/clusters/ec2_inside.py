"""Runs `rl4sys cluster` against EC2 as moto fakes it, inside a namespace. Prints JSON.

python -m clusters.ec2_inside ENVIRONMENT DIRECTORY SCENARIO
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rl4sys.clusters.new_file import NewCluster

from .cloud_inside import Change, Machines, User

VARIABLES = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:5555",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-west-2",
    "AWS_EC2_METADATA_DISABLED": "true",
}
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


class Ec2:
    """EC2 as moto fakes it."""

    bucket = "s3://bucket/runs"

    def __init__(self, environment: Path, directory: Path) -> None:
        self.machines = Machines(environment, directory, VARIABLES)
        # The addresses that moto gives to machines.
        subprocess.run(["ip", "route", "add", "local", "54.0.0.0/8", "dev", "lo"], check=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f", "key"], check=True)
        self.machines.authorized_keys.write_bytes((directory / "key.pub").read_bytes())
        self.machines.start("moto", 5555, environment / "bin" / "moto_server", "--port", "5555")
        self._image = self._boto(_PREPARE).strip()

    def states(self) -> list[str]:
        """The states of all machines that were ever started."""
        found: list[str] = json.loads(self._boto(_STATES))
        return found

    def cluster_file(self, *changes: Change) -> str:
        """A file for it, with changes."""
        return self.machines.write_file(NewCluster("ec2"), self._use_key, *changes)

    def _use_key(self, values: dict[str, Any]) -> None:
        values["auth"]["ssh_private_key"] = str(self.machines.directory / "key")
        for node in values["available_node_types"].values():
            node["node_config"] |= {"ImageId": self._image, "KeyName": "test"}

    def _boto(self, program: str) -> str:
        """Run a program with boto3; what it prints."""
        python = self.machines.environment / "bin" / "python"
        return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    user = User(Ec2(Path(sys.argv[1]), Path(sys.argv[2])))
    print(json.dumps(getattr(user, sys.argv[3])()))
