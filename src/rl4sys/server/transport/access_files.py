"""The files that decide who may call: tokens and certificates."""

from __future__ import annotations

from pathlib import Path

from rl4sys.server.access.tokens import TokenFile
from rl4sys.server.options import ImpossibleSetup
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.transport.certificates import Certificates


class AccessFiles:
    """The token file and the certificates of a server, as far as it has them, and warnings about them."""

    def __init__(self, token_file: Path | None, cert: Path | None, key: Path | None, client_ca: Path | None) -> None:
        """Raises `ImpossibleSetup` for a file that cannot be used."""
        self.warnings = ServerWarnings()
        self.tokens: TokenFile | None = None
        if token_file is not None:
            if not token_file.is_file():
                raise ImpossibleSetup(f"{token_file} does not exist, or is not a file.")
            self.tokens = TokenFile(token_file, warnings=self.warnings)
        self.certificates: Certificates | None = None
        if cert is not None and key is not None:
            self.certificates = Certificates(cert, key, client_ca, self.warnings)

    def reload(self) -> None:
        """Read those again that changed, without waiting for the next call."""
        if self.tokens is not None:
            self.tokens.reload()
        if self.certificates is not None:
            self.certificates.reload()
