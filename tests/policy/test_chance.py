"""Programs that read random numbers."""

from dataclasses import replace

import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import BoxAction, Chance, Head, Memory, NumpyPolicy, PolicySpec, Program, ProgramBuilder
from rl4sys.policy.noise import normal

BOX = BoxAction((-1.0,) * 5, (1.0,) * 5)


def spec() -> PolicySpec:
    """Its action is two normal and three uniform numbers, and noise of its own."""
    builder = ProgramBuilder((ArraySpec("seen", "float32", (1,)),))
    drawn = builder.joined([builder.chance("z", 2, "normal"), builder.chance("u", 3, "uniform")])
    head = Head("gaussian", (drawn,), (builder.tensor("log_std", 5),))
    return PolicySpec(BOX, builder.program(), head)


def uniform(rows: int, size: int) -> Array:
    return np.random.default_rng(1).random((rows, size), np.float32)


@pytest.mark.parametrize("rows", [1, 4])
def test_chance_takes_the_first_numbers_in_order_and_the_head_the_others(rows: int) -> None:
    policy = NumpyPolicy(spec())
    assert policy.noise_size == 2 * 2 + 3 + 2 * 5
    noise = uniform(rows, policy.noise_size)
    action = policy.act({"seen": np.zeros((rows, 1), np.float32)}, noise).action
    drawn = np.concatenate([normal(noise[:, :4]), noise[:, 4:7]], axis=1)
    np.testing.assert_allclose(action, drawn + normal(noise[:, 7:]), rtol=1e-6)


def test_many_rows_have_the_bits_of_single_rows() -> None:
    policy = NumpyPolicy(spec())
    seen, noise = {"seen": np.zeros((3, 1), np.float32)}, uniform(3, policy.noise_size)
    together = policy.act_on_rows(seen, noise)[0].action[:3].copy()
    alone = [policy.act_on_row(seen, row, noise[row : row + 1]).action[0].copy() for row in range(3)]
    assert together.tobytes() == np.stack(alone).tobytes()


def test_a_head_with_noise_of_its_own_draws_it_after_the_program() -> None:
    builder = ProgramBuilder((ArraySpec("seen", "float32", (1,)),))
    value = builder.op("add", (builder.chance("u", 1, "uniform"), builder.chance("z", 1)), (1,))
    head = Head("noise_conditioned", (value,), settings={"noise": "z", "size": 1, "std": 0.5})
    policy = NumpyPolicy(PolicySpec(BoxAction((-1.0,), (1.0,)), builder.program(), head))
    noise = uniform(1, 3)
    action = policy.act({"seen": np.zeros((1, 1), np.float32)}, noise).action
    np.testing.assert_allclose(action, np.tanh(noise[:, :1] + 0.5 * normal(noise[:, 1:])), rtol=1e-6)


def test_chance_is_part_of_the_text_only_where_there_is_some() -> None:
    text = spec().to_json()
    assert '"chance":[{"distribution":"normal","name":"z","size":2},' in text
    assert PolicySpec.from_json(text) == spec()
    without = replace(spec(), program=replace(spec().program, chance=()))
    assert "chance" not in without.to_json()
    assert PolicySpec.from_json(without.to_json()) == without


def test_a_policy_that_plans_keeps_its_model() -> None:
    inputs = (ArraySpec("state", "float32", (2,)),)
    model = Program(
        (ArraySpec("action", "float32", (1,)),), (), (), (Memory("s", (2,), "s"),), (Chance("z", 1, "normal"),)
    )
    head = Head("planned", ("state",), settings={"reward": "r"})
    planned = PolicySpec(BoxAction((-1.0,), (1.0,)), Program(inputs, (), ()), head, model)
    assert PolicySpec.from_json(planned.to_json()) == planned
