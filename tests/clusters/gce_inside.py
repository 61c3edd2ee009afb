"""Runs `rl4sys cluster` against a fake of Google Compute Engine, inside a namespace. Prints JSON.

Ray and Google's package are unchanged: they find the fake under Google's own names, which mean loopback in here, with a
certificate that only they trust.

    python -m clusters.gce_inside ENVIRONMENT DIRECTORY SCENARIO
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rl4sys.clusters.new_file import NewCluster

from .cloud_inside import Change, Machines, User
from .fake_gce import HOSTS, FakeGce, serve

_CREDENTIALS = {
    "type": "authorized_user",
    "client_id": "fake",
    "client_secret": "fake",
    "refresh_token": "fake",
    "quota_project_id": "lab",
}


class Gce:
    """Our fake of Google Compute Engine."""

    bucket = "gs://bucket/runs"

    def __init__(self, environment: Path, directory: Path) -> None:
        names = [f"{host}.googleapis.com" for host in HOSTS]
        certificate, key = _certify(directory, names)
        _mean_loopback(directory, names)
        credentials = directory / "credentials.json"
        credentials.write_text(json.dumps(_CREDENTIALS))
        self.machines = Machines(
            environment,
            directory,
            {
                "GOOGLE_APPLICATION_CREDENTIALS": str(credentials),
                "HTTPLIB2_CA_CERTS": str(certificate),
                "REQUESTS_CA_BUNDLE": str(certificate),
                "NO_GCE_CHECK": "true",
            },
        )
        self.fake = FakeGce(self.machines.authorized_keys)
        serve(self.fake, certificate, key)

    def states(self) -> list[str]:
        """The states of all machines that were ever started."""
        return [machine["status"] for machine in self.fake.machines.values()]

    def cluster_file(self, *changes: Change) -> str:
        """A file for it, with changes."""
        return self.machines.write_file(NewCluster("gce", project="lab"), *changes)


def _certify(directory: Path, names: list[str]) -> tuple[Path, Path]:
    """A certificate for the names, signed by itself."""
    certificate, key = directory / "google.pem", directory / "google.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=fake"]
    command += ["-addext", f"subjectAltName={','.join(f'DNS:{name}' for name in names)}"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def _mean_loopback(directory: Path, names: list[str]) -> None:
    """Let the names mean loopback, in this namespace only."""
    hosts = directory / "hosts"
    hosts.write_text(Path("/etc/hosts").read_text() + f"127.0.0.1 {' '.join(names)}\n")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)


if __name__ == "__main__":
    cloud = Gce(Path(sys.argv[1]), Path(sys.argv[2]))
    found = getattr(User(cloud), sys.argv[3])()
    print(json.dumps({"results": found, "machines": list(cloud.fake.machines.values()), "unknown": cloud.fake.unknown}))
