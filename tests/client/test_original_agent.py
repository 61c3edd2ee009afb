from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.client.agents import agent_on
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.test_settings import FLAT, SECTIONS
from tests.client.waiting import until

import rl4sys.client.original_agent
from rl4sys.client import BadObservation, Ending, RL4SysAgent, RL4SysTrajectory, SettingsError, run_environment
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
    from rl4sys.client.agent import RL4SysAgent as ByItsOriginalPath

    assert ByItsOriginalPath is RL4SysAgent


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(small_policy(masked=True))


@pytest.fixture
def agent(tmp_path: Path, server: FakeServer) -> Iterator[RL4SysAgent]:
    with RL4SysAgent(written(tmp_path, FLAT), transport=server) as agent:
        yield agent


@pytest.mark.parametrize("kind", ["array", "list", "tensor", "batch of one", "named"])
def test_every_runtime_records_the_original_loop_alike(tmp_path: Path, kind: str) -> None:
    kinds: dict[str, Any] = {"array": np.float32, "list": list, "tensor": torch.tensor}
    kinds |= {"batch of one": lambda row: row[None], "named": lambda row: {"observation": row}}
    found = []
    for runtime in ("numpy", "auto"):
        server = FakeServer(small_policy(masked=True))
        with RL4SysAgent(written(tmp_path, FLAT | {"runtime": runtime, "seed": 3}), transport=server) as agent:
            traj, chosen = None, []
            for step in range(60):
                obs = kinds[kind](np.sin(np.arange(8, dtype=np.float32) + step))
                traj, action = agent.request_for_action(traj, obs, [1, 1, step % 2, 1] if step % 3 else None)
                agent.add_to_trajectory(traj, action)
                action.update_reward(step)
                chosen.append((int(action.act), action.version, float(action.data["log_prob"])))
                if step % 7 == 6:
                    agent.mark_end_of_trajectory(traj, action)
            segments = sent(agent, server)
        found.append((chosen, segments))
    (numpy, recorded), (auto, otherwise) = found
    assert recorded == otherwise
    assert [each[:2] for each in numpy] == [each[:2] for each in auto]
    np.testing.assert_allclose([each[2] for each in numpy], [each[2] for each in auto], rtol=1e-5)


def seen(step: float) -> Any:
    """An observation as most original programs pass it: a batch of one."""
    return np.full((1, 8), step, np.float32)


def rewarded(agent: RL4SysAgent, traj: Any, step: int, *, add: bool = True) -> tuple[Any, Any]:
    """Decide about observation `step` and give the reward `step`."""
    traj, action = agent.request_for_action(traj, seen(step))
    if add:
        agent.add_to_trajectory(traj, action)
    action.update_reward(step)
    return traj, action


def sent(agent: RL4SysAgent, server: FakeServer) -> list[tuple[list[float], list[float], str]]:
    """Rewards, observations and ending of every segment."""
    assert agent.flush()
    return [
        (s.reward.tolist(), s.observation["observation"][:, 0].tolist(), s.ending.name.lower())
        for s in server.segments()
    ]


@pytest.mark.parametrize("shape", [(8,), (1, 8), (1, 1, 8)])
def test_leading_axes_of_size_one_are_removed(agent: RL4SysAgent, shape: tuple[int, ...]) -> None:
    mask = np.zeros((*shape[:-1], 4), np.float32)
    mask[..., 2] = 1.0
    _, action = agent.request_for_action(None, np.zeros(shape, np.float32), mask=mask)
    assert action.act == 2
    assert (action.obs.shape, action.mask is mask) == (shape, True)


def test_a_batch_of_two_is_refused(agent: RL4SysAgent) -> None:
    with pytest.raises(BadObservation, match=r"shape \(2, 8\)"):
        agent.request_for_action(None, np.zeros((2, 8), np.float32))


def test_tensors_are_read_without_importing_their_library(agent: RL4SysAgent) -> None:
    torch = pytest.importorskip("torch")
    _, action = agent.request_for_action(obs=torch.zeros(8).unsqueeze(0), mask=torch.tensor([[0.0, 1.0, 0.0, 0.0]]))
    assert action.act == 1


def test_a_request_needs_no_trajectory(agent: RL4SysAgent) -> None:
    traj, first = agent.request_for_action(obs=seen(0))
    again, second = agent.request_for_action(traj=traj, obs=seen(1), mask=None)
    other, third = agent.request_for_action(seen(2))
    assert again is traj
    assert other is not traj
    assert all(isinstance(action.act, int) for action in (first, second, third))
    with pytest.raises(ValueError, match="no observation"):
        agent.request_for_action(traj)


