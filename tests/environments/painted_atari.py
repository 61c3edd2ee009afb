"""A painted Atari game that needs no ROM: its rules are simple enough to say what every frame must show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rl4sys.environments.atari import Atari, Play

HEIGHT, WIDTH = 210, 160
LEFT, RIGHT = 20, 200
"""How bright the objects are, of which each frame shows one."""


@dataclass(frozen=True)
class Button:
    value: int


class PaintedState:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def serialize(self) -> bytes:
        return self._data


class PaintedGame:
    """Each life lasts `life` frames. Button 3 earns 3 points a frame and button 4 costs 2.

    The middle of the screen is as bright as the number of the frame; on its left and right are objects that flicker:
    even frames show the left one, odd frames the right one.
    """

    def __init__(
        self, limit: int = 108_000, *, lives: int = 3, life: int = 40, buttons: tuple[int, ...] = (0, 1, 3, 4)
    ) -> None:
        self._limit, self._lives, self._life, self._buttons = limit, lives, life, buttons
        self.frame = 0
        self.held: list[int] = []
        """The button of every frame of the game."""

    def reset_game(self) -> None:
        self.frame, self.held = 0, []

    def act(self, action: int) -> int:
        if self.game_over(with_truncation=True):
            return 0
        self.frame += 1
        self.held.append(action)
        return {3: 3, 4: -2}.get(action, 0)

    def lives(self) -> int:
        return max(self._lives - self.frame // self._life, 0)

    def game_over(self, *, with_truncation: bool) -> bool:
        return self.lives() == 0 or (with_truncation and self.game_truncated())

    def game_truncated(self) -> bool:
        return self.frame >= self._limit

    def getMinimalActionSet(self) -> list[Button]:
        return [Button(value) for value in self._buttons]

    def getLegalActionSet(self) -> list[Button]:
        return [Button(value) for value in range(18)]

    def getScreenDims(self) -> tuple[int, int]:
        return HEIGHT, WIDTH

    def getScreenGrayscale(self, buffer: Any) -> None:
        buffer[:] = self.frame % 256
        buffer[:, :40] = LEFT * (self.frame % 2 == 0)
        buffer[:, -40:] = RIGHT * (self.frame % 2 == 1)

    def getScreenRGB(self) -> Any:
        return np.full((HEIGHT, WIDTH, 3), self.frame % 256, np.uint8)

    def cloneSystemState(self) -> PaintedState:
        return PaintedState(np.array([self.frame, *self.held], np.int64).tobytes())

    def restoreSystemState(self, state: PaintedState) -> None:
        self.frame, *self.held = np.frombuffer(state.serialize(), np.int64).tolist()


def painted(game: PaintedGame, **play: Any) -> Atari:
    """An environment of a painted game; it starts with its first frame unless told otherwise."""
    return Atari(game, Play(**{"noop_max": 0, "presses_fire": False, **play}))


def shown(observation: Any) -> list[int]:
    """How bright the left object, the middle and the right object are in the newest image."""
    image = observation["pixels"][..., -1]
    return [int(image[42, column]) for column in (5, 42, 78)]
