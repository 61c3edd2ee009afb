"""A lane: consecutive episodes that share a stream and its random numbers."""

from __future__ import annotations

from typing import Any

from rl4sys.experience import StreamKey
from rl4sys.policy import StreamNoise


class Lane:
    """A stream of consecutive episodes with its own random numbers."""

    __slots__ = ("_first_step", "decisions", "episode", "noise", "path", "stream")

    def __init__(self, stream: StreamKey, seed: int, first_episode: int, first_step: int = 0) -> None:
        self.stream = stream
        self.episode = first_episode - 1
        self.decisions = 0
        """Decisions of the policy in this lane: the step for which random numbers are drawn."""
        self.noise = StreamNoise(seed, stream)
        self.path: Any = None
        """The native path of its open episode; None without one."""
        self._first_step = first_step

    @property
    def all_decisions(self) -> int:
        """Also those that the native path has taken, and the record has not taken over yet."""
        path = self.path
        return self.decisions if path is None else self.decisions + int(path.taken)

    @property
    def step(self) -> int:
        """The step for which a server draws random numbers: it has one seed, so every start begins at another step."""
        return self._first_step + self.decisions
