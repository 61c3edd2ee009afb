"""The config of Atari games."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import gymnasium
from pydantic import Field, field_validator, model_validator

from rl4sys.environments.atari import Atari, Play
from rl4sys.environments.atari_games import game_name, load_game
from rl4sys.environments.atari_wrappers import EpisodicLife, RewardSign
from rl4sys.environments.config import EnvironmentConfig, register_environment
from rl4sys.environments.exactness import Grade
from rl4sys.environments.grading import probe
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.wrappers import PIXELS, PixelStack
from rl4sys.seeding import Seeds


@register_environment("atari")
class AtariConfig(EnvironmentConfig):
    """A game of the Atari 2600, played and seen as in the literature (needs the extra `rl4sys[atari]`)."""

    frame_skip: int = Field(4, ge=1, le=60)
    """Hold each action for this many of the 60 frames of a second. More makes decisions rarer and coarser."""
    noop_max: int = Field(30, ge=0)
    """Begin a game with a random number of frames without an action, from 1 to this. More starts differ more."""
    size: int = Field(84, ge=16, le=160)
    """Height and width of the grey image in pixels. Larger images show more, and each step costs size² as much."""
    stack: int = Field(4, ge=1, le=64)
    """See the newest images, this many along the channels, the newest last, so that motion is visible."""
    sticky_actions: float = Field(0.0, ge=0.0, lt=1.0)
    """The probability in each frame that the action before stays in force; 0.25 in arXiv:1709.06009. More is harder."""
    full_action_set: bool = False
    """Offer all 18 actions of the joystick, not only those that do something in the game."""
    fire_reset: bool = True
    """Press FIRE when a game starts and after each lost life, where the game has that button."""
    episodic_life: bool = True
    """In learning, end an episode at each lost life. Evaluations and reported returns are of whole games."""
    clip_rewards: bool = True
    """In learning, replace rewards by their signs. Evaluations and reported returns have the game's own rewards."""
    max_frames: int = Field(108_000, ge=1)
    """Truncate a game after this many frames: 108,000 are half an hour."""

    @field_validator("name")
    @classmethod
    def _one_spelling(cls, name: str) -> str:
        return game_name(name)

    @model_validator(mode="after")
    def _leaves_time_to_play(self) -> Self:
        start = self.noop_max + 2 * self.frame_skip
        if self.max_frames <= start:
            raise ValueError(
                f"max_frames={self.max_frames} may end a game before its first step: noop_max and frame_skip take up "
                f"to {start} frames; raise it, or lower them"
            )
        return self

    def maker(self) -> Callable[[], gymnasium.Env[Any, Any]]:
        """Makes one environment."""
        return self._made

    def grade(self, seeds: Seeds) -> Grade:
        """Found by a probe: E0, since the emulator saves its state."""
        return probe(self._made, seeds)

    def lanes(self, seeds: Seeds, count: int, grade: Grade) -> Lanes:
        """Games that are stepped one after another."""
        return Lanes(self._made, count, seeds, grade)

    def for_evaluation(self) -> Self:
        """Whole games with the game's own rewards."""
        return self.model_copy(update={"episodic_life": False, "clip_rewards": False})

    @property
    def frames(self) -> dict[str, int]:
        """The images, newest last."""
        return {PIXELS: self.stack} if self.stack > 1 else {}

    def _made(self) -> gymnasium.Env[Any, Any]:
        play = Play(
            frame_skip=self.frame_skip,
            noop_max=self.noop_max,
            size=self.size,
            sticky=self.sticky_actions,
            presses_fire=self.fire_reset,
            uses_all_actions=self.full_action_set,
        )
        game = Atari(load_game(self.name, self.max_frames), play)
        environment: gymnasium.Env[Any, Any] = EpisodicLife(game) if self.episodic_life else game
        if self.clip_rewards:
            environment = RewardSign(environment)
        return PixelStack(environment, self.stack) if self.stack > 1 else environment
