"""MinAtar games (arXiv:1903.03176) as environments, registered as MinAtar/Breakout-v1 and so on.

MinAtar is not installed with RL4Sys: it is GPL software, and brings pandas, scipy and seaborn. Install it with
`pip install minatar`, and list this file under `plugins`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from minatar import Environment

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
LONGEST = 10_000
"""Steps after which a game is truncated: a perfect player of Breakout never loses the ball."""


class MinAtar(gymnasium.Env[Any, Any]):
    """One game: 10 × 10 fields, a channel for each kind of object. All chance comes from `np_random`."""

    def __init__(self, game: str, sticky_actions: float = 0.1) -> None:
        self._game = Environment(game, sticky_action_prob=sticky_actions)
        self._actions = self._game.minimal_action_set()
        self.action_space = spaces.Discrete(len(self._actions))
        self.observation_space = spaces.Box(0.0, 1.0, tuple(self._game.state_shape()), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._game.seed(int(self.np_random.integers(2**31)))
        # The game would keep the last action of the episode before, and a replayed episode would differ.
        self._game.last_action = 0
        self._game.reset()
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward, is_over = self._game.act(self._actions[action])
        return self._seen(), float(reward), bool(is_over), False, {}

    def _seen(self) -> Any:
        return self._game.state().astype(np.float32)


for name in GAMES:
    gymnasium.register(
        f"MinAtar/{name.title().replace('_', '')}-v1",
        entry_point=MinAtar,
        max_episode_steps=LONGEST,
        kwargs={"game": name},
    )
