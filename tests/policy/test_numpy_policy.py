import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import BoxAction, Head, NumpyPolicy, Op, PolicySpec, Program, ProgramBuilder, UnknownOp

from .specs import mlp, noise_for, recurrent, weights_for


def state(rows: int) -> Array:
    return np.random.default_rng(1).standard_normal((rows, 3)).astype(np.float32)


@pytest.fixture
def policy() -> NumpyPolicy:
    return NumpyPolicy(mlp(), weights_for(mlp()))


def test_a_batch_gives_the_decisions_of_its_rows(policy: NumpyPolicy) -> None:
    observation, noise = state(40), noise_for(policy, 40)
    alone = [int(policy.act({"state": observation[i : i + 1]}, noise[i : i + 1]).action[0]) for i in range(40)]
    for rows in (0, 1, 2, 7, 40):
        decision = policy.act({"state": observation[:rows]}, noise[:rows])
        assert decision.action.tolist() == alone[:rows]


def test_batches_that_vary_do_not_fill_the_memory(policy: NumpyPolicy) -> None:
    for rows in range(1, 60):
        policy.act({"state": state(rows)}, noise_for(policy, rows))
    assert len(policy._plans) <= 16


def test_loaded_weights_are_used_from_the_next_decision(policy: NumpyPolicy) -> None:
    before = policy.act({"state": state(20)}, noise_for(policy, 20)).extras["log_prob"]
    policy.load(weights_for(mlp(), seed=9))
    after = policy.act({"state": state(20)}, noise_for(policy, 20)).extras["log_prob"]
    fresh = NumpyPolicy(mlp(), weights_for(mlp(), seed=9)).act({"state": state(20)}, noise_for(policy, 20))
    assert not np.allclose(before, after)
    np.testing.assert_array_equal(after, fresh.extras["log_prob"])


def test_the_weights_are_a_copy_that_the_caller_cannot_change() -> None:
    weights = weights_for(mlp())
    policy = NumpyPolicy(mlp(), weights)
    before = policy.act({"state": state(5)}, noise_for(policy, 5)).extras["log_prob"]
    weights[:] = 0.0
    np.testing.assert_array_equal(policy.act({"state": state(5)}, noise_for(policy, 5)).extras["log_prob"], before)


def test_weights_of_another_architecture_are_refused(policy: NumpyPolicy) -> None:
    with pytest.raises(ValueError, match=r"has 44 weights; got an array of shape \(43,\)"):
        policy.load(np.zeros(43, np.float32))


@pytest.mark.parametrize(
    "observation",
    [
        {},
        {"stat": np.zeros((2, 3), np.float32)},
        {"state": np.zeros((2, 4), np.float32)},
        {"state": np.zeros((1, 3), np.float32)},
        {"state": np.zeros(3, np.float32)},
        {"state": np.zeros((2, 1), np.float32)},
        {"state": np.zeros((2, 3), complex)},
        {"state": [[0.0, 0.0, 0.0]] * 2},
    ],
)
def test_an_observation_that_does_not_fit_is_named_with_what_was_expected(
    observation: dict, policy: NumpyPolicy
) -> None:
    with pytest.raises(ValueError, match=r"cannot read this observation: got .*; expected state: float32\[2, 3\]"):
        policy.act(observation, noise_for(policy, 2))


def test_unused_arrays_are_ignored(policy: NumpyPolicy) -> None:
    observation = {"state": state(1).astype(np.float64), "logged": np.zeros(7)}
    assert policy.act(observation, noise_for(policy, 1)).action.shape == (1,)


@pytest.mark.parametrize("shape", [(2, 2), (2, 0), (2,)])
def test_noise_of_another_size_is_refused(shape: tuple[int, ...], policy: NumpyPolicy) -> None:
    with pytest.raises(ValueError, match=r"noise of shape .*; this policy takes \(rows, 1\)"):
        policy.act({"state": state(2)}, np.zeros(shape, np.float32))


def test_an_unknown_op_is_refused_by_name_before_anything_runs() -> None:
    program = Program((ArraySpec("x", "float32", (1,)),), (Op("dream", ("r0",), ("x",)),), ())
    spec = PolicySpec(BoxAction((0.0,), (1.0,)), program, Head("deterministic", ("r0",)))
    with pytest.raises(UnknownOp, match=r"lacks the ops \['dream'\]; upgrade rl4sys"):
        NumpyPolicy(spec)


def test_a_setting_that_is_not_a_number_is_named() -> None:
    builder = ProgramBuilder((ArraySpec("x", "float32", (1,)),))
    register = builder.op("scale", ("x",), (1,), factor="half", offset=0.0)
    spec = PolicySpec(BoxAction((0.0,), (1.0,)), builder.program(), Head("deterministic", (register,)))
    with pytest.raises(ValueError, match="Setting 'factor' of op 'scale' is 'half'; expected a number"):
        NumpyPolicy(spec).act({"x": np.zeros((1, 1), np.float32)}, np.zeros((1, 0), np.float32))


def test_the_carry_is_passed_from_decision_to_decision() -> None:
    policy = NumpyPolicy(recurrent(), weights_for(recurrent()))
    first = policy.act({"state": state(3)}, noise_for(policy, 3))
    carry = {name: memory.copy() for name, memory in first.carry.items()}
    onward = policy.act({"state": state(3)}, noise_for(policy, 3), first.carry).extras["log_prob"]
    again = policy.act({"state": state(3)}, noise_for(policy, 3), carry).extras["log_prob"]
    afresh = policy.act({"state": state(3)}, noise_for(policy, 3)).extras["log_prob"]
    np.testing.assert_array_equal(onward, again)
    assert not np.allclose(onward, afresh)


def test_no_carry_is_the_same_as_the_initial_one() -> None:
    policy = NumpyPolicy(recurrent(), weights_for(recurrent()))
    assert {name: memory.shape for name, memory in policy.initial_carry(2).items()} == {
        "first.hidden": (2, 4), "second.hidden": (2, 5), "second.cell": (2, 5),
    }  # fmt: skip
    without = policy.act({"state": state(2)}, noise_for(policy, 2)).carry["second.cell"].copy()
    given = policy.act({"state": state(2)}, noise_for(policy, 2), policy.initial_carry(2)).carry["second.cell"]
    np.testing.assert_array_equal(without, given)


def test_a_carry_that_does_not_fit_is_named_with_what_was_expected() -> None:
    policy = NumpyPolicy(recurrent(), weights_for(recurrent()))
    with pytest.raises(ValueError, match=r"cannot read this carry: got first.hidden: float32\[1, 4\], .*; expected"):
        policy.act({"state": state(2)}, noise_for(policy, 2), policy.initial_carry(1))


def test_acting_does_not_change_the_observation(policy: NumpyPolicy) -> None:
    observation, noise = state(2), noise_for(policy, 2)
    observation.flags.writeable = False
    policy.act({"state": observation}, noise)
    np.testing.assert_array_equal(observation, state(2))
