"""Runs episodes of a Gymnasium environment with an agent, without importing Gymnasium."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rl4sys.client.agent import Agent
from rl4sys.experience import Ending


class Environment(Protocol):
    """The methods of a Gymnasium environment that are used here."""

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Act once."""


def run_environment(agent: Agent, env: Environment, episodes: int = 1, seed: int | None = None) -> Sequence[float]:
    """Act in an environment for a number of episodes and return the return of each.

    An `action_mask` in the environment's info is passed to a policy that takes one.
    """
    masked = any(spec.name == "action_mask" for spec in agent.settings.observation)
    returns: list[float] = []
    for number in range(episodes):
        observation, info = env.reset(seed=seed if number == 0 else None)
        total, over = 0.0, False
        with agent.episode() as episode:
            while not over:
                action = episode.act(observation, info.get("action_mask") if masked else None)
                observation, reward, terminated, truncated, info = env.step(action)
                episode.reward(float(reward))
                total += float(reward)
                over = bool(terminated or truncated)
            episode.end(observation, Ending.TERMINATED if terminated else Ending.TRUNCATED)
        returns.append(total)
    return returns
