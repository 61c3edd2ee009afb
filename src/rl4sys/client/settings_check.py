"""Checks settings that fit together only if several of them agree."""

from __future__ import annotations

import socket
from dataclasses import replace

from rl4sys.client.client_settings import DEFAULT_SERVER, ClientSettings
from rl4sys.client.section import SettingsError
from rl4sys.wire import ContractViolation, require_name
from rl4sys.wire.addresses import host_and_port
from rl4sys.wire.port_range import learner_name, own_address


def checked(settings: ClientSettings) -> ClientSettings:
    """The settings with a client_id and with the address of the process that has the learner of this client."""
    client_id = _name("client_id", settings.client_id or _host())
    _name("policy_id", settings.policy_id)
    server = own_address(settings.server, learner_name(client_id, settings.policy_id))
    settings = replace(settings, client_id=client_id, server=server)
    _require_address(settings.server)
    if settings.algorithm and settings.experiment:
        raise SettingsError("algorithm and experiment are both given; name an experiment, or describe an algorithm.")
    if settings.token and not (settings.token.isascii() and settings.token.isprintable()):
        raise SettingsError(
            "token: it contains characters other than printable ASCII, which cannot be sent. Correct it."
        )
    has_token = bool(settings.token) or settings.token_file is not None
    if has_token and settings.tls is None and not settings.insecure and not _is_local(settings.server):
        raise SettingsError(
            f"server: the token would be sent to {settings.server} unencrypted. Add `tls: {{ca: FILE}}`, or "
            f"`insecure: true` if the network itself is safe."
        )
    return settings


def _require_address(server: str) -> None:
    if server.startswith(("unix:", "inproc://")):
        return
    _, port = host_and_port(server) or ("", 0)
    if port == 0:
        raise SettingsError(
            f"server: got '{server}'; expected host:port, such as {DEFAULT_SERVER}, host:first-last for a server of "
            f"several processes, unix:/path or inproc://name."
        )


def _is_local(server: str) -> bool:
    # A name such as 127.example.org is that of another machine.
    is_loopback = server.startswith("127.") and set(server) <= set("0123456789.:")
    return is_loopback or server.startswith(("unix:", "inproc:", "localhost:", "[::1]:"))


def _name(what: str, name: str | None) -> str:
    if not name:
        return ""
    try:
        return require_name(what, name)
    except ContractViolation as error:
        raise SettingsError(str(error)) from error


def _host() -> str:
    """The host name, which names a client without a client_id."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in socket.gethostname()).lstrip(".")
