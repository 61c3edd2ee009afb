from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rl4sys.environments import Grade, GymnasiumConfig, Lanes, UnsupportedSpace, probe
from rl4sys.environments.making import UnsuitableArguments
from rl4sys.environments.wrappers import AreaAverage, FrameSkip, PixelObservation, PixelStack
from rl4sys.experience import Ending

from .samples import SEEDS, Fixed, SavedWalk, play, resumed


class Painted(Fixed):
    """Draws its step number as a shade of grey, 6 high and 8 wide; shows a dict or a vector."""

    def __init__(self, as_dict: bool = False) -> None:
        vector = spaces.Box(-1, 1, (2,), np.float32)
        space = spaces.Dict({"place": vector, "speed": vector}) if as_dict else vector
        super().__init__(space, space.sample())

    def render(self) -> Any:
        return np.full((6, 8, 3), len(self.actions), np.uint8)


def test_a_skipped_frame_repeats_the_action_and_adds_up_the_rewards() -> None:
    config = GymnasiumConfig(name="rl4sys/Truncation-v0", frame_skip=2, num_envs=1)
    lanes = config.lanes(SEEDS, 1, Grade.E1)
    lanes.reset()
    steps = play(lanes, 3)
    assert [(step.reward.item(), step.ending.item()) for step in steps] == [(2.0, 0), (2.0, 0), (1.0, Ending.TRUNCATED)]


def test_a_skipped_frame_gives_the_environment_the_same_action_each_time() -> None:
    environment = Fixed(spaces.Box(0, 1, (1,), np.float32), np.zeros(1, np.float32))
    skipping = FrameSkip(environment, 3)
    skipping.reset()
    skipping.step(1)
    assert environment.actions == [1, 1, 1]


def test_the_time_limit_counts_the_steps_of_the_environment() -> None:
    config = GymnasiumConfig(name="rl4sys/PointReach-v0", frame_skip=4, max_episode_steps=10)
    lanes = config.lanes(SEEDS, 1, Grade.E0)
    lanes.reset()
    play(lanes, 3)
    assert [(episode.length, episode.ending) for episode in lanes.episodes()] == [(3, Ending.TRUNCATED)]


def test_flattened_observations_hold_the_numbers_of_the_dict() -> None:
    flat = GymnasiumConfig(name="rl4sys/PointReach-v0", flatten_obs=True).lanes(SEEDS, 2, Grade.E0)
    named = GymnasiumConfig(name="rl4sys/PointReach-v0").lanes(SEEDS, 2, Grade.E0)
    assert list(flat.reset()) == ["observation"]
    both = flat.observation["observation"], np.concatenate(list(named.reset().values()), axis=1)
    assert np.array_equal(*(np.sort(numbers, axis=1) for numbers in both))


def test_flattening_leaves_a_plain_vector_alone() -> None:
    config = GymnasiumConfig(name="CartPole-v1", flatten_obs=True)
    assert config.lanes(SEEDS, 1, Grade.E1).spec == GymnasiumConfig(name="CartPole-v1").lanes(SEEDS, 1, Grade.E1).spec


def test_pixels_replace_the_observation_and_follow_the_steps() -> None:
    lanes = Lanes(lambda: PixelObservation(Painted(), 4, keep_state=False), 2, SEEDS, Grade.E3)
    lanes.reset()
    assert {name: (array.shape, array.dtype.name) for name, array in lanes.observation.items()} == {
        "pixels": ((2, 4, 4, 3), "uint8")
    }
    assert play(lanes, 3)[-1].observation["pixels"].max() == 3


@pytest.mark.parametrize(("as_dict", "names"), [(True, {"place", "speed"}), (False, {"observation"})])
def test_pixels_stand_beside_the_state_if_it_is_kept(as_dict: bool, names: set[str]) -> None:
    environment = PixelObservation(Painted(as_dict), 8, keep_state=True)
    observation, _ = environment.reset()
    assert observation.keys() == names | {"pixels"}
    assert environment.observation_space.contains(observation)


def test_stacked_pictures_begin_with_the_first_repeated_and_end_with_the_newest() -> None:
    environment = PixelStack(PixelObservation(Painted(), 8, keep_state=True), 3)
    first, _ = environment.reset()
    shown = [first, *(environment.step(0)[0] for _ in range(4))]
    assert all(environment.observation_space.contains(observation) for observation in shown)
    assert [observation["pixels"][0, 0, ::3].tolist() for observation in shown] == [
        *([0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4])
    ]
    again, _ = environment.reset()
    assert np.ptp(again["pixels"]) == 0


