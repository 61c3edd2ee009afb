"""The record of a trajectory in the original style: a decision counts once the program adds it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rl4sys.client.agent import Agent
from rl4sys.client.episode import Episode
from rl4sys.client.lane import Lane
from rl4sys.client.original_action import ChosenNumber, Decided, RL4SysAction
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Arrays, Ending, Segment


class DecisionSequence:
    """The decisions of a program that follow each other, whatever trajectories they are added to."""

    def __init__(self) -> None:
        self.count = 0
        self.latest: Decided | None = None


class _End(NamedTuple):
    """An end that still waits for the last action or its reward."""

    ending: Ending
    final: Arrays | None
    missing: Decided | None
    """The last action, if it was not added yet."""


class TrajectoryRecord:
    """Decides for one trajectory, and records what is added to it, in that order.

    Where the program leaves a decision out, the episode is cut: what came before ends there, truncated, with the
    observation of the omitted decision as its final one. Rewards may change until a step is sent: when the trajectory
    ends, or when more steps than a segment and the reward window hold were added after it.
    """

    def __init__(self, agent: Agent, sequence: DecisionSequence) -> None:
        self.sequence = sequence
        self._agent = agent
        self._shared = agent.shared
        self._episode: Episode | None = agent.episode()
        self._open: list[RL4SysAction] = []
        self._start = 0
        self._end: _End | None = None
        self._lock = threading.Lock()

    @property
    def version(self) -> int:
        """The version that the next decision would be taken with; 0 while there is none."""
        snapshot = self._shared.governor.snapshot
        return 0 if snapshot is None else snapshot.version

    @property
    def is_open(self) -> bool:
        """Whether the trajectory has not ended."""
        return self._episode is not None and self._end is None

    @property
    def is_unsettled(self) -> bool:
        """Whether an end waits for the last action or its reward."""
        return self._end is not None

    def decide(self, observation: Any, mask: Any, shown: Any, shown_mask: Any) -> RL4SysAction:
        """Decide; the action keeps the observation and the mask as the program passed them."""
        with self._lock:
            episode = self._episode
            if episode is None:
                raise RuntimeError("This trajectory has ended; pass None to begin another one.")
            act = episode.act(observation, mask)
            step = episode.take_step()
            latest, sequence = self.sequence.latest, self.sequence
            number, sequence.count, sequence.latest = sequence.count, sequence.count + 1, None
            chosen = ChosenNumber(act) if type(act) is int else act
            if step is None:
                return RL4SysAction(shown, chosen, mask=shown_mask, version=self.version)
            if latest is not None and latest.step.snapshot.form is step.snapshot.form:
                latest.following = step.observation
            data = dict(step.extras)
            if "log_prob" in data:
                data["logp_a"] = data["log_prob"]
            action = RL4SysAction(shown, chosen, mask=shown_mask, data=data, version=step.snapshot.version)
            action._decided = Decided(step, chosen, sequence, number, self, self._shared.status)
            sequence.latest = action._decided
            return action

    def add(self, action: RL4SysAction) -> bool:
        """Record the action next; true if earlier ones of a long trajectory were sent."""
        decided = action._decided
        if decided is None or decided.added:
            return False
        if decided.decider is not self and decided.decider.is_open:
            raise ValueError("This action was decided in another trajectory; add it to the one it came with.")
        sealed: list[tuple[Segment, Snapshot]] = []
        with self._lock:
            end = self._end
            if end is not None and end.missing is not decided:
                sealed += self._settled()
            decided.added = True
            if action.act is decided.act:
                sealed += self._append(action)
            if end is not None and end.missing is decided:
                self._end = end._replace(missing=None)
                if action.is_reward_set():
                    sealed += self._settled()
            longest = self._shared.longest
            is_long = len(self._open) > longest + self._shared.reward_window.decisions
            if is_long:
                sealed += self._seal(longest, Ending.CONTINUES, None)
        self._post(sealed)
        return is_long

    def end(
        self,
        action: RL4SysAction | None = None,
        ending: Ending = Ending.TERMINATED,
        final: tuple[Any, Any] | None = None,
    ) -> bool:
        """End the episode, or wait for `settle` if the last action is not added yet or has no reward.

        An action with a reward that was not added is recorded; true if so.
        """
        late = False
        with self._lock:
            sealed = self._settled()
            missing = None if action is None or action._decided is None or action._decided.added else action._decided
            if action is not None and missing is not None and (action.is_reward_set() or ending is Ending.TRUNCATED):
                missing.added = True
                sealed += self._append(action)
                late, missing = True, None
            self._end = _End(ending, None if final is None else self._read(*final), missing)
            if missing is None and (not self._open or self._open[-1].is_reward_set() or ending is Ending.TRUNCATED):
                sealed += self._settled()
        self._post(sealed)
        return late

    def settle(self) -> None:
        """Carry out an end that waited."""
        with self._lock:
            sealed = self._settled()
        self._post(sealed)

    def abandon(self) -> None:
        """Truncate what was never ended."""
        with self._lock:
            sealed = self._settled()
            sealed += self._seal(len(self._open), Ending.TRUNCATED, self._observed_next())
            self._close_episode()
        self._post(sealed)

    def _append(self, action: RL4SysAction) -> list[tuple[Segment, Snapshot]]:
        sealed: list[tuple[Segment, Snapshot]] = []
        if self._open and not _decided(action).follows(_decided(self._open[-1])):
            sealed = self._seal(len(self._open), Ending.TRUNCATED, self._observed_next())
        self._open.append(action)
        return sealed

    def _settled(self) -> list[tuple[Segment, Snapshot]]:
        end, self._end = self._end, None
        if end is None:
            return []
        if end.missing is None or not self._open:
            sealed = self._seal(len(self._open), end.ending, end.final)
        else:
            sealed = self._seal(len(self._open), Ending.TRUNCATED, self._observed_next())
        self._close_episode()
        return sealed

    def _observed_next(self) -> Arrays | None:
        """The observation after the last added decision, if the program asked for another one."""
        return _decided(self._open[-1]).following if self._open else None

    def _close_episode(self) -> None:
        if self._episode is not None:
            self._episode.end()
            self._episode = None

    def _seal(self, count: int, ending: Ending, final: Arrays | None) -> list[tuple[Segment, Snapshot]]:
        """The first `count` open steps as segments; the rest stays open."""
        steps, self._open = self._open[:count], self._open[count:]
        if ending is Ending.CONTINUES:
            final = _decided(self._open[0]).step.observation
        elif ending is Ending.TRUNCATED and final is None and steps:
            # The outcome of the last step is unknown, but it shows what the step before led to.
            final = _decided(steps.pop()).step.observation
            self._shared.status.add("drops:no_final_observation")
        if not steps:
            return []
        episode = self._episode or self._agent.episode()
        segments = _segments(steps, episode.lane, self._start, ending, final, self._shared.longest)
        self._start = self._start + len(steps) if ending is Ending.CONTINUES else 0
        if ending is not Ending.CONTINUES:
            episode.lane.episode += 1
        if self._episode is None:
            episode.end()
        for action in steps:
            _decided(action).sent = True
        return segments

    def _post(self, sealed: Sequence[tuple[Segment, Snapshot]]) -> None:
        # Outside the lock: with `overflow: block` posting may wait, and decisions must not.
        for segment, origin in sealed:
            self._shared.post(segment, origin)

    def _read(self, observation: Any, mask: Any) -> Arrays | None:
        """The final observation as the policy reads it; None if nothing is open or has another schema."""
        if self._episode is None or not self._open:
            return None
        interface = _decided(self._open[-1]).step.snapshot.interface
        specs = interface.form.schema.observation
        columns = {spec.name: np.zeros((1, *spec.shape), spec.dtype) for spec in specs}
        interface.reader.write(columns, 0, observation, mask)
        return {name: column[0] for name, column in columns.items()}


def _decided(action: RL4SysAction) -> Decided:
    if action._decided is None:
        raise RuntimeError("This action was not decided by an agent.")
    return action._decided


def _segments(
    actions: Sequence[RL4SysAction], lane: Lane, start: int, ending: Ending, final: Arrays | None, longest: int
) -> list[tuple[Segment, Snapshot]]:
    """Consecutive actions as segments of one version each."""
    segments: list[tuple[Segment, Snapshot]] = []
    first = 0
    while first < len(actions):
        snapshot = _decided(actions[first]).step.snapshot
        last = first + 1
        limit = min(len(actions), first + min(longest, snapshot.max_steps))
        while last < limit and _decided(actions[last]).step.snapshot is snapshot:
            last += 1
        part = actions[first:last]
        steps = [_decided(action).step for action in part]
        is_final = last == len(actions)
        after = (final or steps[-1].observation) if is_final else _decided(actions[last]).step.observation
        segments.append(
            (
                Segment(
                    stream=lane.stream,
                    episode=lane.episode,
                    start=start + first,
                    policy_version=snapshot.version,
                    ending=ending if is_final else Ending.CONTINUES,
                    observation={n: np.stack([*(s.observation[n] for s in steps), after[n]]) for n in after},
                    action=np.stack([step.action for step in steps]),
                    reward=np.array([action.reward for action in part], np.float32),
                    extras={name: np.stack([step.extras[name] for step in steps]) for name in steps[0].extras},
                    carry=steps[0].carry,
                ),
                snapshot,
            )
        )
        first = last
    return segments
