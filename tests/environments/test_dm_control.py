from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.engine.tensor_batch import TransitionTensors
from rl4sys.environments import Grade, GymnasiumConfig, Lanes, make_environment, probe
from rl4sys.environments.dm_control_tasks import DmControl, load_suite, task_names
from rl4sys.environments.making import UnsuitableArguments
from rl4sys.experience import ArraySpec, Ending
from rl4sys.policy import BoxAction

from .samples import SEEDS, fingerprint, play, resumed

pytest.importorskip("dm_env")

SHIPPED = ("cartpole/swingup", "cheetah/run", "walker/walk")
CHANGED_MODELS = ("reacher/hard", "point_mass/hard", "finger/turn_easy", "manipulator/insert_peg")
"""Tasks that draw a part of their model for each episode."""


def task(name: str, **settings: Any) -> GymnasiumConfig:
    return GymnasiumConfig.model_validate({"name": f"dm_control/{name}", **settings})


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHIPPED, *CHANGED_MODELS])
def test_the_probe_finds_that_tasks_save_themselves(name: str) -> None:
    assert probe(task(name).maker(), SEEDS, steps=10) is Grade.E0


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHIPPED, *CHANGED_MODELS, "humanoid_CMU/run", "lqr/lqr_6_2"])
def test_tasks_resume_to_the_bit_from_any_step(name: str) -> None:
    before = int(np.random.default_rng(len(name)).integers(1, 60))
    lanes, is_same = resumed(task(name).maker(), Grade.E0, before, after=20)
    assert is_same
    assert lanes.inexact == []


def test_a_task_resumes_to_the_bit_across_its_time_limit() -> None:
    make = task("cartpole/swingup", max_episode_steps=20).maker()
    lanes, is_same = resumed(make, Grade.E0, before=33, after=30)
    assert is_same
    assert lanes.inexact == []


@pytest.mark.parametrize("name", SHIPPED)
def test_a_time_limit_is_a_truncation(name: str) -> None:
    lanes = task(name, frame_skip=50).lanes(SEEDS, 1, Grade.E0)
    lanes.reset()
    play(lanes, 20)
    assert [(episode.length, episode.ending) for episode in lanes.episodes()] == [(20, Ending.TRUNCATED)]


def test_another_time_limit_replaces_that_of_the_suite() -> None:
    lanes = task("cartpole/swingup", max_episode_steps=7).lanes(SEEDS, 1, Grade.E0)
    lanes.reset()
    play(lanes, 14)
    assert [(episode.length, episode.ending) for episode in lanes.episodes()] == [(7, Ending.TRUNCATED)] * 2


class Discounted(DmControl):
    """A task that sets the discount of its next step itself; None continues."""

    def __init__(self, discount: float | None) -> None:
        loaded = load_suite().load("cartpole", "balance", task_kwargs={"random": 0})
        loaded.task.get_termination = lambda physics: discount
        super().__init__(loaded)


@pytest.mark.parametrize(
    ("discount", "terminated", "truncated"),
    [(0.0, True, False), (1.0, False, True), (0.5, False, True), (None, False, False)],
)
def test_only_a_discount_of_zero_terminates(discount: float | None, terminated: bool, truncated: bool) -> None:
    environment = Discounted(discount)
    environment.reset(seed=0)
    assert environment.step(np.zeros(1))[2:4] == (terminated, truncated)


def test_an_episode_begins_as_its_seed_says() -> None:
    one, two = (make_environment("dm_control/reacher/easy", {}) for _ in range(2))
    first, again = one.reset(seed=5)[0], two.reset(seed=5)[0]
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(one.reset()[0]["to_target"], first["to_target"])
    assert not np.array_equal(two.reset(seed=6)[0]["to_target"], first["to_target"])


def test_observations_are_named_vectors_or_one() -> None:
    named, flat = (task("walker/walk", flatten_obs=is_flat).lanes(SEEDS, 1, Grade.E0) for is_flat in (False, True))
    assert {(spec.name, spec.shape) for spec in named.spec.observation} == {
        ("orientations", (14,)),
        ("height", (1,)),
        ("velocity", (9,)),
    }
    assert flat.spec.observation == (ArraySpec("observation", "float32", (24,)),)


def test_asymmetric_bounds_reach_the_policy_and_are_learned_in_as_one() -> None:
    lanes = task("quadruped/walk").lanes(SEEDS, 1, Grade.E0)
    box = lanes.spec.action
    assert isinstance(box, BoxAction)
    assert (min(box.low), max(box.high)) == (-1.0, 1.1)
    ends = torch.tensor(
        [box.low, box.high, tuple((low + high) / 2 for low, high in zip(box.low, box.high, strict=True))]
    )
    scaled = TransitionTensors(box, 0.99, torch.device("cpu")).scaled(ends)
    torch.testing.assert_close(scaled, torch.tensor([-1.0, 1.0, 0.0])[:, None].expand(3, box.size))


def test_bounds_that_are_none_are_infinite() -> None:
    space = make_environment("dm_control/lqr/lqr_2_1", {}).action_space
    assert not space.is_bounded()  # type: ignore[attr-defined]  # a box


def test_arguments_reach_the_task_and_others_are_refused() -> None:
    fine = make_environment("dm_control/cheetah/run", {"environment_kwargs": {"control_timestep": 0.02}})
    assert fine.metadata["render_fps"] == 50
    with pytest.raises(UnsuitableArguments, match="colour"):
        make_environment("dm_control/cheetah/run", {"colour": "red"})


def test_tasks_are_listed_by_name() -> None:
    assert {f"dm_control/{name}" for name in SHIPPED} < set(task_names())


@pytest.mark.slow
def test_images_of_a_task_resume_to_the_bit() -> None:
    config = task("walker/walk", pixels={"size": 24, "camera": "side"}, frame_skip=2)
    original, other = (Lanes(config.maker(), 1, SEEDS, Grade.E0) for _ in range(2))
    assert original.reset()["pixels"].std() > 10.0
    play(original, 3)
    other.restore(original.state())
    assert other.inexact == []
    assert fingerprint(play(original, 3, seed=1)) == fingerprint(play(other, 3, seed=1))


def test_a_model_that_differs_elsewhere_is_not_taken_for_exact() -> None:
    original, other = (Lanes(task("reacher/easy").maker(), 1, SEEDS, Grade.E0) for _ in range(2))
    original.reset()
    state: Any = original.state()
    state["lanes"]["0"]["environment"]["layers"]["1"]["simulation"]["model"] = {}
    other.restore(state)
    assert other.restarted == [0]
    assert "had changed [] in its model; here ['geom_pos'" in other.inexact[0]
