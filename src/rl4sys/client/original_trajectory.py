"""A trajectory under its original name: the actions that a program added, in that order."""

from __future__ import annotations

import sys

from rl4sys.client.original_action import RL4SysAction
from rl4sys.client.trajectory_record import TrajectoryRecord


class RL4SysTrajectory:
    """One episode. Created by `request_for_action`, or by a program that then passes it to `request_for_action`."""

    def __init__(self, version: int = 0) -> None:
        self.actions: list[RL4SysAction] = []
        """What was added. A very long trajectory keeps only what was not sent yet."""
        self.version = version
        """The version of the policy that took its first decision."""
        self.completed = False
        """Whether it has ended."""
        self.invalid_mixed = False
        """Always false: versions may change within a trajectory, since every step knows its own."""
        self._record: TrajectoryRecord | None = None

    def add_action(self, action: RL4SysAction) -> None:
        """Add an action, as `agent.add_to_trajectory` does."""
        if self._record is None:
            self.actions.append(action)
            return
        if self._record.add(action):
            self.actions = [each for each in self.actions if each._decided is not None and not each._decided.sent]
        if all(each is not action for each in self.actions[-1:]):
            self.actions.append(action)

    def get_actions(self) -> list[RL4SysAction]:
        """The actions that were added."""
        return self.actions

    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self.actions

    def clear(self) -> None:
        """Forget the list of actions. What was added stays recorded."""
        self.actions = []

    def is_valid(self) -> bool:
        """Whether it can be learned from: always."""
        return not self.invalid_mixed

    def mark_completed(self) -> None:
        """End the trajectory, as `agent.mark_end_of_trajectory` does."""
        self.completed = True
        if self._record is not None:
            self._record.end()

    def is_completed(self) -> bool:
        """Whether it has ended."""
        return self.completed

    def print_actions(self) -> None:
        """Print what every action saw, did and earned."""
        for number, action in enumerate(self.actions):
            sys.stdout.write(f"action {number}: {action.obs} {action.act} {action.rew}\n")
