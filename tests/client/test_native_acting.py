"""A client with the native runtime records what a client with numpy records."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.waiting import until
from tests.native import needs_native

from rl4sys.client import Agent, BadObservation, Ending, Episode, connect
from rl4sys.experience import Array, ArraySpec, Segment
from rl4sys.policy import (
    BoxAction,
    DiscreteAction,
    Head,
    MultiDiscreteAction,
    NoAllowedAction,
    PolicySpec,
    ProgramBuilder,
    kernel_set,
)

pytestmark = needs_native
Play = Callable[[FakeServer, Agent], Any]
POLICIES: dict[str, Callable[[], PolicySpec]] = {
    "choices": small_policy,
    "masked": lambda: small_policy(masked=True),
    "memory": lambda: small_policy(recurrent=True),
    "numbers": lambda: _vector_policy(),
    "several choices": lambda: _several_choices(),
    "two axes": lambda: _two_axes(),
}


def _vector_policy() -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("observation", "float32", (8,)),))
    mean = builder.linear(builder.activation(builder.linear("observation", 8, "a"), "tanh"), 2, "b")
    std = builder.tensor("log_std", 2)
    return PolicySpec(BoxAction((-0.5, -1.0), (0.5, 1.0)), builder.program(), Head("gaussian", (mean,), (std,)))


def _two_axes() -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("observation", "float32", (2, 4)),))
    scores = builder.linear(builder.flat("observation"), 4, "a")
    return PolicySpec(DiscreteAction(4), builder.program(), Head("categorical", (scores,)))


def _several_choices() -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("observation", "float32", (8,)),))
    scores = builder.linear("observation", 5, "a")
    return PolicySpec(MultiDiscreteAction((3, 2)), builder.program(), Head("categorical", (scores,)))


def played(play: Play, policy: str = "choices", **settings: Any) -> tuple[Any, Any]:
    """What numpy and native clients return and record for the same program."""
    found = []
    for runtime in ("numpy", "native"):
        server = FakeServer(POLICIES[policy]())
        action = _settings_of(server.spec.action)
        with agent_on(server, runtime=runtime, action=action, seed=7, **settings) as agent:
            returned = play(server, agent)
        found.append((returned, server.segments()))
    (first, recorded), (second, natively) = found
    assert_equal(recorded, natively)
    return first, second


def _settings_of(action: Any) -> Any:
    if isinstance(action, BoxAction):
        return {"low": list(action.low), "high": list(action.high)}
    return list(action.sizes) if isinstance(action, MultiDiscreteAction) else action.n


def assert_equal(recorded: list[Segment], natively: list[Segment]) -> None:
    assert len(recorded) == len(natively) > 0
    for one, other in zip(recorded, natively, strict=True):
        # Episodes are numbered from the time of the start.
        assert one.episode - recorded[0].episode == other.episode - natively[0].episode
        assert (one.stream, one.start, one.ending) == (other.stream, other.start, other.ending)
        assert one.policy_version == other.policy_version
        for name, array in one.observation.items():
            np.testing.assert_array_equal(array, other.observation[name])
        np.testing.assert_array_equal(one.reward, other.reward)
        np.testing.assert_allclose(one.action, other.action, rtol=1e-5, atol=1e-5)
        for arrays, others in ((one.extras, other.extras), (one.carry, other.carry)):
            for name, array in arrays.items():
                np.testing.assert_allclose(array, others[name], rtol=1e-5, atol=1e-5)
        assert (one.elapsed is None) == (other.elapsed is None)


def several_episodes(server: FakeServer, agent: Agent) -> list[Any]:
    chosen = []
    for length in (1, 2, 40, 300):
        with agent.episode() as episode:
            for step in range(length):
                chosen.append(np.asarray(episode.act(np.sin(seen(step)))).tolist())
                episode.reward(0.5 * step)
            episode.end(seen(length), Ending.TERMINATED)
    return chosen


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "two axes"])
def test_episodes_of_every_kind_of_action_are_recorded_alike(policy: str) -> None:
    numpy, native = played(several_episodes, policy, max_segment_length=64)
    np.testing.assert_allclose(np.ravel(numpy), np.ravel(native), rtol=1e-5, atol=1e-5)


def test_most_decisions_are_taken_by_the_extension() -> None:
    with agent_on(FakeServer(), runtime="native", max_segment_length=256) as agent, agent.episode() as episode:
        steps(episode, 200)
        assert episode.path.taken > 100
        assert episode.decision == 199
        assert agent.health().decisions == 200


def test_masks_and_named_observations_are_read_alike() -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        chosen = []
        with agent.episode() as episode:
            for step in range(60):
                mask = np.array([step % 2 == 0, True, step % 3 == 0, False])
                observation: Any = seen(step % 5) if step % 2 else {"observation": seen(step % 5).astype(np.float64)}
                chosen.append(episode.act(observation, None if step % 7 == 0 else mask))
            episode.end(seen(0))
        return chosen

    numpy, native = played(play, "masked")
    assert numpy == native


def test_rewards_reach_their_decisions_alike() -> None:
    def play(server: FakeServer, agent: Agent) -> int:
        with agent.episode() as episode:
            for step in range(50):
                episode.act(seen(step))
                episode.reward(np.float64(0.1), episode.decision)
                episode.reward(step, max(0, step - 9))
                episode.reward("0.25", np.int64(max(0, step - 40)))  # type: ignore[arg-type]
                if step % 10 == 0:
                    episode.reward(1.0, final=True)
            episode.end(seen(50))
        return agent.health().late_rewards

    numpy, native = played(play, max_segment_length=16, reward_window=20)
    assert numpy == native > 0


def test_new_versions_cut_segments_at_the_same_decision() -> None:
    def play(server: FakeServer, agent: Agent) -> None:
        with agent.episode() as episode:
            for number in range(1, 4):
                steps(episode, 30)
                version = server.publish(some_weights(server.spec, number))
                until(lambda: agent.health().version == version)  # noqa: B023  # called within this round
            steps(episode, 5)
            episode.end(seen(5))

    played(play)


def test_what_the_system_did_and_times_are_recorded_alike() -> None:
    def play(server: FakeServer, agent: Agent) -> None:
        with agent.episode() as episode:
            for step in range(40):
                if step % 8 == 5:
                    episode.took(seen(step), 1)
                else:
                    episode.act(seen(step))
            episode.end(seen(40))
        with agent.episode() as episode:
            for step in range(40):
                episode.act(seen(step), now=float(step))
            episode.end(seen(40), now=40.0)

    played(play)


def input_kinds() -> Mapping[str, Callable[[Array], Any]]:
    return {
        "float64": lambda row: row.astype(np.float64),
        "int64": lambda row: (10 * row).astype(np.int64),
        "uint8": lambda row: abs(10 * row).astype(np.uint8),
        "list": lambda row: row.tolist(),
        "tuple": lambda row: tuple(row.tolist()),
        "numbers of numpy": list,
        "whole numbers": lambda row: [int(10 * value) for value in row],
        "mixed numbers": lambda row: [True, 2, 1 << 40, 1 << 60, *row[:4].tolist()],
        "tensor": torch.tensor,
        "tensor of float64": lambda row: torch.tensor(row, dtype=torch.float64),
        "tensor of int64": lambda row: torch.tensor((10 * row).astype(np.int64)),
        "tensor with a gradient": lambda row: torch.tensor(row, requires_grad=True),
        "parameter": lambda row: torch.nn.Parameter(torch.tensor(row)),
        "part of a tensor": lambda row: torch.tensor(np.repeat(row, 2))[::2],
        "named list": lambda row: {"observation": row.tolist()},
        "named tensor": lambda row: {"observation": torch.tensor(row)},
    }


@pytest.mark.parametrize("kind", input_kinds())
def test_observations_of_every_kind_are_recorded_alike(kind: str) -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        chosen = []
        for length in (1, 30):
            with agent.episode() as episode:
                for step in range(length):
                    row = np.sin(np.arange(8, dtype=np.float32) + step)
                    chosen += [episode.act(input_kinds()[kind](row))]
                episode.end(seen(length))
        return chosen

    numpy, native = played(play)
    assert numpy == native


@pytest.mark.parametrize("kind", ["list", "tuple", "whole numbers", "tensor", "tensor with a gradient", "named tensor"])
def test_observations_of_every_kind_are_read_by_the_extension(kind: str) -> None:
    with agent_on(FakeServer(), runtime="native", max_segment_length=256) as agent:
        with agent.episode() as warm:
            steps(warm, 200)
            warm.end(seen(200))
        with agent.episode() as episode:
            for step in range(60):
                episode.act(input_kinds()[kind](np.sin(seen(step))))
            assert episode.path.taken == 60


def masks() -> Mapping[str, Any]:
    allowed = [1, 0, 1, 0]
    return {
        "list": allowed,
        "list of bools": [bool(each) for each in allowed],
        "float32": np.array(allowed, np.float32),
        "float64": np.array(allowed, np.float64),
        "int64": np.array(allowed),
        "uint8": np.array(allowed, np.uint8),
        "NaN": np.array([np.nan, 0.0, 0.5, -0.0]),
        "tensor": torch.tensor(allowed),
        "tensor of bools": torch.tensor(allowed, dtype=torch.bool),
    }


@pytest.mark.parametrize("kind", masks())
def test_masks_of_every_kind_are_read_alike(kind: str) -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        with agent.episode() as episode:
            chosen = [episode.act(seen(step % 3), masks()[kind]) for step in range(40)]
            episode.end(seen(0))
        return chosen

    numpy, native = played(play, "masked")
    assert numpy == native
    assert set(native) <= {0, 2}


def test_lists_are_read_alike_where_observations_have_two_axes() -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        with agent.episode() as episode:
            chosen = [episode.act(np.sin(np.arange(8.0) + step).reshape(2, 4).tolist()) for step in range(30)]
            with pytest.raises(BadObservation, match="shape"):
                episode.act([[1.0] * 4] * 3)
            episode.end(np.zeros((2, 4), np.float32))
        return chosen

    numpy, native = played(play, "two axes", observation=[2, 4])
    assert numpy == native


def test_an_episode_of_one_decision_is_decided_by_the_extension() -> None:
    with agent_on(FakeServer(), runtime="native") as agent, agent.episode() as episode:
        episode.act(seen(0))
        assert episode.path.taken == 1
        assert agent.health().decisions == 1


def test_an_episode_without_a_decision_records_nothing_whatever_it_ends_with() -> None:
    def play(server: FakeServer, agent: Agent) -> None:
        with agent.episode() as episode:
            with pytest.raises(BadObservation):
                episode.act("four")
            episode.end("four")
        with agent.episode() as episode:
            steps(episode, 1)
            episode.end(seen(1))

    played(play)


def ask_for(share: float, server: FakeServer, agent: Agent) -> None:
    """Record this share of episodes from now on, whatever the server replies to."""
    server.reply.record_share = agent.shared.governor.record_share = share


def test_a_share_of_episodes_is_left_out_alike() -> None:
    def play(server: FakeServer, agent: Agent) -> int:
        ask_for(0.5, server, agent)
        for number in range(40):
            with agent.episode() as episode:
                steps(episode, 1 + number % 3)
                episode.end(seen(number))
        return agent.health().thinned_episodes

    numpy, native = played(play)
    assert numpy == native == 20


def test_steps_that_are_taken_out_are_those_of_numpy() -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        taken = []
        ask_for(0.01, server, agent)
        with agent.episode() as episode:
            for step in range(1_100):
                episode.act(np.sin(seen(step)))
                if step % 100 == 50:
                    episode.reward(1.0)
                found = episode.take_step()
                taken.append(None if found is None else (int(found.action), found.snapshot.version))
        ask_for(1.0, server, agent)
        with agent.episode() as episode:
            steps(episode, 3)
            episode.end(seen(3))
        return taken

    numpy, native = played(play)
    assert numpy == native
    # Asked again after a span of 1,024 decisions.
    assert [each is None for each in native[1_023:1_025]] == [False, True]


def bad_inputs() -> Mapping[str, Any]:
    return {
        "a list with NaN": [float("nan")] * 8,
        "a list that is infinite as float32": [1e300] * 8,
        "a short list": [0.5] * 7,
        "a nested list": [[0.5]] * 8,
        "a list with text": [0.5] * 7 + ["four"],
        "a tensor with NaN": torch.full((8,), float("nan")),
        "a tensor of another shape": torch.zeros(7),
        "complex numbers": [1j] * 8,
        "nothing": None,
        "NaN": np.full(8, np.nan, np.float32),
        "infinite as float32": np.full(8, 1e300),
        "another shape": np.zeros(7, np.float32),
        "text": "four",
        "another name": {"other": seen(0)},
    }


@pytest.mark.parametrize("bad", bad_inputs())
def test_bad_input_has_the_same_error_and_changes_nothing(bad: str) -> None:
    def play(server: FakeServer, agent: Agent) -> str:
        with agent.episode() as episode:
            steps(episode, 30)
            with pytest.raises(BadObservation) as raised, np.errstate(all="ignore"):
                episode.act(bad_inputs()[bad])
            steps(episode, 30, first=30)
            episode.end(seen(60))
        assert agent.health().bad_inputs == 1
        return str(raised.value)

    numpy, native = played(play)
    assert numpy == native


def test_a_mask_that_allows_nothing_has_the_same_error() -> None:
    def play(server: FakeServer, agent: Agent) -> str:
        with agent.episode() as episode:
            steps(episode, 20)
            with pytest.raises(NoAllowedAction) as raised:
                episode.act(seen(0), np.zeros(4, bool))
            episode.end(seen(20))
        return str(raised.value)

    numpy, native = played(play, "masked")
    assert numpy == native


def test_act_many_continues_what_single_decisions_began() -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        episodes = [agent.episode() for _ in range(3)]
        chosen: list[Any] = []
        for step in range(30):
            if step % 3:
                chosen += [episode.act(seen(step)) for episode in episodes]
            else:
                chosen += agent.act_many(episodes, np.stack([seen(step)] * 3))
        for episode in episodes:
            episode.end(seen(30))
        return chosen

    numpy, native = played(play)
    assert numpy == native


def test_rewards_of_another_thread_are_all_counted() -> None:
    with agent_on(FakeServer(), runtime="native", max_segment_length=1000) as agent, agent.episode() as episode:
        steps(episode, 300)

        def reward() -> None:
            for _ in range(5_000):
                episode.reward(1.0, 10)

        threads = [threading.Thread(target=reward) for _ in range(3)]
        for thread in threads:
            thread.start()
        for step in range(300):
            episode.act(seen(step))
        for thread in threads:
            thread.join()
        with episode.lock:
            buffer = episode.record.buffer
            assert buffer is not None
            assert buffer.reward[10] == 10 + 15_000
            assert buffer.count == 600


def test_a_forked_child_has_to_connect_again() -> None:
    with agent_on(FakeServer(), runtime="native") as agent, agent.episode() as episode:
        steps(episode, 10)
        child = os.fork()
        if child == 0:
            try:
                episode.act(seen(0))
            except RuntimeError as error:
                os._exit(7 if "connect after the fork" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_the_runtime_is_shown_to_users_and_to_the_server() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        assert agent.health().runtime == kernel_set()
        assert server.joins[0].software.endswith(f"({kernel_set()})")
    with connect({"client_id": "plain", "runtime": "numpy"}, transport=FakeServer()) as agent:
        assert agent.health().runtime == "numpy"


def test_a_large_policy_decides_without_the_path_and_records_alike() -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        with agent.episode() as episode:
            chosen = [episode.act(seen(step)) for step in range(20)]
            assert episode.path is None
            episode.end(seen(20))
        return chosen

    POLICIES["large"] = lambda: small_policy(hidden=300)
    try:
        numpy, native = played(play, "large")
    finally:
        del POLICIES["large"]
    assert numpy == native


def test_an_episode_that_has_ended_takes_no_decision(caplog: pytest.LogCaptureFixture) -> None:
    with agent_on(FakeServer(), runtime="native") as agent:
        episode: Episode = agent.episode()
        steps(episode, 10)
        episode.end(seen(10))
        with pytest.raises(ValueError, match="has ended"):
            episode.act(seen(11))
        episode.reward(1.0, 3)
        assert agent.health().late_rewards == 1


def test_many_short_episodes_at_once_are_those_of_numpy() -> None:
    def play(server: FakeServer, agent: Agent) -> list[Any]:
        chosen: list[Any] = []
        for number in range(3):
            episodes = [agent.episode() for _ in range(80)]
            chosen += agent.act_many(episodes, np.sin(np.arange(640, dtype=np.float32) + number).reshape(80, 8))
            for episode in episodes:
                episode.reward(1.0)
                episode.end()
        return chosen

    numpy, native = played(play)
    assert numpy == native
