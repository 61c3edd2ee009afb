"""PETS: what its model learns, what travels, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import PETS, PETSConfig, Problem, Progress, UnsuitableActions, UnsuitableNetwork
from rl4sys.config import ConfigError, parse
from rl4sys.engine import TensorBatch
from rl4sys.experience import Array, ArraySpec
from rl4sys.experiments.policies.model_parity import model_parity
from rl4sys.networks import MlpConfig, NetworksConfig
from rl4sys.policy import MASK, DiscreteAction, NumpyPolicy, layout_of
from rl4sys.policy.model_runtime import ModelRuntime
from rl4sys.seeding import Seeds

from .problems import BOX

SMALL: dict[str, Any] = {"horizon": 3, "candidates": 8, "elites": 2, "batch_size": 32}
SEEN = (ArraySpec("place", "float32", (2,)), ArraySpec("speed", "float32", (1,)))


def asked(**changes: Any) -> Problem:
    return replace(Problem(SEEN, BOX, NetworksConfig(), torch.device("cpu"), Seeds(3)), **changes)


def pets(problem: Problem | None = None, **config: Any) -> PETS:
    dynamics = {"type": "ensemble", "size": 3, "hidden_dims": [16], **config.pop("dynamics", {})}
    return parse(PETSConfig, SMALL | config | {"dynamics": dynamics}).build(problem or asked())


def batch(algorithm: PETS, seed: int = 0) -> TensorBatch:
    """place moves by the first action, speed halves; the reward is the second action."""
    rng = np.random.default_rng(seed)
    rows = algorithm.config.batch_size * algorithm.members
    place, speed, action = (rng.normal(size=(rows, n)).astype(np.float32) for n in (2, 1, 2))
    action = action.clip(-1.0, 1.0)
    moved = place + 0.5 * action[:, :1] * np.array([1.0, 0.0], np.float32)
    tensors = [torch.from_numpy(array) for array in (place, speed, moved, 0.5 * speed)]
    seen, following = ({"place": tensors[i], "speed": tensors[i + 1]} for i in (0, 2))
    ones = torch.ones(rows)
    return TensorBatch(seen, torch.from_numpy(action), torch.from_numpy(3.0 * action[:, 1]), ones, following, ones)


def trained(updates: int = 300, **config: Any) -> PETS:
    algorithm = pets(lr=3e-3, **config)
    for number in range(updates):
        algorithm.update(batch(algorithm, number))
    return algorithm


def predicted(algorithm: PETS, rows: int = 5) -> tuple[TensorBatch, Array, list[Array]]:
    """A batch, and rewards and states that the travelling model predicts for its first rows."""
    spec, weights = algorithm.policies.exploit, algorithm.train_state.policy_weights()
    views, known = layout_of(spec.program).views(weights), batch(algorithm, 999)[:rows]
    assert spec.model is not None
    runtime = ModelRuntime(spec.model, str(spec.head.settings["reward"]), views, rows)
    state = np.concatenate([known.observation["place"].numpy(), known.observation["speed"].numpy()], 1)
    mean, scale = views["scaling.state.mean"], views["scaling.state.scale"]
    runtime.start([(state - mean) * scale] * algorithm.members)
    runtime.action[...] = known.action.numpy()
    runtime.step(np.random.default_rng(0))
    return known, runtime.reward, [array / scale + mean for array in runtime.state]


def test_the_travelling_model_predicts_what_was_trained() -> None:
    algorithm = trained()
    known, reward, states = predicted(algorithm)
    expected = torch.cat([known.next_observation["place"], known.next_observation["speed"]], 1).numpy()
    np.testing.assert_allclose(reward, known.reward.numpy(), atol=0.3)
    for state in states:
        np.testing.assert_allclose(state, expected, atol=0.15)
    assert not np.array_equal(states[0], states[1])


@pytest.mark.parametrize("kind", ["deterministic", "gaussian", "ensemble"])
def test_one_numpy_step_of_the_travelling_model_equals_torch(kind: str) -> None:
    size = {"size": 3} if kind == "ensemble" else {"size": 2, "member": "deterministic"}
    dynamics = {"hidden_dims": [16]} | ({"type": "ensemble", **size} if kind == "ensemble" else {"type": kind})
    algorithm = parse(PETSConfig, SMALL | {"dynamics": dynamics}).build(asked())
    for number in range(5):
        algorithm.update(batch(algorithm, number))
    known, reward, states = predicted(algorithm)
    seen = torch.cat([known.observation["place"], known.observation["speed"]], 1)
    with torch.no_grad():
        forecast = algorithm.dynamics.forecast(
            algorithm.predictions, algorithm.standardization, seen, known.action[:, None]
        )
    np.testing.assert_allclose(reward, forecast.reward.mean(0)[:, 0], rtol=1e-4, atol=1e-5)
    for state, expected in zip(states, forecast.observation, strict=True):
        np.testing.assert_allclose(state, expected[:, 0], rtol=1e-4, atol=1e-5)


def test_members_learn_from_transitions_of_their_own() -> None:
    algorithm = pets()
    rows = algorithm.by_member(torch.arange(12.0).reshape(12, 1))
    assert rows.shape == (4, 3, 1)
    parameters = algorithm.model.optimizer.parameters
    known = batch(algorithm)
    known.reward[::3] = 100.0
    algorithm.update(known)
    gradient = parameters.views["model.reward.weight"].grad
    assert gradient is not None
    assert not torch.allclose(gradient[0], gradient[1])


def test_actions_are_random_until_learning_starts() -> None:
    algorithm = pets(learning_starts=100, exploration_std=0.25)
    views = layout_of(algorithm.policies.explore.program).views
    algorithm.train_state.advance(Progress(100))
    assert views(algorithm.train_state.policy_weights())["exploration.epsilon"].tolist() == [1.0]
    algorithm.train_state.advance(Progress(101))
    weights = views(algorithm.train_state.policy_weights())
    assert weights["exploration.epsilon"].tolist() == [0.0]
    assert weights["exploration.std"].tolist() == [0.25, 0.25]


@pytest.mark.parametrize("propagation", ["mean", "sample"])
def test_plans_go_where_the_reward_is(propagation: str) -> None:
    algorithm = trained(propagation=propagation, candidates=64, elites=8, gamma=1.0)
    policy = NumpyPolicy(algorithm.policies.exploit, algorithm.train_state.policy_weights())
    seen = {"place": np.zeros((3, 2), np.float32), "speed": np.zeros((3, 1), np.float32)}
    noise = np.random.default_rng(0).random((3, policy.noise_size), np.float32)
    assert policy.act(seen, noise, policy.initial_carry(3)).action[:, 1].min() > 0.5


@pytest.mark.parametrize("propagation", ["mean", "sample"])
def test_torch_and_numpy_run_the_same_model(propagation: str) -> None:
    algorithm = trained(updates=5, propagation=propagation)
    weights = algorithm.train_state.policy_weights()
    assert model_parity(algorithm.policies.exploit, weights, weights).largest < 1e-5
    other = weights.copy()
    other[0] += 1.0
    assert model_parity(algorithm.policies.exploit, weights, other).largest > 1e-3


def test_a_deterministic_model_cannot_be_sampled() -> None:
    with pytest.raises(ConfigError, match="propagation is sample"):
        parse(PETSConfig, {"propagation": "sample", "dynamics": {"type": "deterministic"}})


def test_a_search_beyond_reason_is_refused() -> None:
    with pytest.raises(ConfigError, match="1,000,000 steps at most"):
        parse(PETSConfig, {"candidates": 100_000})


def test_its_own_networks_count_for_the_limits_of_a_server() -> None:
    algorithm = pets()
    own = algorithm.config.own_weights(SEEN, BOX)
    assert own >= algorithm.train_state.policy_weights().size > 0.9 * own


def test_more_elites_than_candidates_are_refused() -> None:
    with pytest.raises(ConfigError, match="only 5 candidates"):
        parse(PETSConfig, {"candidates": 5, "elites": 6})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"networks": NetworksConfig(actor=MlpConfig(hidden_dims=(3,)))}, "pets has its own networks"),
        ({"standardize": True}, "normalize_obs=false"),
        ({"observation": (ArraySpec("pixels", "uint8", (8, 8, 3)),)}, "is an image"),
        ({"observation": (*SEEN, ArraySpec(MASK, "bool", (2,)))}, "which actions are allowed"),
    ],
)
def test_problems_that_it_cannot_model_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsuitableNetwork, match=message):
        pets(asked(**changes))


def test_choices_are_refused() -> None:
    with pytest.raises(UnsuitableActions, match="discrete"):
        pets(asked(action=DiscreteAction(3)))
