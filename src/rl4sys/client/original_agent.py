"""The original call style of RL4Sys, as a thin layer over `Agent` and `Episode`.

agent = RL4SysAgent(conf_path="luna_conf.json")
traj, action = agent.request_for_action(traj, obs)
agent.add_to_trajectory(traj, action)
next_obs, reward, terminated, truncated, _ = env.step(action.act)
action.update_reward(reward)
agent.mark_end_of_trajectory(traj, action)

A decision is recorded when it is added, so a program that only asks for actions teaches nothing.
"""

from __future__ import annotations

import dataclasses
import logging
import weakref
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rl4sys.client import exit_hook
from rl4sys.client.agent import Agent
from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.connection import connect
from rl4sys.client.fallback import Fallback
from rl4sys.client.forks import forks
from rl4sys.client.observation_reader import as_array
from rl4sys.client.original_action import RL4SysAction
from rl4sys.client.original_inputs import OriginalInputs
from rl4sys.client.original_settings import original_names
from rl4sys.client.original_trajectory import RL4SysTrajectory
from rl4sys.client.section import SettingsError
from rl4sys.client.settings import load_settings, read_settings_file
from rl4sys.client.spaces import OBSERVATION, action_from_space, mask_for, observation_from_space
from rl4sys.client.trajectory_record import DecisionSequence, TrajectoryRecord
from rl4sys.experience import Array, ArraySpec, Ending
from rl4sys.policy import MASK
from rl4sys.wire.calls import Transport

_log = logging.getLogger(__name__)


