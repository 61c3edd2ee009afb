"""Where decisions are taken: in the client, or on the server."""

from __future__ import annotations

import enum


class DecisionPlace(enum.StrEnum):
    """The setting `decide`."""

    LOCAL = "local"
    """In the client, with a copy of the policy: no decision waits for the network."""
    SERVER = "server"
    """On the server, which each decision asks with a deadline; for policies that clients cannot run."""
