"""Servers of several processes: a range of ports, and the rule by which learners are divided among them.

The rule is the same in every client and server: a learner belongs to the process number CRC-32(name) modulo the number
of processes, and process number 0 has the first port.
"""

from __future__ import annotations

from zlib import crc32

from rl4sys.wire.addresses import host_and_port

_SHARED = "shared~"


def learner_name(client: str, policy_id: str) -> str:
    """The learner that a client trains: that of its policy_id, or its own. No client name contains a tilde."""
    return f"{_SHARED}{policy_id}" if policy_id else client


def shared_policy(learner: str) -> str | None:
    """The policy_id that a learner was created for; None if it belongs to one client."""
    return learner.removeprefix(_SHARED) if learner.startswith(_SHARED) else None


def process_of(learner: str, processes: int) -> int:
    """The number of the process that a learner belongs to."""
    return crc32(learner.encode()) % processes


def addresses_of(server: str) -> list[str] | None:
    """The addresses of HOST:FIRST-LAST, in the order of the processes; None for an address without a range."""
    start, dash, last = server.rpartition("-")
    first = host_and_port(start) if dash else None
    if first is None or not (last.isascii() and last.isdigit()):
        return None
    host = start.rpartition(":")[0]
    ports = range(first[1], int(last) + 1)
    found = [f"{host}:{port}" for port in ports]
    return found if len(found) > 1 and all(host_and_port(each) for each in found) else None


def own_address(server: str, learner: str) -> str:
    """The address of the process that serves a learner; one without a range is returned as it is."""
    addresses = addresses_of(server)
    return server if addresses is None else addresses[process_of(learner, len(addresses))]
