"""Who is calling, which client ids they may use, and which policies they may share."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from rl4sys.server.options import Rates
from rl4sys.wire.calls import CallFailed, Code


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose right to call has been checked."""

    patterns: tuple[str, ...] = ("*",)
    """Client ids, with `*` and `?`, that they may use."""
    peer: str = ""
    """Their network address; empty within one process."""
    policies: tuple[str, ...] | None = None
    """Policy ids, with `*` and `?`, that they may join; None for those that their client patterns match."""
    token: str = ""
    """Tells tokens apart, and is none; empty where nobody was asked for one."""
    rates: Rates | None = None
    """Of their token; None for what the server grants to each."""

    def may_use(self, client: str) -> bool:
        """Whether they may speak for a client."""
        return _matches(client, self.patterns)

    def may_join(self, policy_id: str) -> bool:
        """Whether they may share the learner of a policy. A client's own learner has no policy id."""
        return not policy_id or _matches(policy_id, self.patterns if self.policies is None else self.policies)

    def require(self, client: str, policy_id: str) -> None:
        """Raise PERMISSION_DENIED unless they may speak for the client and share the policy."""
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
"""Within one process, or where the server asks for no token."""
