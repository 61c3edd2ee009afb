"""What chooses in the proxy: a rule, the policy that learns, or the learned policy; policies behind a guard."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rl4sys.client import Agent
from rl4sys.environments.balancing.backend_view import BackendView, context, rows
from rl4sys.environments.balancing.balancing_guard import BalancingGuard
from rl4sys.environments.balancing.rules import Rule


class RuleChooser:
    """Follows a rule."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def choose(self, views: list[BackendView], kind: int, now: float) -> tuple[int, int | None]:
        """The choice of the rule."""
        return self._rule(views, kind, now), None

    def finished(self, decision: int | None, latency: float) -> None:
        """Do nothing: a rule does not learn."""


class LearningChooser:
    """Explores, or follows the safe rule where the guard steps in, and rewards the decision when the answer comes.

    The safe rule also decides until the policy has imitated it; its decisions are recorded as the incumbent's. It is a
    task without an end: one episode for as long as the proxy runs.
    """

    def __init__(self, agent: Agent, guard: BalancingGuard, safe: Rule, is_ready: Callable[[], bool]) -> None:
        """`is_ready`: whether the policy has imitated the safe rule."""
        self._guard, self._safe, self._is_ready = guard, safe, is_ready
        self._episode = agent.episode()

    def choose(self, views: list[BackendView], kind: int, now: float) -> tuple[int, int | None]:
        """The backend, and the id of the decision."""
        observation = _observation(views, kind, now)
        if not self._is_ready() or self._guard.steps_in(views, now):
            choice = self._safe(views, kind, now)
            self._episode.took(observation, choice)
        else:
            choice = int(self._episode.act(observation))
        return choice, self._episode.decision

    def finished(self, decision: int | None, latency: float) -> None:
        """Reward a decision by minus the root of the latency, which large requests do not dominate."""
        if decision is not None:
            self._episode.reward(-math.sqrt(latency), decision, final=True)


def guarded_rule(act: Callable[[dict[str, Any]], Any], guard: BalancingGuard, safe: Rule) -> Rule:
    """A policy as a rule: the safe one decides where the guard steps in."""

    def choose(views: list[BackendView], kind: int, now: float) -> int:
        if guard.steps_in(views, now):
            return safe(views, kind, now)
        return int(act(_observation(views, kind, now)))

    return choose


def fewest_in_flight(observation: dict[str, Any]) -> int:
    """Least connections for an observation: the fallback of the agent."""
    return int(observation["candidates"][:, 0].argmin())


def _observation(views: list[BackendView], kind: int, now: float) -> dict[str, Any]:
    return {"candidates": rows(views, kind, now), "context": context(kind)}
