"""The two choosers of one policy: the client that learns, and the one that exploits what was learned."""

from __future__ import annotations

from rl4sys.client import Agent, Health
from rl4sys.environments.balancing.balancing_guard import BalancingGuard
from rl4sys.environments.balancing.rules import Rule

from .choosers import LearningChooser, RuleChooser, guarded_rule


class PolicyChoosers:
    """A policy that explores and learns, and the same policy that takes its best choices and records nothing.

    While only the second decides, nothing is recorded and no version is published: the policy stays as it is. It is
    therefore never too old for its guard, and needs no server; the one that learns is, when the server is gone.
    """

    def __init__(self, explorer: Agent, exploiter: Agent, safe: Rule) -> None:
        """`exploiter`: a client of the same policy in `mode: exploit`; `safe`: decides where a guard steps in."""
        self._explorer, self._exploiter = explorer, exploiter
        self.refresh()
        self._learning_guard = BalancingGuard(lambda: self._explorer_health.age)
        self._learned_guard = BalancingGuard(lambda: 0.0 if self.version else None)
        self.learning = LearningChooser(
            explorer, self._learning_guard, safe, is_ready=lambda: bool(self._explorer_health.version)
        )
        episode = exploiter.episode()
        self.learned = RuleChooser(guarded_rule(episode.act, self._learned_guard, safe))

    def refresh(self) -> None:
        """Ask both clients for their health, which is too dear for every request."""
        self._explorer_health, self._exploiter_health = self._explorer.health(), self._exploiter.health()

    @property
    def health(self) -> Health:
        """Of the client that exploits, when it was last asked for."""
        return self._exploiter_health

    @property
    def version(self) -> int | None:
        """The version that the client that exploits has; 0 before the safe rule is imitated."""
        return self._exploiter_health.version

    def counts(self) -> dict[str, dict[str, int]]:
        """Decisions by reason of the guard, `policy` for those it left to the policy."""
        return {"learning": dict(self._learning_guard.counts), "learned": dict(self._learned_guard.counts)}
