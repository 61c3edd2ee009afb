"""How Atari games are played and seen, with a painted game that needs no ROM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl4sys.environments import AtariConfig, Grade, Lanes, probe
from rl4sys.environments.atari import FIRE, NOOP
from rl4sys.experience import ArraySpec, Ending
from rl4sys.policy import DiscreteAction

from .painted_atari import LEFT, RIGHT, PaintedGame, painted, shown
from .samples import SEEDS, fingerprint, play, resumed

POINTS = 2
"""The action that earns 3 points a frame: button 3, the third of the painted game."""


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> AtariConfig:
    monkeypatch.setattr("rl4sys.environments.atari_config.load_game", lambda name, max_frames: PaintedGame(max_frames))
    return AtariConfig(name="atari/Painted", noop_max=0, fire_reset=False)


def changed(config: AtariConfig, **settings: Any) -> AtariConfig:
    return AtariConfig.model_validate({**config.model_dump(), **settings})


def one_lane(config: AtariConfig, grade: Grade = Grade.E3) -> Lanes:
    lanes = config.lanes(SEEDS, 1, grade)
    lanes.reset()
    return lanes


def press(lanes: Lanes, action: int, steps: int) -> list[float]:
    return [float(lanes.step(np.array([action])).reward[0]) for _ in range(steps)]


def test_a_game_begins_with_a_random_number_of_frames_without_an_action() -> None:
    game = PaintedGame()
    environment = painted(game, noop_max=30)
    counts = set()
    for seed in range(200):
        environment.reset(seed=seed)
        counts.add(len(game.held))
        assert set(game.held) == {NOOP}
    assert counts == set(range(1, 31))


def test_a_game_that_ends_before_its_first_step_is_begun_again() -> None:
    game = PaintedGame(lives=1, life=5)
    environment = painted(game, noop_max=30)
    for seed in range(20):
        environment.reset(seed=seed)
        assert not game.game_over(with_truncation=True)


def test_an_action_is_held_while_frames_are_skipped_and_their_rewards_are_added_up() -> None:
    game = PaintedGame()
    environment = painted(game, frame_skip=5)
    environment.reset(seed=0)
    _, reward, *_ = environment.step(POINTS)
    assert (game.held, reward) == ([3] * 5, 15.0)


def test_what_is_seen_is_the_brighter_of_the_last_two_frames() -> None:
    environment = painted(PaintedGame())
    assert shown(environment.reset(seed=0)[0]) == [LEFT, 0, 0]
    assert shown(environment.step(0)[0]) == [LEFT, 4, RIGHT]
    assert shown(environment.step(0)[0]) == [LEFT, 8, RIGHT]


def test_without_skipped_frames_one_frame_is_seen() -> None:
    environment = painted(PaintedGame(), frame_skip=1)
    environment.reset(seed=0)
    assert shown(environment.step(0)[0]) == [0, 1, RIGHT]
    assert shown(environment.step(0)[0]) == [LEFT, 2, 0]


def test_the_last_image_of_a_game_shows_its_last_frame() -> None:
    environment = painted(PaintedGame(lives=1, life=6))
    environment.reset(seed=0)
    environment.step(0)
    observation, _, terminated, *_ = environment.step(0)
    assert (terminated, shown(observation)) == (True, [LEFT, 6, 0])


def test_fire_is_pressed_when_a_game_starts_and_after_a_lost_life() -> None:
    game = PaintedGame(life=8)
    environment = painted(game, presses_fire=True)
    environment.reset(seed=0)
    assert game.held == [FIRE] * 4
    environment.step(0)
    assert game.held == [FIRE] * 4 + [NOOP] * 4 + [FIRE] * 4


def test_fire_is_not_pressed_where_there_is_no_such_button() -> None:
    game = PaintedGame(buttons=(0, 3, 4))
    painted(game, presses_fire=True).reset(seed=0)
    assert game.held == []


def test_a_lost_life_ends_an_episode_and_the_next_one_continues_the_game(config: AtariConfig) -> None:
    lanes = one_lane(config)
    endings = [int(lanes.step(np.array([0])).ending[0]) for _ in range(12)]
    assert endings == [int(Ending.CONTINUES)] * 9 + [int(Ending.TERMINATED)] + [int(Ending.CONTINUES)] * 2
    assert shown({"pixels": lanes.observation["pixels"][0]})[1] == 48


def test_reports_are_of_whole_games_with_the_rewards_of_the_game(config: AtariConfig) -> None:
    lanes = one_lane(config)
    rewards = press(lanes, POINTS, 30)
    assert rewards == [1.0] * 30
    assert [(episode.return_, episode.length) for episode in lanes.episodes()] == [(360.0, 30)]


def test_evaluations_play_whole_games_with_the_rewards_of_the_game(config: AtariConfig) -> None:
    lanes = one_lane(config.for_evaluation())
    rewards = press(lanes, POINTS, 30)
    assert rewards == [12.0] * 30
    assert [(episode.return_, episode.length) for episode in lanes.episodes()] == [(360.0, 30)]


def test_rewards_are_clipped_to_their_signs(config: AtariConfig) -> None:
    lanes = one_lane(config)
    assert [*press(lanes, POINTS, 1), *press(lanes, 0, 1), *press(lanes, 3, 1)] == [1.0, 0.0, -1.0]
    assert press(one_lane(changed(config, clip_rewards=False)), 3, 1) == [-8.0]


def test_images_are_stacked_with_the_newest_last(config: AtariConfig) -> None:
    lanes = one_lane(config)
    middle = [lanes.observation["pixels"][0, 42, 42].tolist()]
    for _ in range(3):
        press(lanes, 0, 1)
        middle.append(lanes.observation["pixels"][0, 42, 42].tolist())
    assert middle == [[0, 0, 0, 0], [0, 0, 0, 4], [0, 0, 4, 8], [0, 4, 8, 12]]
    assert config.frames == {"pixels": 4}


def test_a_new_episode_begins_with_its_first_image_repeated(config: AtariConfig) -> None:
    lanes = one_lane(config)
    press(lanes, 0, 10)
    assert lanes.observation["pixels"][0, 42, 42].tolist() == [40] * 4


@pytest.mark.parametrize(("stack", "channels"), [(1, 1), (4, 4)])
def test_observations_are_grey_images(config: AtariConfig, stack: int, channels: int) -> None:
    spec = one_lane(changed(config, stack=stack)).spec
    assert spec.observation == (ArraySpec("pixels", "uint8", (84, 84, channels)),)
    assert spec.action == DiscreteAction(4)


def test_all_actions_of_the_joystick_can_be_offered(config: AtariConfig) -> None:
    assert one_lane(changed(config, full_action_set=True)).spec.action == DiscreteAction(18)


def test_sticky_actions_stay_in_force_for_another_frame() -> None:
    game = PaintedGame(lives=1, life=100_000)
    environment = painted(game, sticky=0.25)
    environment.reset(seed=0)
    for step in range(4_000):
        environment.step(step % 4)
    wanted = np.repeat(np.resize([0, 1, 3, 4], 4_000), 4)[::4]
    assert np.mean(wanted != game.held[::4]) == pytest.approx(0.25, abs=0.02)
    assert np.mean(wanted != game.held[3::4]) == pytest.approx(0.25**4, abs=0.005)


def test_the_limit_of_frames_truncates_a_game(config: AtariConfig) -> None:
    lanes = one_lane(changed(config, max_frames=22))
    endings = [int(lanes.step(np.array([0])).ending[0]) for _ in range(6)]
    assert endings == [int(Ending.CONTINUES)] * 5 + [int(Ending.TRUNCATED)]
    assert [episode.ending for episode in lanes.episodes()] == [Ending.TRUNCATED]


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_games_resume_to_the_bit_across_lives_and_games(config: AtariConfig, sticky: float) -> None:
    sticking = changed(config, sticky_actions=sticky, noop_max=30, fire_reset=True)
    lanes, is_same = resumed(sticking.maker(), Grade.E0, before=37, after=60)
    assert is_same
    assert lanes.inexact == []
    assert probe(sticking.maker(), SEEDS, steps=10) is Grade.E0


def test_a_resumed_game_reports_its_whole_return(config: AtariConfig) -> None:
    lanes, other = one_lane(config, Grade.E0), config.lanes(SEEDS, 1, Grade.E0)
    press(lanes, POINTS, 15)
    other.restore(lanes.state())
    press(other, POINTS, 15)
    assert [(episode.return_, episode.length) for episode in other.episodes()] == [(360.0, 30)]


def test_what_was_shown_before_stays_as_it_was(config: AtariConfig) -> None:
    environment = config.maker()()
    environment.reset(seed=0)
    observation, *_ = environment.step(0)
    before = observation["pixels"].copy()
    environment.step(0)
    assert np.array_equal(observation["pixels"], before)


def test_equal_seeds_play_equal_games(config: AtariConfig) -> None:
    sticky = changed(config, sticky_actions=0.25, noop_max=30)
    one, other = (fingerprint(play(one_lane(sticky), 50)) for _ in range(2))
    assert one == other