def test_an_environment_that_draws_something_else_is_refused() -> None:
    plain = Fixed(spaces.Box(0, 1, (1,), np.float32), np.zeros(1, np.float32))
    plain.render = lambda: np.zeros((4, 4), np.float32)  # type: ignore[method-assign]  # an instance of its own
    with pytest.raises(ValueError, match=r"drew float32 \[4, 4\]"):
        PixelObservation(plain, 4, keep_state=False).reset()


@pytest.mark.filterwarnings("ignore:.*render_mode:UserWarning")
@pytest.mark.parametrize(("name", "pixels"), [("rl4sys/PointReach-v0", {}), ("CartPole-v1", {"camera": "side"})])
def test_what_cannot_be_drawn_is_refused_with_what_pixels_need(name: str, pixels: dict[str, Any]) -> None:
    with pytest.raises(UnsuitableArguments, match="needs an environment that draws itself"):
        GymnasiumConfig.model_validate({"name": name, "pixels": pixels}).maker()()


@pytest.mark.parametrize(("height", "width", "size"), [(400, 600, 84), (7, 5, 3), (3, 3, 8), (84, 84, 84)])
def test_area_averages_keep_the_mean_and_the_range(height: int, width: int, size: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    small = AreaAverage(height, width, size)(image)
    assert small.shape == (size, size, 3)
    assert abs(small.mean() - image.mean()) < 0.6
    assert AreaAverage(height, width, size)(np.full_like(image, 255)).min() == 255


def test_area_averages_are_means_of_blocks_where_sizes_divide() -> None:
    image = np.random.default_rng(1).integers(0, 256, (6, 9, 3), np.uint8)
    blocks = image.reshape(3, 2, 3, 3, 3).mean(axis=(1, 3))
    assert np.abs(AreaAverage(6, 9, 3)(image) - blocks).max() < 0.501


class PaintedWalk(SavedWalk):
    """A walk with a state of its own that can be drawn."""

    render_mode = "rgb_array"

    def render(self) -> Any:
        return np.full((4, 4, 3), int(10 * self.position) % 256, np.uint8)


def test_our_wrappers_leave_the_best_grade_as_it_is() -> None:
    def wrapped() -> gymnasium.Env[Any, Any]:
        return PixelObservation(FrameSkip(PaintedWalk(), 2), 4, keep_state=True)

    assert probe(wrapped, SEEDS) is Grade.E0
    assert probe(lambda: PixelStack(wrapped(), 4), SEEDS) is Grade.E0


def test_a_replayed_episode_shows_the_pictures_that_it_showed() -> None:
    def stacked() -> gymnasium.Env[Any, Any]:
        return PixelStack(PixelObservation(PaintedWalk(), 4, keep_state=False), 3)

    _, is_exact = resumed(stacked, Grade.E1)
    assert is_exact


def test_classic_environments_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    lanes = GymnasiumConfig.model_validate({"name": "CartPole-v1", "pixels": {"size": 32}}).lanes(SEEDS, 1, Grade.E1)
    first = lanes.reset()["pixels"].copy()
    assert 0 < (first < 128).mean() < 0.2
    assert not np.array_equal(play(lanes, 5)[-1].observation["pixels"], first)


def test_only_the_chosen_numbers_are_observed() -> None:
    config = GymnasiumConfig(name="CartPole-v1", observe=(0, 2), num_envs=1)
    hidden, whole = config.maker()(), GymnasiumConfig(name="CartPole-v1").maker()()
    (shown, _), (seen, _) = hidden.reset(seed=3), whole.reset(seed=3)
    np.testing.assert_array_equal(shown, seen[[0, 2]])
    np.testing.assert_array_equal(hidden.step(1)[0], whole.step(1)[0][[0, 2]])
    assert hidden.observation_space.contains(shown)


def test_a_number_that_is_not_observed_cannot_be_chosen() -> None:
    with pytest.raises(UnsupportedSpace, match="names number 4, counted from 0, and this environment shows 4 numbers"):
        GymnasiumConfig(name="CartPole-v1", observe=(0, 4)).maker()()


def test_numbers_are_chosen_from_vectors_only() -> None:
    with pytest.raises(UnsupportedSpace, match=r"set environment\.flatten_obs=true"):
        GymnasiumConfig(name="rl4sys/PointReach-v0", observe=(0,)).maker()()
