"""Where the page is served, and under which names browsers may ask for it."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from rl4sys.ui.browser_sessions import SHORTEST_TOKEN
from rl4sys.wire.addresses import host_and_port

DEFAULT_LISTEN = "127.0.0.1:8265"
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")


class UnsafeAddress(ValueError):
    """An address that is not valid, not free, or not safe."""


@dataclass(frozen=True, slots=True)
class PageAddress:
    """An address with what protects it."""

    listen: str = DEFAULT_LISTEN
    certificate: Path | None = None
    key: Path | None = None
    token_file: Path | None = None
    """Tokens that people sign in with, one in each line."""
    names: tuple[str, ...] = ()
    """More names of this machine that browsers may ask for, such as `lab.example.com`."""

    def __post_init__(self) -> None:
        if host_and_port(self.listen) is None:
            raise UnsafeAddress(f"--listen: got '{self.listen}'; expected HOST:PORT, such as {DEFAULT_LISTEN}.")
        if (self.certificate is None) != (self.key is None):
            raise UnsafeAddress("--page-cert and --page-key belong together. Give both, or neither.")
        missing = [
            option
            for option, value in (
                ("--page-cert and --page-key", self.certificate),
                ("--page-token-file", self.token_file),
            )
            if value is None
        ]
        if missing and not self.is_local:
            raise UnsafeAddress(
                f"--listen {self.listen} lets other machines in: that needs TLS and a token. "
                f"Give {' and '.join(missing)} as well, or listen on 127.0.0.1 and use `ssh -L`."
            )

    @property
    def host(self) -> str:
        """Without brackets."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect to it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @property
    def scheme(self) -> str:
        """Of its URL."""
        return "http" if self.certificate is None else "https"

    def authorities(self, port: int) -> frozenset[str]:
        """What the Host header of a request may be: other names are those of pages that try to reach this one."""
        names = [*self.names, *_LOCAL_NAMES]
        if not self.is_local:
            names += [_bracketed(self.host), socket.gethostname()]
        default = 443 if self.certificate is not None else 80
        plain = {name.lower() for name in names} if port == default else set()
        return frozenset({f"{name.lower()}:{port}" for name in names} | plain)

    def url(self, port: int) -> str:
        """The address for a browser on this machine, or with the first name for others."""
        host = self.names[0] if self.names else _bracketed(self.host)
        if not self.names and self.host in _EVERYWHERE:
            host = socket.gethostname()
        return f"{self.scheme}://{host}:{port}"

    def bind(self) -> socket.socket:
        """A listening socket; raises `UnsafeAddress` in one sentence if there is none to be had."""
        _, _, port = self.listen.rpartition(":")
        try:
            found = socket.getaddrinfo(self.host, int(port), type=socket.SOCK_STREAM)[0]
            bound = socket.socket(found[0], found[1], found[2])
            try:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind(found[4])
                bound.listen(128)
            except OSError:
                bound.close()
                raise
        except OSError as error:
            raise UnsafeAddress(
                f"Cannot listen on {self.listen}: {error.strerror or error}. "
                "End the process that uses it, or choose another --listen."
            ) from None
        return bound

    def require_certificate(self) -> None:
        """Raise `UnsafeAddress` unless certificate and key can be used."""
        if self.certificate is None or self.key is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except OSError as error:
            raise UnsafeAddress(
                f"{self.certificate} and {self.key} are not a certificate and its key: {error}. Give two PEM files."
            ) from None

    def tokens(self) -> tuple[str, ...]:
        """The lines of the token file; none without one."""
        if self.token_file is None:
            return ()
        try:
            lines = self.token_file.read_text().splitlines()
        except OSError as error:
            raise UnsafeAddress(f"--page-token-file {self.token_file}: {error.strerror}.") from None
        tokens = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
        if not tokens:
            raise UnsafeAddress(
                f"--page-token-file {self.token_file} has no token. Write one of at least {SHORTEST_TOKEN} characters "
                "in its first line; `rl4sys token new --role viewer` makes one."
            )
        return tokens


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
