"""How the pages reach training servers: as any client, with a token and TLS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.settings import parse_settings

_NAME = "page"


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """What is sent to every server that the pages show."""

    token: str | None = None
    token_file: Path | None = None
    """A file with the token in its first line; the role viewer is enough."""
    operator_token_file: Path | None = None
    """A file with the token of an operator, for commands. Without one they are offered only where no token is used at
    all: such a server takes its own machine for the operator."""
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False

    def viewer(self, server: str) -> ClientSettings:
        """The settings for looking at a server; raises `SettingsError` for what is wrong with them."""
        return self._settings(server, self.token, self.token_file)

    def operator(self, server: str) -> ClientSettings | None:
        """The settings for commands; None if there is no right to give any."""
        if self.operator_token_file is not None:
            return self._settings(server, None, self.operator_token_file)
        return None if self.token or self.token_file else self._settings(server, None, None)

    def _settings(self, server: str, token: str | None, token_file: Path | None) -> ClientSettings:
        files = (("ca", self.tls_ca), ("cert", self.tls_cert), ("key", self.tls_key))
        tls = {name: str(path) for name, path in files if path}
        values: dict[str, Any] = {"client_id": _NAME, "server": server, "token": token, "insecure": self.insecure}
        if token_file is not None:
            values["token_file"] = str(token_file)
        return parse_settings(values | ({"tls": tls} if tls else {}))
