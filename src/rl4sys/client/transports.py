"""Chooses the transport for a server address."""

from __future__ import annotations

from rl4sys.client.section import SettingsError
from rl4sys.client.settings import ClientSettings
from rl4sys.suggestions import did_you_mean
from rl4sys.wire.calls import Transport

_IN_PROCESS = "inproc://"
_published: dict[str, Transport] = {}


def publish_in_process(name: str, transport: Transport) -> None:
    """Register a transport as `server: inproc://NAME` within this process."""
    _published[name] = transport


def withdraw_in_process(name: str) -> None:
    """Remove a registered transport."""
    _published.pop(name, None)


def transport_for(settings: ClientSettings) -> Transport:
    """A transport for one client, which may close it."""
    address = settings.server
    if address.startswith(_IN_PROCESS):
        name = address.removeprefix(_IN_PROCESS)
        if name not in _published:
            raise SettingsError(
                f"server: no transport named '{name}' is published in this process{did_you_mean(name, _published)}. "
                f"Start the embedded server first, or give `host:port`."
            )
        return _Shared(_published[name])
    # Imported here: a client within the server's process needs no grpcio.
    from rl4sys.client.grpc_transport import GrpcTransport

    return GrpcTransport(settings)


class _Shared:
    """A transport that several clients share: one client closing it leaves it open for the others."""

    def __init__(self, transport: Transport) -> None:
        self.join, self.push, self.pull = transport.join, transport.push, transport.pull
        self.watch, self.act, self.status = transport.watch, transport.act, transport.status

    def close(self) -> None:
        """Do nothing: other clients may still use the transport."""
