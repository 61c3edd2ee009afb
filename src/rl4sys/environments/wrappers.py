"""Wrappers that change how an environment is seen and stepped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.environments.spaces import UnsupportedSpace
from rl4sys.experience import Array
from rl4sys.state import State

PIXELS = "pixels"
"""The observation array that holds the image."""


class FrameSkip(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Repeats each action and adds up the rewards, ending early where the episode does."""

    def __init__(self, environment: gymnasium.Env[Any, Any], repeats: int) -> None:
        super().__init__(environment)
        self._repeats = repeats

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for _ in range(self._repeats):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info


class ChosenNumbers(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows only some numbers of a vector, such as positions without velocities."""

    def __init__(self, environment: gymnasium.Env[Any, Any], chosen: Sequence[int]) -> None:
        super().__init__(environment)
        shown = environment.observation_space
        if not isinstance(shown, spaces.Box) or len(shown.shape) != 1:
            raise UnsupportedSpace(
                f"environment.observe chooses among the numbers of one vector, and this environment shows {shown}. "
                f"Leave it out, or set environment.flatten_obs=true for a dict of vectors."
            )
        if wrong := [place for place in chosen if place >= shown.shape[0]]:
            raise UnsupportedSpace(
                f"environment.observe names number {wrong[0]}, counted from 0, and this environment shows "
                f"{shown.shape[0]} numbers."
            )
        self._chosen = np.array(chosen)
        low, high = shown.low[self._chosen], shown.high[self._chosen]
        self.observation_space = spaces.Box(low, high, dtype=shown.dtype.type)

    def observation(self, observation: Any) -> Array:
        shown: Array = np.asarray(observation)[self._chosen]
        return shown


class PixelObservation(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows what the environment draws, uint8 [size, size, 3], instead of or beside its own observation."""

    def __init__(self, environment: gymnasium.Env[Any, Any], size: int, *, keep_state: bool) -> None:
        super().__init__(environment)
        self._size, self._keep_state = size, keep_state
        self._shrink: AreaAverage | None = None
        self._is_dict = isinstance(environment.observation_space, spaces.Dict)
        state = self._named(environment.observation_space) if keep_state else {}
        if PIXELS in state:
            raise ValueError(f"The environment shows '{PIXELS}' already; leave the setting pixels out.")
        self.observation_space = spaces.Dict({PIXELS: spaces.Box(0, 255, (size, size, 3), np.uint8), **state})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._seen(observation), reward, terminated, truncated, info

    def _seen(self, observation: Any) -> dict[str, Any]:
        image = np.asarray(self.env.render())
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise ValueError(
                f"The environment drew {image.dtype} {list(image.shape)}; an image is uint8 [height, width, 3]. "
                f"Leave the setting pixels out, or choose an environment that draws with render_mode=rgb_array."
            )
        if image.shape[:2] != (self._size, self._size):
            if self._shrink is None:
                self._shrink = AreaAverage(image.shape[0], image.shape[1], self._size)
            image = self._shrink(image)
        return {PIXELS: image, **(self._named(observation) if self._keep_state else {})}

    def _named(self, state: Any) -> dict[str, Any]:
        return dict(state) if self._is_dict else {"observation": state}


class PixelStack(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Stacks the newest images along the channels, the oldest first, so that one observation shows motion.

    An episode begins with its first image repeated. The images are saved with the environment.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any], count: int) -> None:
        super().__init__(environment)
        self._count = count
        shown = environment.observation_space
        if not isinstance(shown, spaces.Dict):
            raise TypeError(f"PixelStack wraps what PixelObservation shows; got {shown}.")
        height, width, channels = shown[PIXELS].shape or ()
        stacked = spaces.Box(0, 255, (height, width, count * channels), np.uint8)
        self.observation_space = spaces.Dict({**shown.spaces, PIXELS: stacked})
        self._images: Array = np.zeros(stacked.shape, np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._images = np.tile(observation[PIXELS], self._count)
        return {**observation, PIXELS: self._images}, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        newest = observation[PIXELS]
        channels = newest.shape[2]
        # A new array: what was shown before stays as it was. In memory the channels of a pixel lie side by side, so
        # one shift of all bytes moves every image on.
        images = np.empty_like(self._images)
        images.reshape(-1)[:-channels] = self._images.reshape(-1)[channels:]
        images[..., -channels:] = newest
        self._images = images
        return {**observation, PIXELS: self._images}, reward, terminated, truncated, info

    def get_state(self) -> State:
        """The images that the next step still shows."""
        return {"pictures": self._images.copy()}

    def set_state(self, state: State) -> None:
        """Continue from saved images."""
        self._images = np.array(state["pictures"], np.uint8)


class VectorStack(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows the newest vectors side by side, the oldest first, so that one observation shows motion.

    An episode begins with its first vector repeated. The vectors are saved with the environment.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any], count: int) -> None:
        super().__init__(environment)
        shown = environment.observation_space
        if not isinstance(shown, spaces.Box) or len(shown.shape) != 1:
            raise UnsupportedSpace(
                f"environment.frame_stack stacks vectors, and this environment shows {shown}. Use pixels.stack for "
                f"images, or environment.flatten_obs=true for a dict of vectors."
            )
        self._count = count
        low, high = np.tile(shown.low, count), np.tile(shown.high, count)
        self.observation_space = spaces.Box(low, high, dtype=shown.dtype.type)
        self._vectors: Array = np.zeros(low.shape, shown.dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._vectors = np.tile(observation, self._count)
        return self._vectors, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._vectors = np.concatenate([self._vectors[len(observation) :], observation])
        return self._vectors, reward, terminated, truncated, info

    def get_state(self) -> State:
        """The vectors that the next step still shows."""
        return {"vectors": self._vectors.copy()}

    def set_state(self, state: State) -> None:
        """Continue from saved vectors."""
        self._vectors = np.array(state["vectors"], self._vectors.dtype)


class AreaAverage:
    """Scales images to a square; each new pixel is the mean of the area that it covers."""

    def __init__(self, height: int, width: int, size: int) -> None:
        self._rows, self._columns = _shares(height, size), _shares(width, size)

    def __call__(self, image: Array) -> Array:
        """From [height, width, 3] to uint8 [size, size, 3]."""
        height, width, _ = image.shape
        rows = self._rows @ image.reshape(height, -1).astype(np.float32)
        columns = np.tensordot(rows.reshape(-1, width, 3), self._columns, (1, 1))
        return np.ascontiguousarray(np.rint(columns.transpose(0, 2, 1))).astype(np.uint8)


def _shares(length: int, size: int) -> Array:
    """How much of each old pixel goes into each new one, [size, length]; rows sum to 1."""
    edges = np.arange(size + 1) * (length / size)
    old = np.arange(length)
    overlap = np.minimum(edges[1:, None], old + 1) - np.maximum(edges[:-1, None], old)
    return np.asarray(np.maximum(overlap, 0.0) * (size / length), np.float32)
