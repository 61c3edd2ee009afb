"""A caller, with the client ids that it may use and the policies that it may join."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from rl4sys.server.options import Rates
from rl4sys.wire.calls import CallFailed, Code


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


ANYONE = Caller()
"""A caller within one process, or of a server that requires no token."""
