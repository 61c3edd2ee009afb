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
    """One episode, as the original calls it. Made by `request_for_action`."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode

    @property
    def completed(self) -> bool:
        """Whether its end was marked."""
        return self._episode.ended


class RL4SysAction:
    """A decision that can still be rewarded."""

    def __init__(self, act: Any, episode: Episode) -> None:
        self.act = act
        """What to do, ready for `env.step`."""
        self.reward = 0.0
        self._episode = episode
        self._decision = episode.decision

    def update_reward(self, reward: float) -> None:
        """The reward of this decision is this; a later call corrects an earlier one."""
        value = float(reward)
        self._episode.reward(value - self.reward, self._decision)
        self.reward = value


class RL4SysAgent:
    """Connects as its file says. Where the file does not tell the size of observations, at the first request."""

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
        """The agent beneath, for `health()` and more than one style at a time."""
        if self._agent is None:
            raise RuntimeError("Nothing was observed yet, so there is no connection; call request_for_action first.")
        return self._agent

    def request_for_action(
        self, traj: RL4SysTrajectory | None, obs: Any, mask: Any = None
    ) -> tuple[RL4SysTrajectory, RL4SysAction]:
        """Decide; without a trajectory, or after the end of one, a new one begins."""
        if self._agent is None:
            self._agent = connect(_with_observation(self._settings, obs), self._transport)
        if traj is None or traj.completed:
            traj = RL4SysTrajectory(self._agent.episode())
        episode = traj._episode
        return traj, RL4SysAction(episode.act(obs, mask), episode)

    def add_to_trajectory(self, traj: RL4SysTrajectory, action: RL4SysAction) -> None:
        """Kept for the programs that call it: a decision is part of its trajectory from the start."""
        if traj._episode is not action._episode:
            raise ValueError("This action was decided in another trajectory; add it to the one it came with.")

    def mark_end_of_trajectory(
        self, traj: RL4SysTrajectory, action: RL4SysAction, final_observation: Any = None, truncated: bool = False
    ) -> None:
        """The episode is over. One that was only cut short needs `truncated` and what was observed then."""
        self.add_to_trajectory(traj, action)
        traj._episode.end(final_observation, Ending.TRUNCATED if truncated else Ending.TERMINATED)

    def flush(self, timeout: float = 10.0) -> bool:
        """Send what there is, and wait until the server has it; false if it did not in time."""
        return self._agent is None or self._agent.flush(timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Send what there is, and stop."""
        if self._agent is not None:
            self._agent.close(timeout)


def _show_logs(logger: logging.Logger) -> None:
    """Show everything, on standard error where the program has not said where else."""
    logger.setLevel(logging.DEBUG)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)


def _completed(settings: ClientSettings, observation_space: Any, action_space: Any) -> ClientSettings:
    """With what the caller knows; and with a mask, which any request may then give or leave out."""
    action = settings.action if action_space is None else action_from_space(action_space)
    observation = settings.observation if observation_space is None else observation_from_space(observation_space)
    if action is None:
        raise SettingsError(
            "The file does not tell what can be done: it has no act_dim. Add it, or pass "
            "RL4SysAgent(..., action_space=env.action_space)."
        )
    if observation and all(spec.name != MASK for spec in observation):
        observation += mask_for(action)
    return dataclasses.replace(settings, observation=observation, action=action)


def _with_observation(settings: ClientSettings, obs: Any) -> ClientSettings:
    """The first observation tells the size of all."""
    parts = obs if isinstance(obs, dict) else {OBSERVATION: obs}
    arrays = {name: as_array(part) for name, part in parts.items() if name != MASK}
    seen = tuple(ArraySpec(n, "uint8" if a.dtype == "uint8" else "float32", a.shape) for n, a in arrays.items())
    mask = () if settings.action is None else mask_for(settings.action)
    return dataclasses.replace(settings, observation=(*seen, *mask))
