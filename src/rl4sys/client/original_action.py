"""A decision under its original name, with the attributes that programs for the original RL4Sys read and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.segment_buffer import RecordedStep
from rl4sys.experience import Arrays

_LARGEST_REWARD = float(np.finfo(np.float32).max)


class ChosenNumber(int):
    """The number of a choice. It also answers like the array with one element that the original returned."""

    shape: tuple[int, ...] = ()
    ndim = 0
    dtype = np.dtype(np.int64)

    def item(self) -> int:
        """The plain number."""
        return int(self)

    def __getitem__(self, index: int) -> int:
        if index not in (0, -1):
            raise IndexError(f"index {index}: an action is one choice, so only index 0 exists")
        return int(self)


class Decider(Protocol):
    """A trajectory that decisions are taken in."""

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""


@dataclass(eq=False, slots=True)
class Decided:
    """Where an action comes from: the recorded step and its place among the decisions of the program."""

    step: RecordedStep
    act: Any
    """As it was returned; a program that replaces it has decided itself."""
    sequence: object
    """The same object for decisions that follow each other."""
    number: int
    decider: Decider
    """What held the policy's memory for this decision."""
    status: AgentStatus
    following: Arrays | None = None
    """The observation of the next decision, once there is one."""
    added: bool = False
    sent: bool = False

    def follows(self, earlier: Decided) -> bool:
        """Whether this decision came right after the earlier one, so that both can be steps of one episode."""
        return (
            self.sequence is earlier.sequence
            and self.number == earlier.number + 1
            and self.step.snapshot.form is earlier.step.snapshot.form
            and (self.decider is earlier.decider or not self.step.carry)
        )


class RL4SysAction:
    """A decision, to which a reward can be given. It is recorded once it is added to a trajectory."""

    def __init__(
        self,
        obs: Any = None,
        action: Any = None,
        reward: Any = None,
        done: bool = False,
        data: Mapping[str, Any] | None = None,
        version: int = 0,
        mask: Any = None,
    ) -> None:
        self.obs = obs
        self.act = action
        """The action for `env.step`."""
        self.done = done
        self.data = {} if data is None else dict(data)
        """What the policy noted about its choice, such as `log_prob`."""
        self.version = version
        """The version of the policy that decided."""
        self.mask = mask
        self._decided: Decided | None = None
        self._reward: float | None = None
        self.rew = reward

    @property
    def rew(self) -> float | None:
        """The reward; None until one is given, which counts as 0."""
        return self._reward

    @rew.setter
    def rew(self, reward: Any) -> None:
        value = None if reward is None else float(reward)
        if value is not None and not abs(value) <= _LARGEST_REWARD:
            raise ValueError(f"Got the reward {value}; expected a finite number. Leave it out if it is not known.")
        if self._decided is not None and self._decided.sent and value != self._reward:
            self._decided.status.add("late_rewards")
        self._reward = value

    @property
    def reward(self) -> float:
        """The reward; 0 until one is given."""
        return 0.0 if self._reward is None else self._reward

    @reward.setter
    def reward(self, reward: Any) -> None:
        self.rew = reward

    def update_reward(self, reward: Any) -> None:
        """Set the reward of this decision; a later call replaces an earlier one."""
        self.rew = reward

    def is_reward_set(self) -> bool:
        """Whether a reward was given."""
        return self._reward is not None

    def set_done(self, done: bool) -> None:
        """Mark the action as the last of its trajectory. `mark_end_of_trajectory` does so, and ends the trajectory."""
        self.done = done

    def is_done(self) -> bool:
        """Whether this is the last action of its trajectory."""
        return self.done