def test_unknown_arguments_are_ignored_with_one_warning(agent: RL4SysAgent, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        agent.request_for_action(None, seen(0), None, deterministic=True)
    assert [record.message for record in caplog.records] == ["request_for_action ignores deterministic."]


def test_decisions_that_are_never_added_are_not_recorded(agent: RL4SysAgent, server: FakeServer) -> None:
    traj = None
    for step in range(20):
        traj, action = agent.request_for_action(traj, seen(step))
    agent.mark_end_of_trajectory(traj, action)
    agent.request_for_action(traj, seen(0))
    assert sent(agent, server) == []


def test_requests_without_a_trajectory_leave_no_open_episodes(agent: RL4SysAgent, server: FakeServer) -> None:
    for step in range(50):
        agent.request_for_action(obs=seen(step))
    assert agent.agent.health().open_episodes <= 2
    assert sent(agent, server) == []


def test_an_omitted_decision_cuts_the_record(agent: RL4SysAgent, server: FakeServer) -> None:
    traj = None
    for step in range(6):
        traj, action = rewarded(agent, traj, step, add=step != 2)
    agent.mark_end_of_trajectory(traj, action)
    assert sent(agent, server) == [([0, 1], [0, 1, 2], "truncated"), ([3, 4, 5], [3, 4, 5, 5], "terminated")]
    assert len({segment.episode for segment in server.segments()}) == 2


def test_decisions_can_be_added_late_and_to_the_next_trajectory(agent: RL4SysAgent, server: FakeServer) -> None:
    traj, waiting = None, []
    for step in range(6):
        traj, action = rewarded(agent, traj, step, add=False)
        waiting.append(action)
        if step == 3:
            for late in waiting[:2]:
                agent.add_to_trajectory(traj, late)
            agent.mark_end_of_trajectory(traj, waiting[1])
    for late in waiting[2:]:
        agent.add_to_trajectory(traj, late)
    agent.mark_end_of_trajectory(traj, waiting[-1])
    assert sent(agent, server) == [([0, 1], [0, 1, 1], "terminated"), ([2, 3, 4, 5], [2, 3, 4, 5, 5], "terminated")]


def test_adding_after_the_end_begins_another_episode(agent: RL4SysAgent, server: FakeServer) -> None:
    traj, first = rewarded(agent, None, 0)
    _, second = rewarded(agent, traj, 1, add=False)
    agent.mark_end_of_trajectory(traj, first)
    agent.add_to_trajectory(traj, second)
    agent.mark_end_of_trajectory(traj, second)
    assert traj.is_completed()
    assert sent(agent, server) == [([0], [0, 0], "terminated"), ([1], [1, 1], "terminated")]


@pytest.mark.parametrize("order", ["end, add, reward", "end, reward, add", "reward, end, add"])
def test_the_last_action_may_be_added_after_the_end(agent: RL4SysAgent, server: FakeServer, order: str) -> None:
    traj, _ = rewarded(agent, None, 0)
    traj, action = agent.request_for_action(traj, seen(1))
    calls = {
        "end": lambda: agent.mark_end_of_trajectory(traj, action),
        "add": lambda: agent.add_to_trajectory(traj, action),
        "reward": lambda: action.update_reward(1.0),
    }
    for name in order.split(", "):
        calls[name]()
    assert sent(agent, server) == [([0, 1], [0, 1, 1], "terminated")]
    assert len(traj.actions) == 2


def test_an_end_with_an_action_that_is_never_added_truncates_before_it(agent: RL4SysAgent, server: FakeServer) -> None:
    traj, _ = rewarded(agent, None, 0)
    traj, action = agent.request_for_action(traj, seen(1))
    agent.mark_end_of_trajectory(traj, action)
    assert sent(agent, server) == [([0], [0, 1], "truncated")]


def test_an_action_that_the_program_replaces_is_left_out(agent: RL4SysAgent, server: FakeServer) -> None:
    traj = None
    for step in range(4):
        traj, action = agent.request_for_action(traj, seen(step))
        if step == 1:
            action.act = 3
        action.update_reward(step)
        agent.add_to_trajectory(traj, action)
    agent.mark_end_of_trajectory(traj, action)
    assert [rewards for rewards, _, _ in sent(agent, server)] == [[0], [2, 3]]


def test_a_long_trajectory_is_sent_in_parts(tmp_path: Path, server: FakeServer) -> None:
    with RL4SysAgent(written(tmp_path, FLAT | {"max_traj_length": 10}), transport=server) as agent:
        traj = None
        for step in range(50):
            traj, _ = rewarded(agent, traj, step)
        assert len(traj.actions) <= 27
    segments = server.segments()
    assert [(s.start, s.steps) for s in segments] == [(0, 10), (10, 10), (20, 10), (30, 10), (40, 9)]
    assert np.concatenate([s.reward for s in segments]).tolist() == list(range(49))
    assert segments[-1].ending is Ending.TRUNCATED


def test_a_new_version_begins_a_segment_of_the_same_episode(agent: RL4SysAgent, server: FakeServer) -> None:
    traj, _ = rewarded(agent, None, 0)
    version = server.publish(some_weights(server.spec, seed=1))
    until(lambda: agent.local_version == version)
    traj, action = rewarded(agent, traj, 1)
    agent.mark_end_of_trajectory(traj, action)
    assert sent(agent, server) == [([0], [0, 1], "continues"), ([1], [1, 1], "terminated")]
    assert (traj.version, action.version, traj.is_valid()) == (0, version, True)


def test_a_policy_with_memory_is_recorded_with_its_state(tmp_path: Path) -> None:
    server = FakeServer(small_policy(recurrent=True))
    agent = RL4SysAgent(written(tmp_path, FLAT | {"observation": 8}), transport=server)
    traj = None
    for step in range(5):
        traj, action = rewarded(agent, traj, step + 1, add=step != 1)
    agent.mark_end_of_trajectory(traj, action)
    agent.close()
    before, after = server.segments()
    assert [array.any() for array in before.carry.values()] == [False]
    assert [array.any() for array in after.carry.values()] == [True]


def test_a_forgotten_trajectory_is_truncated(agent: RL4SysAgent, server: FakeServer) -> None:
    traj = None
    for step in range(3):
        traj, action = rewarded(agent, traj, step)
    del traj, action
    agent.request_for_action(None, seen(9))
    assert sent(agent, server) == [([0, 1], [0, 1, 2], "truncated")]
    assert agent.agent.health().drops == {"no_final_observation": 1}


def test_closing_sends_what_was_not_ended(tmp_path: Path, server: FakeServer) -> None:
    with RL4SysAgent(written(tmp_path, FLAT), transport=server) as agent:
        traj, _ = rewarded(agent, None, 0)
        rewarded(agent, traj, 1, add=False)
    assert [(s.steps, s.ending) for s in server.segments()] == [(1, Ending.TRUNCATED)]


def test_the_attributes_of_the_original_agent(agent: RL4SysAgent) -> None:
    assert (agent.client_id, agent.algorithm_name, agent.algorithm_type) == ("lander", "PPO", "onpolicy")
    assert agent.algorithm_parameters == FLAT["algorithm_parameters"]
    assert (agent.server_address, agent.local_version) == ("localhost:50051", 0)


def test_the_attributes_of_the_original_action(agent: RL4SysAgent) -> None:
    _, action = agent.request_for_action(None, seen(3))
    assert (action.is_reward_set(), action.rew, action.reward) == (False, None, 0.0)
    assert (action.is_done(), action.mask) == (False, None)
    agent.update_action_reward(action, np.float32(1.5))
    assert (action.is_reward_set(), action.rew, action.reward) == (True, 1.5, 1.5)
    assert (action.obs == seen(3)).all()
    assert (int(action.act.item()), action.act[0], action.act.shape) == (action.act, action.act, ())
    assert float(action.data["logp_a"]) == float(action.data["log_prob"]) < 0
    assert action.version == 0
    action.set_done(True)
    assert action.done
    with pytest.raises(ValueError, match="finite"):
        action.update_reward(float("nan"))


def test_the_attributes_of_the_original_trajectory(agent: RL4SysAgent, capsys: pytest.CaptureFixture[str]) -> None:
    traj, action = agent.request_for_action(RL4SysTrajectory(version=7), seen(0))
    assert (traj.is_empty(), traj.is_completed(), traj.version) == (True, False, 0)
    agent.add_to_trajectory(traj, action)
    agent.add_to_trajectory(traj, action)
    assert traj.get_actions() == traj.actions == [action]
    traj.print_actions()
    assert capsys.readouterr().out.startswith("action 0:")
    traj.mark_completed()
    assert traj.is_completed()
    assert traj.is_valid()
    traj.clear()
    assert traj.is_empty()


def test_a_reward_after_sending_is_counted_as_late(agent: RL4SysAgent) -> None:
    traj, action = rewarded(agent, None, 1)
    agent.mark_end_of_trajectory(traj, action)
    action.update_reward(5.0)
    assert agent.agent.health().late_rewards == 1


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
