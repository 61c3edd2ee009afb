"""Lets a system ask a library that wants to own the loop: two queues between the system and the library's environment.

Libraries for training call `environment.step`; a live system calls `act`. Here the library's environment waits until
the system asks, and the system waits until the library calls `step`: also while the library is busy with an update.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from threading import Thread
from typing import Any, NamedTuple

import gymnasium


class LoopEnded(Exception):
    """The system, or the library, has ended."""


class Seen(NamedTuple):
    """What the library sees after an action, or at the start of an episode."""

    observation: Any
    reward: float
    terminated: bool = False
    truncated: bool = False


class InvertedLoop:
    """The system's side: `act`, `reward`, `end`, as of an agent. One system thread, one library thread."""

    def __init__(self, train: Callable[[InvertedLoop], None]) -> None:
        """`train` runs the library in a thread of its own, with an `InvertedEnvironment` of this loop."""
        self._seen: queue.SimpleQueue[Seen | None] = queue.SimpleQueue()
        self._actions: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._reward = 0.0
        self.problem: BaseException | None = None
        """What ended the library."""
        self._thread = Thread(target=self._run, args=(train,), name="library", daemon=True)
        self._thread.start()

    def act(self, observation: Any) -> Any:
        """Ask for an action, and wait for it; raises `LoopEnded` if the library has ended."""
        if self.problem is not None:
            raise LoopEnded(f"The library has ended: {self.problem!r}")
        self._seen.put(Seen(observation, self._take_reward()))
        action = self._actions.get()
        if isinstance(action, BaseException):
            raise LoopEnded(f"The library has ended: {action!r}") from action
        return action

    def reward(self, value: float) -> None:
        """Add to the reward of the latest action."""
        self._reward += value

    def end(self, observation: Any, *, truncated: bool) -> None:
        """End the episode."""
        self._seen.put(Seen(observation, self._take_reward(), not truncated, truncated))

    def close(self) -> None:
        """End the library, once it asks for the next observation."""
        self._seen.put(None)
        self._thread.join()

    def next(self) -> Seen:
        """For the library: wait for what the system sees."""
        seen = self._seen.get()
        if seen is None:
            raise LoopEnded("The system has ended.")
        return seen

    def decide(self, action: Any) -> None:
        """For the library: the action for what was seen last."""
        self._actions.put(action)

    def _take_reward(self) -> float:
        reward, self._reward = self._reward, 0.0
        return reward

    def _run(self, train: Callable[[InvertedLoop], None]) -> None:
        try:
            train(self)
            self.problem = LoopEnded("It has trained as long as it was asked to.")
        except BaseException as error:  # the system has to hear of it, whatever it is
            self.problem = error
        # For a system that waits at this moment.
        self._actions.put(self.problem)


class InvertedEnvironment(gymnasium.Env[Any, Any]):
    """The library's side: an environment whose steps are the system's decisions."""

    def __init__(self, loop: InvertedLoop, observation: gymnasium.Space[Any], action: gymnasium.Space[Any]) -> None:
        self._loop = loop
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Wait for the first observation of an episode."""
        super().reset(seed=seed)
        return self._loop.next().observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hand an action to the system, and wait until it asks again or ends the episode."""
        self._loop.decide(action)
        seen = self._loop.next()
        return seen.observation, seen.reward, seen.terminated, seen.truncated, {}
