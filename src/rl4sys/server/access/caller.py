"""A caller: its role, the client ids that it may use and the policies that it may join."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from rl4sys.server.options import Rates
from rl4sys.wire.calls import CallFailed, Code


class Role(StrEnum):
    """What a caller may do; each role may also do what the roles before it may."""

    VIEWER = "viewer"
    """Ask for the status."""
    CLIENT = "client"
    """Train and act."""
    OPERATOR = "operator"
    """Manage learners and give orders to their clients."""

    def includes(self, other: Role) -> bool:
        """Whether it may do what another role may."""
        roles = list(Role)
        return roles.index(self) >= roles.index(other)


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller that is allowed to call, and what its token permits."""

    patterns: tuple[str, ...] = ("*",)
    """Client ids, with `*` and `?`, that it may use."""
    peer: str = ""
    """Its network address; empty within one process."""
    policies: tuple[str, ...] | None = None
    """Policy ids, with `*` and `?`, that it may join; None for those that its client patterns match."""
    token: str = ""
    """An identifier of the token, not the token itself; empty where none is required."""
    rates: Rates | None = None
    """The rates of its token; None for the default of the server."""
    role: Role = Role.CLIENT
    name: str = ""
    """What the token file calls it, for logs and audits; empty if it has no name there."""

    @property
    def who(self) -> str:
        """The caller in one word, for logs and audits: its name, its token's identifier or its address."""
        return self.name or self.token or self.peer or "in-process"

    def require_role(self, role: Role, call: str) -> None:
        """Raise PERMISSION_DENIED unless it may do what a role may."""
        if self.role.includes(role):
            return
        has = f"this token has the role {self.role}. Use another, or write role={role} in its line of the token file."
        if not self.token:
            has = (
                f"callers from other machines have the role {self.role} without a token. Call from the server's "
                f"machine, or give the server a token file with a line of role={role}."
            )
        raise CallFailed(Code.PERMISSION_DENIED, f"{call} needs the role {role}; {has}")

    def may_use(self, client: str) -> bool:
        """Whether it may call as this client."""
        return _matches(client, self.patterns)

    def may_join(self, policy_id: str) -> bool:
        """Whether it may share the learner of a policy. A client's own learner has no policy id."""
        return not policy_id or _matches(policy_id, self.patterns if self.policies is None else self.policies)

    def require(self, client: str, policy_id: str) -> None:
        """Raise PERMISSION_DENIED unless it may call as the client and join the policy."""
        if not self.may_use(client):
            raise CallFailed(
                Code.PERMISSION_DENIED,
                f"This token may not be used by client '{client[:128]}'. Use its own, or add its name to the server's "
                f"token file.",
            )
        if not self.may_join(policy_id):
            raise CallFailed(
                Code.PERMISSION_DENIED,
                f"This token may not join policy_id '{policy_id[:128]}'. Use another, or add "
                f"policies={policy_id[:128]} to its line in the server's token file.",
            )


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


ANYONE = Caller(role=Role.OPERATOR)
"""A caller within one process."""
