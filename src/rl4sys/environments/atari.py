"""Atari games as environments: frames are skipped, pooled and shrunk as in the literature on deep Q-learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.environments.area_resize import AreaResize
from rl4sys.environments.episodes import WHOLE_EPISODE
from rl4sys.environments.wrappers import PIXELS
from rl4sys.experience import Array
from rl4sys.state import State, require

NOOP, FIRE = 0, 1
"""Buttons of the joystick, as the emulator numbers them."""
FRAMES_PER_SECOND = 60


class Emulator(Protocol):
    """What is used of ale-py's `ALEInterface`."""

    def reset_game(self) -> None:
        """Begin a game."""

    def act(self, action: int) -> int:
        """Emulate one frame, unless the game is over; the reward."""

    def lives(self) -> int:
        """How many lives are left."""

    def game_over(self, *, with_truncation: bool) -> bool:
        """Whether the game has ended, by its rules or also by the limit of frames."""

    def game_truncated(self) -> bool:
        """Whether the limit of frames has been reached."""

    def getMinimalActionSet(self) -> Sequence[Any]:
        """The buttons that do something in this game."""

    def getLegalActionSet(self) -> Sequence[Any]:
        """All 18 buttons."""

    def getScreenDims(self) -> Sequence[int]:
        """Height and width of the screen."""

    def getScreenGrayscale(self, buffer: Array) -> None:
        """Write the screen, uint8 [height, width], into an array."""

    def getScreenRGB(self) -> Array:
        """The screen, uint8 [height, width, 3]."""

    def cloneSystemState(self) -> Any:
        """Everything but the screen; an object that is made from the bytes of its `serialize()`."""

    def restoreSystemState(self, state: Any) -> None:
        """Continue from a state."""


@dataclass(frozen=True, slots=True)
class Play:
    """How a game is played and seen."""

    frame_skip: int = 4
    """For how many frames an action is held."""
    noop_max: int = 30
    """A game begins with a random number of frames without an action, from 1 to this; 0 for none."""
    size: int = 84
    """Height and width of what is seen."""
    sticky: float = 0.0
    """The probability in each frame that the action of the frame before stays in force."""
    presses_fire: bool = True
    """Press FIRE at the start of a game and after a lost life, where the game has that button."""
    uses_all_actions: bool = False
    """Offer all 18 actions instead of those that do something in this game."""


class Atari(gymnasium.Env[Any, Any]):
    """One game. An episode is a whole game, a step is `frame_skip` frames, and rewards are those of the game.

    The observation is the array `pixels`, uint8 [size, size, 1]: the brighter of the last two frames, in grey. All
    chance comes from `np_random`. At an ending, `info` has the return and length of the whole game.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": FRAMES_PER_SECOND / 4}
    render_mode = "rgb_array"

    def __init__(self, emulator: Emulator, play: Play) -> None:
        self._emulator, self._play = emulator, play
        actions = emulator.getLegalActionSet() if play.uses_all_actions else emulator.getMinimalActionSet()
        self._actions = [int(action.value) for action in actions]
        self._presses_fire = play.presses_fire and FIRE in self._actions
        height, width = emulator.getScreenDims()
        self._screens: Array = np.zeros((2, height, width), np.uint8)
        self._resize = AreaResize(height, width, play.size)
        self.action_space = spaces.Discrete(len(self._actions))
        self.observation_space = spaces.Dict({PIXELS: spaces.Box(0, 255, (play.size, play.size, 1), np.uint8)})
        self.metadata = {**self.metadata, "render_fps": FRAMES_PER_SECOND / play.frame_skip}
        self.lives = 0
        """How many lives are left."""
        self._held, self._return, self._length = NOOP, 0.0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._begin()
        for _ in range(int(self.np_random.integers(1, self._play.noop_max + 1)) if self._play.noop_max else 0):
            self._emulator.act(NOOP)
            if self._emulator.game_over(with_truncation=True):
                self._begin()
        self._look()
        if self._presses_fire:
            self._return += self._hold(FIRE)
            if self._emulator.game_over(with_truncation=True):
                self._begin()
                self._look()
        self.lives = self._emulator.lives()
        return self._pooled(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        emulator = self._emulator
        reward = self._hold(self._actions[action])
        lives = emulator.lives()
        is_over = emulator.game_over(with_truncation=True)
        if lives < self.lives and self._presses_fire and not is_over:
            reward += self._hold(FIRE)
            is_over = emulator.game_over(with_truncation=True)
        self.lives = lives
        self._return += reward
        self._length += 1
        if not is_over:
            return self._pooled(), reward, False, False, {}
        terminated = emulator.game_over(with_truncation=False)
        return self._pooled(), reward, terminated, not terminated, {WHOLE_EPISODE: (self._return, self._length)}

    def render(self) -> Any:
        return self._emulator.getScreenRGB()

    def get_state(self) -> State:
        """The emulator's own state, and what is counted here."""
        return {
            "emulator": np.frombuffer(self._emulator.cloneSystemState().serialize(), np.uint8).copy(),
            "held": self._held,
            "lives": self.lives,
            "return": self._return,
            "length": self._length,
        }

    def set_state(self, state: State) -> None:
        """Continue from what `get_state` returned."""
        require(state, "emulator", "held", "lives", "return", "length")
        emulator = self._emulator
        # Some games draw only a part of each frame: a screen is complete once the emulator has drawn at least one.
        emulator.act(NOOP)
        emulator.restoreSystemState(type(emulator.cloneSystemState())(state["emulator"].tobytes()))
        self._held, self.lives = state["held"], state["lives"]
        self._return, self._length = state["return"], state["length"]

    def _begin(self) -> None:
        self._emulator.reset_game()
        self._held, self._return, self._length = NOOP, 0.0, 0

    def _look(self) -> None:
        """See the current screen alone."""
        self._emulator.getScreenGrayscale(self._screens[1])
        self._screens[0] = 0

    def _hold(self, action: int) -> float:
        """Hold an action for a step and look at its last two frames; the reward."""
        emulator, frames, sticky = self._emulator, self._play.frame_skip, self._play.sticky
        stays = self.np_random.random(frames) < sticky if sticky else None
        reward = 0
        for frame in range(frames):
            if stays is None or not stays[frame]:
                self._held = action
            reward += emulator.act(self._held)
            if frame >= frames - 2:
                emulator.getScreenGrayscale(self._screens[frame - frames])
        return float(reward)

    def _pooled(self) -> dict[str, Array]:
        """The brighter of the last two frames: some games draw half of their objects in each."""
        # With a frame a step, the first of the two stays black.
        screen = np.maximum(self._screens[0], self._screens[1])
        return {PIXELS: self._resize(screen).copy()[:, :, None]}
