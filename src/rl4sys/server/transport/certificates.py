"""The certificate of a server with its key, and the authority of its clients; read again when the files change."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import grpc

from rl4sys.server.options import ImpossibleSetup
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.transport.certificate_expiry import expiry_of

_log = logging.getLogger(__name__)

_TOPIC, _EXPIRY = "certificate", "certificate expiry"
_DAYS = 14.0
"""How many days before its end a certificate causes a warning."""
_Pem: TypeAlias = tuple[bytes, bytes, bytes | None]
"""Key, certificate and authority."""


class Certificates:
    """The files behind TLS. New connections use the newest sound files; open ones are not affected."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        authority: Path | None,
        warnings: ServerWarnings,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises `ImpossibleSetup` unless the files can be used."""
        self._certificate, self._key, self._authority, self._warnings = certificate, key, authority, warnings
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._stamp = self._look()
        self._files, self._context = self._read()
        self._handed_over = self._files
        """What gRPC has."""
        self._check_expiry()

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that look at the files before every handshake."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(),
            self._newest,  # type: ignore[arg-type]  # None is documented, and missing in the types
            require_client_authentication=self._authority is not None,
        )

    def context(self) -> ssl.SSLContext:
        """A context with the newest sound files, for servers that are not gRPC."""
        self.reload()
        return self._context

    def reload(self) -> None:
        """Read the files again if they changed. Those that are not sound are not used."""
        self._read_if_changed()
        self._check_expiry()

    def _read_if_changed(self) -> None:
        with self._lock:
            stamp = self._look()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self._files, self._context = self._read()
            except ImpossibleSetup as error:
                self._warnings.set(_TOPIC, f"{error} New connections still use what was read before. Repair the files.")
                return
        self._warnings.clear(_TOPIC)
        _log.info("The certificate %s was read again.", self._certificate)

    def _check_expiry(self) -> None:
        """Warn in time: a certificate that has expired locks every client out."""
        expiry = expiry_of(self._files[1])
        days = (expiry.timestamp() - self._wall_clock()) / 86_400
        if days >= _DAYS:
            self._warnings.clear(_EXPIRY)
            return
        # The date and no number of days: a text that changes would be logged again each time.
        text = f"expires on {expiry:%Y-%m-%d}" if days > 0 else f"expired on {expiry:%Y-%m-%d}: clients refuse it"
        self._warnings.set(
            _EXPIRY, f"The certificate {self._certificate} {text}. Replace the file; it is read without a restart."
        )

    def _newest(self) -> grpc.ServerCertificateConfiguration | None:
        """For gRPC, before a handshake: None for what it has already."""
        self.reload()
        return None if self._files is self._handed_over else self._configuration()

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        self._handed_over = self._files
        key, certificate, authority = self._handed_over
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)

    def _read(self) -> tuple[_Pem, ssl.SSLContext]:
        context = _context(_existing(self._certificate), _existing(self._key), self._authority)
        authority = self._authority.read_bytes() if self._authority is not None else None
        return (self._key.read_bytes(), self._certificate.read_bytes(), authority), context

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        paths = (self._certificate, self._key, self._authority)
        return tuple(_stamp(path) for path in paths if path is not None)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        seen = path.stat()
    except OSError:
        return 0, 0, 0
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _context(certificate: Path, key: Path, authority: Path | None) -> ssl.SSLContext:
    """Load the files: gRPC would only report that it cannot listen."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A server has no terminal to ask for the password of a key.
        context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError) as error:
        raise ImpossibleSetup(
            f"{certificate} and {key} are not a certificate and its private key, both as PEM and without a password: "
            f"{_reason(error)}."
        ) from error
    if authority is not None:
        try:
            context.load_verify_locations(_existing(authority))
        except (ssl.SSLError, OSError) as error:
            raise ImpossibleSetup(f"{authority} is no PEM certificate of an authority: {_reason(error)}.") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _reason(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ImpossibleSetup(f"{path} does not exist, or is not a file.")
    return path
