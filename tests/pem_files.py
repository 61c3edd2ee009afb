"""Certificates for tests, made with openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")


def make_certificate(directory: Path, name: str, days: int = 365) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and 127.0.0.1, and its key."""
    cert, key = directory / f"{name}.pem", directory / f"{name}.key"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    command += f" -days {days} -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return cert, key
