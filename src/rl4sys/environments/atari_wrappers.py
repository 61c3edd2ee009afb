"""How learning sees Atari games: an episode is a life, a reward its sign. Reported returns are those of whole games."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rl4sys.environments.atari import Atari
from rl4sys.environments.episodes import WHOLE_EPISODE
from rl4sys.state import State, require


class EpisodicLife(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Ends the episode at a lost life, as a termination; the next one continues the same game."""

    def __init__(self, environment: Atari) -> None:
        super().__init__(environment)
        self._atari = environment
        self._observation: Any = None
        self._lives, self._continues = 0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        info: dict[str, Any] = {}
        if seed is not None or not self._continues:
            self._observation, info = self.env.reset(seed=seed, options=options)
        self._lives, self._continues = self._atari.lives, False
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._observation, reward, terminated, truncated, info = self.env.step(action)
        lives, self._lives = self._lives, self._atari.lives
        # Some games show no lives for a few frames before they end (Q*bert): that is no episode of its own.
        self._continues = 0 < self._lives < lives and not (terminated or truncated)
        if self._continues:
            return self._observation, reward, True, False, {**info, WHOLE_EPISODE: None}
        return self._observation, reward, terminated, truncated, info

    def get_state(self) -> State:
        """The lives at the last step, and what a game that continues begins with."""
        observation = dict(self._observation) if self._continues else {}
        return {"lives": self._lives, "continues": self._continues, "observation": observation}

    def set_state(self, state: State) -> None:
        """Continue from what `get_state` returned."""
        require(state, "lives", "continues", "observation")
        self._lives, self._continues = state["lives"], state["continues"]
        self._observation = dict(state["observation"])


class RewardSign(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Clips rewards to −1, 0 or 1, so that one learning rate suits games with scores of any size."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(np.sign(float(reward))), terminated, truncated, info
