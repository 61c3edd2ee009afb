"""Authorities and certificates, made with openssl for one test."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    cert: Path
    key: Path


class Authority:
    """Signs certificates for this machine and for clients."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        self.cert, self._key = directory / f"{name}.pem", directory / f"{name}.key"
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"),
            *("-subj", f"/CN={name}", "-keyout", str(self._key), "-out", str(self.cert)),
        )

    def sign(self, name: str) -> Certificate:
        """A certificate of that name, which is also good for loopback addresses."""
        stem = self._directory / f"{self._name}-{name}"
        cert, key, request, extra = (stem.with_suffix(end) for end in (".pem", ".key", ".csr", ".ext"))
        extra.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", str(key), "-out", str(request)),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-CA", str(self.cert), "-CAkey", str(self._key), "-days", "1"),
            *("-CAcreateserial", "-extfile", str(extra), "-out", str(cert)),
        )
        return Certificate(cert, key)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
