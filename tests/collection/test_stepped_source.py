from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rl4sys.collection import Environments, SteppedSource
from rl4sys.environments import Grade, Lanes
from rl4sys.experience import Ending, Segment
from rl4sys.policy import NumpyPolicy, PolicySpec
from rl4sys.state import from_text, to_text

from .worlds import (
    SEEDS,
    SHORT_CHAIN,
    assert_same_segments,
    chain_lanes,
    chain_that_resets_within_a_step,
    of_lane,
    ppo_for,
    recorded,
    remembering_policy,
    replayed,
    version,
    versions,
)

BACKENDS = pytest.mark.parametrize("backend", [chain_lanes, chain_that_resets_within_a_step])
Backend = Callable[[], Any]


def collected(lanes: Environments, policy: PolicySpec, steps: int, used: list[Any]) -> list[Segment]:
    """Everything that these versions experience, one turn each."""
    source = SteppedSource(lanes, policy, steps, seed=5)
    segments = [segment for newest in used for segment in source.collect(newest).segments]
    source.close()
    return segments


@BACKENDS
@settings(max_examples=12, deadline=None)
@given(steps=st.integers(1, 9), turns=st.integers(1, 6))
def test_segments_tell_what_a_plain_loop_would_have_seen(backend: Backend, steps: int, turns: int) -> None:
    lanes = backend()
    algorithm = ppo_for(lanes.spec)
    segments = collected(lanes, algorithm.policies.explore, steps, versions(algorithm, turns))
    for lane in range(lanes.count):
        own = of_lane(segments, lane)
        actions = [action for segment in own for action in segment.action.tolist()]
        assert list(recorded(own)) == list(replayed(SHORT_CHAIN.maker()(), lane, actions))


@BACKENDS
def test_segments_belong_to_one_episode_and_one_version(backend: Backend) -> None:
    lanes = backend()
    algorithm = ppo_for(lanes.spec)
    segments = collected(lanes, algorithm.policies.explore, 7, versions(algorithm, 5))
    endings = {segment.ending for segment in segments}
    assert endings == set(Ending)
    for lane in range(lanes.count):
        own = of_lane(segments, lane)
        assert sorted({segment.policy_version for segment in own}) == list(range(5))
        for earlier, later in pairwise(own):
            assert later.follows(earlier) == (earlier.ending is Ending.CONTINUES)


def test_no_step_is_lost_or_counted_twice() -> None:
    algorithm = ppo_for(chain_lanes().spec)
    source = SteppedSource(chain_lanes(), algorithm.policies.explore, 7, seed=5)
    turns = [source.collect(newest) for newest in versions(algorithm, 6)]
    assert [sum(segment.steps for segment in turn.segments) for turn in turns] == [7 * 3] * 6
    ended = [s for turn in turns for s in turn.segments if s.ending is not Ending.CONTINUES]
    summaries = [episode for turn in turns for episode in turn.episodes]
    assert len(ended) == len(summaries)
    assert sum(summary.length for summary in summaries) == sum(s.start + s.steps for s in ended)


def test_segments_outlive_the_rollout_they_came_from() -> None:
    algorithm = ppo_for(chain_lanes().spec)
    source = SteppedSource(chain_lanes(), algorithm.policies.explore, 7, seed=5)
    first = source.collect(versions(algorithm, 1)[0]).segments
    again = SteppedSource(chain_lanes(), algorithm.policies.explore, 7, seed=5).collect(versions(algorithm, 1)[0])
    source.collect(versions(algorithm, 2)[1])
    assert_same_segments(first, again.segments)


def test_what_was_noted_about_an_action_is_what_its_version_thought() -> None:
    algorithm = ppo_for(chain_lanes().spec)
    used = versions(algorithm, 3)
    for segment in collected(chain_lanes(), algorithm.policies.explore, 5, used):
        policy = NumpyPolicy(algorithm.policies.explore, used[segment.policy_version].blob)
        rows = {name: array[:-1] for name, array in segment.observation.items()}
        probabilities = []
        for share in np.linspace(0.0, 1.0, 400, endpoint=False, dtype=np.float32):
            action = policy.act(rows, np.full((segment.steps, 1), share, np.float32)).action
            probabilities.append(action == segment.action)
        assert np.mean(probabilities, axis=0) == pytest.approx(np.exp(segment.extras["log_prob"]), abs=0.01)


@BACKENDS
def test_memory_starts_empty_with_every_episode(backend: Backend) -> None:
    lanes = backend()
    policy, newest = remembering_policy(lanes.spec)
    segments = collected(lanes, policy, 7, [newest] * 5)
    runtime = NumpyPolicy(policy, newest.blob)
    memory = runtime.initial_carry(1)
    for lane in range(lanes.count):
        for segment in of_lane(segments, lane):
            if segment.start == 0:
                memory = runtime.initial_carry(1)
            np.testing.assert_allclose(segment.carry["memory.hidden"], memory["memory.hidden"][0], atol=1e-5)
            for row in segment.observation["observation"][:-1]:
                decision = runtime.act({"observation": row[None]}, np.zeros((1, 1), np.float32), memory)
                memory = {name: array.copy() for name, array in decision.carry.items()}


class Listening(gymnasium.Env[Any, Any]):
    """Remembers the actions that it was given."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Box(-0.1, 0.1, (2,), np.float32)
    heard: list[list[float]] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.heard.append(action.tolist())
        return np.zeros(1, np.float32), 0.0, False, False, {}


def test_actions_are_stored_as_chosen_and_done_as_allowed() -> None:
    Listening.heard.clear()
    lanes = Lanes(Listening, 1, SEEDS, Grade.E3)
    algorithm = ppo_for(lanes.spec)
    (segment,) = collected(lanes, algorithm.policies.explore, 50, [version(0, algorithm.train_state.policy_weights())])
    assert np.abs(segment.action).max() > 1.0
    np.testing.assert_array_equal(Listening.heard, np.clip(segment.action, -0.1, 0.1, dtype=np.float32))


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_restored_source_continues_exactly(turns: int) -> None:
    algorithm = ppo_for(chain_lanes().spec)
    original, resumed = (SteppedSource(chain_lanes(), algorithm.policies.explore, 5, seed=5) for _ in range(2))
    used = versions(algorithm, 8)
    for newest in used[:turns]:
        original.collect(newest)
    assert list(resumed.restore(from_text(to_text(original.state())))) == []
    for newest in used[turns:]:
        one, other = original.collect(newest), resumed.collect(newest)
        assert_same_segments(one.segments, other.segments)
        assert one.episodes == other.episodes


def test_a_lane_that_cannot_resume_begins_a_new_episode() -> None:
    algorithm = ppo_for(chain_lanes().spec)
    original, resumed = (
        SteppedSource(chain_lanes(grade=Grade.E3), algorithm.policies.explore, 4, seed=5) for _ in range(2)
    )
    newest = versions(algorithm, 1)[0]
    before = original.collect(newest).segments
    assert len(resumed.restore(original.state())) == 3
    after = resumed.collect(newest).segments
    for lane in range(3):
        assert of_lane(after, lane)[0].start == 0
        assert of_lane(after, lane)[0].episode > of_lane(before, lane)[-1].episode
