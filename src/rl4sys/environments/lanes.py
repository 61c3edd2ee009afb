"""Several environments in one process, stepped in a loop: local collection uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from rl4sys.environments.episodes import EpisodeStatistics, EpisodeSummary, Step
from rl4sys.environments.exactness import (
    ActionLog,
    Environment,
    Grade,
    ReplayMismatch,
    environment_state,
    replay,
    restore_environment,
    same,
)
from rl4sys.environments.lane_clocks import NOW, LaneClocks
from rl4sys.environments.old_interface import checked_reset, refuse_old_step
from rl4sys.environments.spaces import (
    MASK,
    EnvironmentSpec,
    ObservationConverter,
    action_converter,
    action_mask_spec,
    action_spec,
)
from rl4sys.experience import Array, Arrays, Ending
from rl4sys.seeding import Seeds
from rl4sys.state import State, StateMismatch, generator_state, require, restore_generator


class RewardMismatch(ValueError):
    """An environment returned a reward that is not one number."""


class Lanes:
    """Environments stepped one after another, each reset as soon as its episode ends.

    Only the first reset of a lane gets a seed, from `seeds` by the name ("environment", lane); after that its
    generator simply continues. An episode is remembered as the state of `np_random` before its reset (for the
    first one: the state that the seed gives) and the actions since, which `restore` replays in a new one.
    """

    inexact: list[str]
    """Why lanes did not resume exactly at the last `restore`: "continuing, not exact", one reason per lane."""
    restarted: list[int]
    """The lanes that began a new episode at the last `restore`; their old one was cut off."""

    def __init__(self, make: Callable[[], Environment], count: int, seeds: Seeds, grade: Grade) -> None:
        if count < 1:
            raise ValueError(f"{count} lanes were asked for; expected at least 1.")
        self.count, self.grade = count, grade
        self.inexact, self.restarted = [], []
        self._make, self._seeds, self._is_seeded = make, seeds, False
        self._sample: Environment | None = make()
        self._describe(self._sample)
        self._environments: list[Environment] = []
        self._steps: list[Callable[[Any], Any]] = []
        self._origins: list[State] = [{}] * count
        self._log = ActionLog() if grade.replays else None
        self._statistics = EpisodeStatistics(count)
        self.observation: Arrays = self._observe.empty(count)
        """What to act on now, one row per lane."""
        self._rows = [
            {name: array[lane : lane + 1] for name, array in self.observation.items()} for lane in range(count)
        ]
        self._reward = np.zeros(count, np.float32)
        self._ending = np.zeros(count, np.uint8)
        self._clocks = LaneClocks(count) if self.has_time else None

    def reset(self) -> Arrays:
        """Begin an episode in every lane, dropping those that run; the first observations."""
        if not self._environments:
            self._install(self._new())
        for lane in range(self.count):
            self._statistics.forget(lane)
            observation, info = self._begin(lane) if self._is_seeded else self._begin_seeded(lane)
            self._observe.fill(self._rows[lane], [observation], [info])
            if self._clocks is not None:
                self._clocks.start(lane, info)
        self._is_seeded = True
        return self.observation

    def reseed(self, seeds: Seeds) -> None:
        """Let the next reset take new seeds, as the first reset of new lanes does."""
        self._seeds, self._is_seeded = seeds, False

    def step(self, action: Array) -> Step:
        """Act once in every lane: int64 [N] or [N, k] choices from 0, or float32 [N, d], clipped here."""
        if len(action) != self.count or not self._steps:
            raise ValueError(f"step got {len(action)} actions; expected {self.count}, after reset() or restore().")
        observations, rewards, infos, ended = [], [], [], []
        returns, note_info = self._statistics.returns, self._statistics.info.note
        for lane, (step, command) in enumerate(zip(self._steps, self._commands(action), strict=True)):
            try:
                observation, reward, terminated, truncated, info = step(command)
            except ValueError as error:
                refuse_old_step(error)
                raise
            observations.append(observation)
            rewards.append(reward)
            try:
                returns[lane] += float(reward)
            except (TypeError, ValueError) as error:
                raise RewardMismatch(
                    f"The environment gave {reward!r} as a reward; expected one number. Let its step return "
                    f"float(reward)."
                ) from error
            infos.append(info)
            if info:
                note_info(lane, info)
            if terminated or truncated:
                ended.append((lane, Ending.TERMINATED if terminated else Ending.TRUNCATED))
        self._reward[:] = rewards
        self._statistics.clock += 1
        if self._log is not None:
            self._log.append(action)
        self._observe.fill(self.observation, observations, infos)
        self._ending.fill(0)
        elapsed = None if self._clocks is None else self._clocks.elapsed(infos)
        final = {lane: self._end(lane, ending, infos[lane]) for lane, ending in ended}
        return Step(self.observation, self._reward, self._ending, final, None, elapsed)

    def episodes(self) -> list[EpisodeSummary]:
        """The episodes finished since the last call, oldest first."""
        return self._statistics.drain()

    def close(self) -> None:
        """Release what the environments hold."""
        self._install([])
        self._is_seeded = False
        if self._sample is not None:
            self._sample.close()
            self._sample = None

    def state(self) -> State:
        """Everything needed to resume here, as far as the grade allows."""
        if not self._environments:
            raise ValueError("There is nothing to save before the first reset() or restore().")
        return {
            "grade": self.grade.name,
            "observation": {name: array.copy() for name, array in self.observation.items()},
            "statistics": self._statistics.state(),
            "lanes": {str(lane): self._lane_state(lane) for lane in range(self.count)},
        } | ({} if self._clocks is None else {"now": self._clocks.now.copy()})

    def restore(self, state: Any) -> Arrays:
        """Resume a saved state in new environments; returns the current observations.

        Nothing is raised for a lane that cannot resume exactly: it begins a new episode, is named in
        `restarted`, and the reason is put into `inexact`.
        """
        require(state, "grade", "observation", "statistics", "lanes", *(["now"] if self._clocks is not None else []))
        if state["grade"] != self.grade.name or len(state["lanes"]) != self.count:
            raise StateMismatch(
                f"The saved state has {len(state['lanes'])} lanes of grade {state['grade']}; here are "
                f"{self.count} of grade {self.grade.name}. Resume with what the run was saved with."
            )
        self._install(self._new())
        self._is_seeded = True
        self._statistics.restore(state["statistics"])
        self.inexact, self.restarted = [], []
        for name, array in self.observation.items():
            array[...] = state["observation"][name]
        if self._clocks is not None:
            self._clocks.now[:] = state["now"]
        if self._log is not None:
            self._log.refill([state["lanes"][str(lane)]["actions"] for lane in range(self.count)])
        for lane in range(self.count):
            self._restore_lane(lane, state["lanes"][str(lane)])
        return self.observation

    def _describe(self, sample: Environment) -> None:
        """Learn the spaces, and whether a mask comes in `info`."""
        action = action_spec(sample.action_space)
        _, info = checked_reset(sample.reset(seed=0))
        self._commands = action_converter(sample.action_space)
        mask = action_mask_spec(action) if MASK in info else None
        self.has_time = NOW in info
        """Whether environments say what time it is."""
        self._observe = ObservationConverter(sample.observation_space, mask, action)
        self.spec = EnvironmentSpec(self._observe.specs, action)

    def _new(self) -> list[Environment]:
        """An environment per lane; the one that was described is the first, unless only new ones can be replayed."""
        sample, self._sample = self._sample, None
        if sample is not None and self.grade is Grade.E2:
            sample.close()
            sample = None
        return [*([sample] if sample else []), *(self._make() for _ in range(self.count - bool(sample)))]

    def _install(self, environments: list[Environment]) -> None:
        for old in self._environments:
            old.close()
        self._environments = environments
        self._steps = [environment.step for environment in environments]

    def _replace(self, lane: int) -> Environment:
        self._environments[lane].close()
        environment = self._environments[lane] = self._make()
        self._steps[lane] = environment.step
        return environment

    def _end(self, lane: int, ending: Ending, info: Mapping[str, Any]) -> Arrays:
        """Note the end of an episode and begin the next; the final observation."""
        final = {name: row[0].copy() for name, row in self._rows[lane].items()}
        self._ending[lane] = ending
        self._statistics.finish(lane, ending, info)
        observation, begun = self._begin(lane)
        self._observe.fill(self._rows[lane], [observation], [begun])
        if self._clocks is not None:
            self._clocks.start(lane, begun)
        return final

    def _begin(self, lane: int) -> tuple[Any, Any]:
        environment = self._environments[lane]
        if self.grade.replays:
            self._origins[lane] = generator_state(environment.unwrapped.np_random)
        if self.grade is Grade.E2:
            environment = self._replace(lane)
            restore_generator(environment.unwrapped.np_random, self._origins[lane])
        if self._log is not None:
            self._log.trim(self._statistics.longest())
        return environment.reset()

    def _begin_seeded(self, lane: int, *occasion: str | int) -> tuple[Any, Any]:
        seed = self._seeds.integer("environment", lane, *occasion) % 2**31
        self._origins[lane] = generator_state(seeding.np_random(seed)[0])
        return self._environments[lane].reset(seed=seed)

    def _lane_state(self, lane: int) -> State:
        environment = self._environments[lane]
        if self.grade is Grade.E0:
            return {"environment": environment_state(environment)}
        if self._log is None:
            return {}
        return {
            "origin": self._origins[lane],
            "actions": self._log.last(self._statistics.length(lane), lane),
            "generator": generator_state(environment.unwrapped.np_random),
        }

    def _restore_lane(self, lane: int, saved: Any) -> None:
        try:
            if self.grade is Grade.E0:
                restore_environment(self._environments[lane], saved["environment"])
            elif self.grade.replays:
                self._replay(lane, saved)
            else:
                self._restart(lane, f"grade {self.grade.name}. {self.grade.value}")
        except Exception as error:
            # An environment is foreign code and may fail in any way; whatever it was, a new one is a way to continue.
            self._replace(lane)
            self._restart(lane, str(error) or repr(error))

    def _restart(self, lane: int, reason: str) -> None:
        self.inexact.append(f"lane {lane}: continuing, not exact: {reason}")
        self.restarted.append(lane)
        self._statistics.forget(lane)
        observation, info = self._begin_seeded(lane, "restored at", self._statistics.clock)
        self._observe.fill(self._rows[lane], [observation], [info])
        if self._clocks is not None:
            self._clocks.start(lane, info)

    def _replay(self, lane: int, saved: Any) -> None:
        self._origins[lane] = saved["origin"]
        environment, actions = self._environments[lane], saved["actions"]
        commands = self._commands(actions) if len(actions) else []
        observation, info, total = replay(environment, saved["origin"], commands)
        for name, array in self._observe.single(observation, info).items():
            if not same(array, self.observation[name][lane, ...]):
                raise ReplayMismatch(f"after replaying {len(actions)} steps observation '{name}' differs")
        if total != self._statistics.returns[lane]:
            raise ReplayMismatch(f"the replayed return is {total}; {self._statistics.returns[lane]} was saved")
        if not same(generator_state(environment.unwrapped.np_random), saved["generator"]):
            raise ReplayMismatch("the random generator differs after the replay")
