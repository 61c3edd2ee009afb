from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.client.agents import agent_on
from tests.client.fake_server import FakeServer, small_policy
from tests.client.test_settings import FLAT, SECTIONS

import rl4sys.client.original_agent
from rl4sys.client import Ending, RL4SysAgent, SettingsError, run_environment
from rl4sys.policy import DiscreteAction


class Space:
    """The attributes of a Gymnasium space that the client reads."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__ |= attributes


class Corridor:
    """Eight observed numbers, four choices, a few steps."""

    observation_space = Space(shape=(8,), dtype=np.dtype(np.float32))
    action_space = Space(n=4, start=0, shape=(), dtype=np.dtype(np.int64))

    def __init__(self, length: int = 5) -> None:
        self._length = length
        self._step = 0

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        self._step = 0
        return np.zeros(8, np.float32), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._step += 1
        return np.full(8, self._step, np.float32), 1.0, self._step == self._length, False, {}


def written(tmp_path: Path, values: dict[str, Any]) -> Path:
    path = tmp_path / "luna_conf.json"
    path.write_text(json.dumps(values))
    return path


def play(agent: RL4SysAgent, episodes: int, *, reward_first: bool) -> None:
    env, traj = Corridor(), None
    for _ in range(episodes):
        obs, over = env.reset()[0], False
        while not over:
            traj, action = agent.request_for_action(traj, obs)
            obs, reward, over, _, _ = env.step(action.act)
            if reward_first:
                action.update_reward(reward)
                agent.add_to_trajectory(traj, action)
            else:
                agent.add_to_trajectory(traj, action)
                action.update_reward(reward)
        agent.mark_end_of_trajectory(traj, action)


@pytest.mark.parametrize("reward_first", [False, True])
def test_the_original_loop_delivers_every_step(tmp_path: Path, reward_first: bool) -> None:
    server = FakeServer(small_policy(masked=True))
    with RL4SysAgent(conf_path=written(tmp_path, FLAT), debug=False, transport=server) as agent:
        play(agent, 12, reward_first=reward_first)
        assert agent.flush()
    segments = server.segments()
    assert [(s.steps, s.ending) for s in segments] == [(5, Ending.TERMINATED)] * 12
    assert all(s.reward.tolist() == [1.0] * 5 for s in segments)
    assert server.joins[0].algorithm.name == "ppo"
    assert json.loads(server.joins[0].algorithm.parameters_json)["algorithm"]["epochs"] == 80


def test_a_second_reward_replaces_the_first(tmp_path: Path) -> None:
    server = FakeServer(small_policy(masked=True))
    with RL4SysAgent(written(tmp_path, FLAT), transport=server) as agent:
        traj, action = agent.request_for_action(None, [0.0] * 8, mask=[False, True, False, False])
        assert action.act == 1
        action.update_reward(3.0)
        action.update_reward(2.0)
        agent.mark_end_of_trajectory(traj, action)
    assert server.segments()[0].reward.tolist() == [2.0]


def test_a_truncated_trajectory_keeps_its_future_value(tmp_path: Path) -> None:
    server = FakeServer(small_policy(masked=True))
    with RL4SysAgent(written(tmp_path, FLAT), transport=server) as agent:
        traj, action = agent.request_for_action(None, [0.0] * 8)
        agent.mark_end_of_trajectory(traj, action, final_observation=[1.0] * 8, truncated=True)
        other, _ = agent.request_for_action(traj, [0.0] * 8)
        assert other is not traj
    assert server.segments()[0].ending is Ending.TRUNCATED


def test_missing_sizes_come_from_the_first_request_and_the_action_space(tmp_path: Path) -> None:
    server = FakeServer(small_policy(masked=True))
    path = written(tmp_path, SECTIONS)
    with pytest.raises(SettingsError, match="action_space=env"):
        RL4SysAgent(path, transport=server)
    with RL4SysAgent(path, action_space=Corridor.action_space, transport=server) as agent:
        assert server.joins == []
        play(agent, 2, reward_first=True)
    assert [list(spec.shape) for spec in server.joins[0].observation] == [[8], [4]]
    assert server.joins[0].action.discrete.n == 4


def test_gymnasium_spaces_are_read_without_gymnasium(tmp_path: Path) -> None:
    server, env = FakeServer(small_policy(masked=True)), Corridor()
    with RL4SysAgent(
        written(tmp_path, SECTIONS),
        observation_space=env.observation_space,
        action_space=env.action_space,
        transport=server,
    ) as agent:
        assert agent.agent.settings.action == DiscreteAction(4)
        assert [spec.name for spec in agent.agent.settings.observation] == ["observation", "action_mask"]


def test_an_action_of_another_trajectory_is_refused(tmp_path: Path) -> None:
    with RL4SysAgent(written(tmp_path, FLAT), transport=FakeServer(small_policy(masked=True))) as agent:
        first, _ = agent.request_for_action(None, [0.0] * 8)
        _, action = agent.request_for_action(None, [0.0] * 8)
        with pytest.raises(ValueError, match="another trajectory"):
            agent.add_to_trajectory(first, action)


def test_the_original_import_path_works() -> None:
    assert rl4sys.client.original_agent.RL4SysAgent is RL4SysAgent


def test_any_gymnasium_environment_can_be_a_client() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        assert run_environment(agent, Corridor(), episodes=3) == [5.0, 5.0, 5.0]
    assert [(s.steps, s.ending) for s in server.segments()] == [(5, Ending.TERMINATED)] * 3
    assert server.segments()[0].observation["observation"][-1, 0] == 5


def test_debug_logs_to_standard_error_if_logging_is_not_configured(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.Logger("alone")
    for _ in range(2):
        rl4sys.client.original_agent._show_logs(logger)
    logger.debug("connected")
    assert capsys.readouterr().err.count("connected") == 1
