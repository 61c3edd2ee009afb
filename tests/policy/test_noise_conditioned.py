"""Policies whose program reads noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import BoxAction, Head, NumpyPolicy, PolicySpec, ProgramBuilder
from rl4sys.policy.noise import normal

BOX = BoxAction((-1.0, 2.0), (3.0, 4.0))
SIZE = 3
WHOLE = {"noise": "chance", "size": SIZE, "std": 1.0}


def policy(weights: list[float] | None = None, *, epsilon: float | None = None, **settings: Any) -> NumpyPolicy:
    """tanh(sum of the noise, sum of the noise) within the bounds, unless weights say otherwise."""
    builder = ProgramBuilder((ArraySpec("seen", "float32", (1,)),))
    joined = builder.op("concat", ("seen", builder.chance("chance", SIZE)), (1 + SIZE,))
    value = builder.linear(joined, 2, "value")
    tensors = () if epsilon is None else (builder.tensor("epsilon", 1),)
    spec = PolicySpec(BOX, builder.program(), Head("noise_conditioned", (value,), tensors, settings=WHOLE | settings))
    flat = [0.0, 0.0, *[1.0] * (2 * SIZE), 0.0, 0.0] if weights is None else weights
    return NumpyPolicy(spec, np.array(flat if epsilon is None else [*flat, epsilon], np.float32))


def act(chosen: NumpyPolicy, noise: Array) -> Array:
    return chosen.act({"seen": np.zeros((len(noise), 1), np.float32)}, noise).action.copy()


def uniform(rows: int, columns: int) -> Array:
    return np.random.default_rng(2).random((rows, columns)).astype(np.float32)


@pytest.mark.parametrize("std", [1.0, 0.25])
def test_the_program_computes_an_action_from_normal_numbers(std: float) -> None:
    noise = uniform(20, 2 * SIZE)
    squashed = np.tanh(std * normal(noise).sum(axis=1, keepdims=True).astype(float))
    np.testing.assert_allclose(act(policy(std=std), noise), squashed * [2.0, 1.0] + [1.0, 3.0], atol=1e-5)


def test_with_std_zero_the_policy_is_deterministic() -> None:
    np.testing.assert_array_equal(act(policy(std=0.0), uniform(5, 2 * SIZE)), np.tile(np.float32([1.0, 3.0]), (5, 1)))


@pytest.mark.parametrize(("last", "explores"), [(0.2499, True), (0.25, False)])
def test_with_probability_epsilon_the_action_is_uniform(last: float, explores: bool) -> None:
    noise = uniform(1, 2 * SIZE + 3)
    noise[0, -1] = last
    share = noise[:, 2 * SIZE : 2 * SIZE + 2]
    found, anything = act(policy(epsilon=0.25), noise), share * np.float32([4.0, 2.0]) + np.float32([-1.0, 2.0])
    assert np.allclose(found, anything, atol=1e-6) == explores


def test_it_records_nothing_and_takes_a_pair_of_numbers_for_each_normal() -> None:
    assert policy().spec.noted == ()
    assert policy().noise_size == 2 * SIZE
    assert policy(epsilon=0.0).noise_size == 2 * SIZE + 3


@pytest.mark.parametrize("wrong", [{"noise": 3}, {"size": 0}, {"size": True}, {"size": 2.5}, {"size": "two"}])
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Settings 'noise' and 'size' of noise_conditioned are"):
        policy(**wrong)


def test_the_noise_conditioned_spec_round_trips_through_json() -> None:
    spec = policy(epsilon=0.5).spec
    assert PolicySpec.from_json(spec.to_json()) == spec


def test_an_observation_cannot_have_the_name_of_the_noise_register() -> None:
    builder = ProgramBuilder((ArraySpec("chance", "float32", (1,)),))
    with pytest.raises(ValueError, match="Register 'chance' exists already"):
        builder.chance("chance", 2)
