"""The original call style of RL4Sys, as a thin layer over `Agent` and `Episode`.

agent = RL4SysAgent(conf_path="luna_conf.json")
traj, action = agent.request_for_action(traj, obs)
next_obs, reward, terminated, truncated, _ = env.step(action.act)
agent.add_to_trajectory(traj, action)
action.update_reward(reward)
agent.mark_end_of_trajectory(traj, action)
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rl4sys.client.agent import Agent
from rl4sys.client.connection import connect
from rl4sys.client.episode import Episode
from rl4sys.client.observation_reader import as_array
from rl4sys.client.section import SettingsError
from rl4sys.client.settings import ClientSettings, load_settings
from rl4sys.client.spaces import OBSERVATION, action_from_space, mask_for, observation_from_space
from rl4sys.experience import ArraySpec, Ending
from rl4sys.policy import MASK
from rl4sys.wire.calls import Transport


class RL4SysTrajectory:
    """One episode, under its original name. Created by `request_for_action`."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode

    @property
    def completed(self) -> bool:
        """Whether the episode has ended."""
        return self._episode.ended


class RL4SysAction:
    """A decision, to which a reward can be given."""

    def __init__(self, act: Any, episode: Episode) -> None:
        self.act = act
        """The action for `env.step`."""
        self.reward = 0.0
        self._episode = episode
        self._decision = episode.decision

    def update_reward(self, reward: float) -> None:
        """Set the reward of this decision; a later call replaces an earlier one."""
        value = float(reward)
        self._episode.reward(value - self.reward, self._decision)
        self.reward = value


class RL4SysAgent:
    """An agent with the original API. It connects at once, or at the first request if the config lacks `input_size`."""

    def __init__(
        self,
        conf_path: str | Path,
        debug: bool = False,
        observation_space: Any = None,
        action_space: Any = None,
        transport: Transport | None = None,
    ) -> None:
        if debug:
            _show_logs(logging.getLogger("rl4sys"))
        self._settings = _completed(load_settings(conf_path), observation_space, action_space)
        self._transport = transport
        self._agent = connect(self._settings, transport) if self._settings.observation else None

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

    def request_for_action(
        self, traj: RL4SysTrajectory | None, obs: Any, mask: Any = None
    ) -> tuple[RL4SysTrajectory, RL4SysAction]:
        """Choose an action; begins a new trajectory if there is none or the given one has ended."""
        if self._agent is None:
            self._agent = connect(_with_observation(self._settings, obs), self._transport)
        if traj is None or traj.completed:
            traj = RL4SysTrajectory(self._agent.episode())
        episode = traj._episode
        return traj, RL4SysAction(episode.act(obs, mask), episode)

    def add_to_trajectory(self, traj: RL4SysTrajectory, action: RL4SysAction) -> None:
        """Does nothing, since `request_for_action` already recorded the decision; kept for the original API."""
        if traj._episode is not action._episode:
            raise ValueError("This action was decided in another trajectory; add it to the one it came with.")

    def mark_end_of_trajectory(
        self, traj: RL4SysTrajectory, action: RL4SysAction, final_observation: Any = None, truncated: bool = False
    ) -> None:
        """End the episode; if it was cut short, pass `truncated=True` and the final observation."""
        self.add_to_trajectory(traj, action)
        traj._episode.end(final_observation, Ending.TRUNCATED if truncated else Ending.TERMINATED)

    def flush(self, timeout: float = 10.0) -> bool:
        """Send all sealed segments and wait until the server acknowledged them; false after `timeout` seconds."""
        return self._agent is None or self._agent.flush(timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Send the backlog and stop."""
        if self._agent is not None:
            self._agent.close(timeout)


def _show_logs(logger: logging.Logger) -> None:
    """Log everything, to standard error if the program has not configured logging."""
    logger.setLevel(logging.DEBUG)
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
    arrays = {name: as_array(part) for name, part in parts.items() if name != MASK}
    seen = tuple(ArraySpec(n, "uint8" if a.dtype == "uint8" else "float32", a.shape) for n, a in arrays.items())
    mask = () if settings.action is None else mask_for(settings.action)
    return dataclasses.replace(settings, observation=(*seen, *mask))