class RL4SysAgent:
    """An agent with the original API. It connects at once, or at the first request if the config lacks `input_size`."""

    def __init__(
        self,
        conf_path: str | Path,
        debug: bool = False,
        observation_space: Any = None,
        action_space: Any = None,
        transport: Transport | None = None,
        fallback: Fallback | None = None,
    ) -> None:
        """`fallback` decides where the policy may not or cannot, as for `rl4sys.connect`."""
        values = read_settings_file(conf_path)
        self._names = original_names(values)
        self.debug = debug or self._names.debug
        if self.debug or self._names.log_level:
            _show_logs(logging.getLogger("rl4sys"), "DEBUG" if self.debug else self._names.log_level)
        self._settings = _completed(load_settings(conf_path), observation_space, action_space)
        self._transport, self._fallback = transport, fallback
        self._agent: Agent | None = None
        self._inputs = OriginalInputs(())
        self._forks = forks()
        self._records: dict[int, TrajectoryRecord] = {}
        self._unsettled: deque[TrajectoryRecord] = deque()
        self._dropped: deque[TrajectoryRecord] = deque()
        self._warned = False
        if self._settings.observation:
            self._connect(self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def agent(self) -> Agent:
        """The underlying agent, for `health()` and for using both APIs together."""
        if self._agent is None:
            raise RuntimeError("There is no connection before the first observation; call request_for_action first.")
        return self._agent

    @property
    def client_id(self) -> str:
        """The permanent name of the client."""
        return self._settings.client_id

    @property
    def algorithm_name(self) -> str:
        """The algorithm as the config names it."""
        return self._names.algorithm or self._settings.algorithm

    @property
    def algorithm_parameters(self) -> dict[str, Any]:
        """The section of this name, as the config has it."""
        return self._names.parameters

    @property
    def algorithm_type(self) -> str:
        """`onpolicy` or `offpolicy`."""
        return self._names.kind

    @property
    def server_address(self) -> str:
        """The address of the training server."""
        return self._settings.server

    @property
    def local_version(self) -> int:
        """The version of the policy that decides at present; 0 while there is none."""
        snapshot = None if self._agent is None else self._agent.shared.governor.snapshot
        return 0 if snapshot is None else snapshot.version

    @property
    def _trajectory_buffer(self) -> list[TrajectoryRecord]:
        """Trajectories that are known, under the name that original programs look at."""
        return list(self._records.values())

    @property
    def is_ours(self) -> bool:
        """Whether this process made the agent, and not a process that it was forked from."""
        return self._forks == forks()

    def request_for_action(
        self, traj: Any = None, obs: Any = None, mask: Any = None, *ignored: Any, **ignored_by_name: Any
    ) -> tuple[RL4SysTrajectory, RL4SysAction]:
        """Choose an action; begins a new trajectory if there is none or the given one has ended.

        The observation and the mask may have leading axes of size 1. Without a trajectory, the observation may come
        first. Further arguments are ignored with a warning, as the original ignored them.
        """
        if traj is not None and not isinstance(traj, RL4SysTrajectory):
            traj, obs, mask = None, traj, mask if mask is not None else obs
        if obs is None:
            raise ValueError("Got no observation; pass request_for_action(traj, obs), or obs=... by name.")
        if (ignored or ignored_by_name) and not self._warned:
            self._warned = True
            _log.warning("request_for_action ignores %s.", ", ".join((*map(repr, ignored), *ignored_by_name)))
        agent = self._agent or self._connect(_with_observation(self._settings, obs))
        if self._unsettled or self._dropped:
            self._settle()
        if traj is None or traj.completed:
            traj = self._begin(agent, traj)
        record = traj._record or self._bind(agent, traj, DecisionSequence())
        inputs = self._inputs
        action = record.decide(inputs.observation(obs), None if mask is None else inputs.mask(mask), obs, mask)
        if not traj.actions:
            traj.version = action.version
        return traj, action

    def add_to_trajectory(self, traj: RL4SysTrajectory, action: RL4SysAction) -> None:
        """Record the action as the next step of the trajectory.

        Decisions can be added long after they were taken, and to a later trajectory than the one that they were
        taken in. After the end of a trajectory this begins another episode.
        """
        if traj._record is None and self._agent is not None:
            self._bind(self._agent, traj, DecisionSequence())
        traj.add_action(action)

    def update_action_reward(self, action: RL4SysAction, reward: Any) -> None:
        """Set the reward of an action."""
        action.update_reward(reward)

    def mark_end_of_trajectory(
        self, traj: RL4SysTrajectory, action: RL4SysAction, final_observation: Any = None, truncated: bool = False
    ) -> None:
        """End the episode; if it was cut short, pass `truncated=True` and the final observation.

        An action that has a reward and was not added before is recorded now.
        """
        action.done = True
        traj.completed = True
        record = traj._record
        if record is None:
            return
        final = None
        if final_observation is not None and self._agent is not None:
            final = (self._inputs.observation(final_observation), None)
        if record.end(action, Ending.TRUNCATED if truncated else Ending.TERMINATED, final):
            traj.actions.append(action)
        if record.is_unsettled:
            self._unsettled.append(record)

    def flush(self, timeout: float = 10.0) -> bool:
        """Send all sealed segments and wait until the server acknowledged them; false after `timeout` seconds."""
        self._settle()
        return self._agent is None or self._agent.flush(timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Truncate open trajectories, send the backlog and stop."""
        exit_hook.forget(self)
        if self._agent is not None:
            self._settle()
            for record in list(self._records.values()):
                record.abandon()
            self._agent.close(timeout)

    def _connect(self, settings: ClientSettings) -> Agent:
        self._agent = agent = connect(settings, self._transport, self._fallback)
        self._inputs = OriginalInputs(agent.settings.observation)
        # At exit, close this object instead: it completes the trajectories first.
        exit_hook.forget(agent)
        exit_hook.remember(self)
        return agent

    def _begin(self, agent: Agent, before: RL4SysTrajectory | None) -> RL4SysTrajectory:
        """A new trajectory. It continues the decisions of the one before if those still wait to be added."""
        sequence = DecisionSequence()
        if before is not None and before._record is not None:
            latest = before._record.sequence.latest
            if latest is not None and not latest.added:
                sequence = before._record.sequence
        traj = RL4SysTrajectory(self.local_version)
        self._bind(agent, traj, sequence)
        return traj

    def _bind(self, agent: Agent, traj: RL4SysTrajectory, sequence: DecisionSequence) -> TrajectoryRecord:
        traj._record = record = TrajectoryRecord(agent, sequence)
        self._records[id(record)] = record
        # A collected trajectory is only noted here, since the collector may run anywhere, within a lock for instance.
        weakref.finalize(traj, self._dropped.append, record).atexit = False
        return record

    def _settle(self) -> None:
        """Carry out ends that waited for a reward, and end trajectories that the program forgot."""
        while self._unsettled:
            self._unsettled.popleft().settle()
        while self._dropped:
            record = self._dropped.popleft()
            record.abandon()
            self._records.pop(id(record), None)


def _show_logs(logger: logging.Logger, level: str = "DEBUG") -> None:
    """Log from this level on, to standard error if the program has not configured logging."""
    logger.setLevel(level)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)


def _completed(settings: ClientSettings, observation_space: Any, action_space: Any) -> ClientSettings:
    """Add the spaces that the caller passed, and a mask, which is optional in every request."""
    action = settings.action if action_space is None else action_from_space(action_space)
    observation = settings.observation if observation_space is None else observation_from_space(observation_space)
    if action is None:
        raise SettingsError(
            "The config has no act_dim, so the actions are unknown. Add it, or pass "
            "RL4SysAgent(..., action_space=env.action_space)."
        )
    if observation and all(spec.name != MASK for spec in observation):
        observation += mask_for(action)
    return dataclasses.replace(settings, observation=observation, action=action)


def _with_observation(settings: ClientSettings, obs: Any) -> ClientSettings:
    """Take the shapes of the arrays from the first observation."""
    parts = obs if isinstance(obs, dict) else {OBSERVATION: obs}
    arrays = {name: _unbatched(as_array(part)) for name, part in parts.items() if name != MASK}
    seen = tuple(ArraySpec(n, "uint8" if a.dtype == "uint8" else "float32", a.shape) for n, a in arrays.items())
    mask = () if settings.action is None else mask_for(settings.action)
    return dataclasses.replace(settings, observation=(*seen, *mask))


def _unbatched(array: Array) -> Array:
    """A vector or an image with channels that came as a batch of one; a 1×N matrix is taken for a vector."""
    return array[0] if array.ndim in (2, 4) and array.shape[0] == 1 else array
