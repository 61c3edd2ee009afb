import math

import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec, StreamKey
from rl4sys.policy import (
    MASK,
    ActionSpec,
    BoxAction,
    Decision,
    DiscreteAction,
    Head,
    KeyedNoise,
    MultiDiscreteAction,
    NoAllowedAction,
    NumpyPolicy,
    PolicySpec,
    Program,
    Tensor,
)

from .specs import direct, noise_for

ROWS = 20_000
LOGITS = np.array([0.5, -1.0, 2.0, 0.0], np.float32)
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum()
ALLOWED = np.array([True, False, False, True])


def act(spec: PolicySpec, scores: Array, mask: Array | None = None, weights: Array | None = None) -> Decision:
    """Decides for many rows with the same observation."""
    policy = NumpyPolicy(spec, weights)
    observation = {"scores": np.tile(np.asarray(scores, np.float32), (ROWS, 1))}
    if mask is not None:
        observation[MASK] = np.tile(mask, (ROWS, 1))
    return policy.act(observation, noise_for(policy, ROWS))


def frequencies(choices: Array, n: int) -> Array:
    return np.bincount(choices, minlength=n) / len(choices)


def epsilon_greedy(mask: str | None = None) -> PolicySpec:
    masks = () if mask is None else (ArraySpec(MASK, "bool", (4,)),)
    program = Program((ArraySpec("scores", "float32", (4,)), *masks), (), (Tensor("epsilon", (1,)),))
    return PolicySpec(DiscreteAction(4), program, Head("epsilon_greedy", ("scores",), ("epsilon",), mask))


def epsilon(value: float) -> Array:
    return np.array([value], np.float32)


def test_choices_are_as_frequent_as_their_probabilities() -> None:
    decision = act(direct(DiscreteAction(4), 4, Head("categorical", ("scores",))), LOGITS)
    np.testing.assert_allclose(frequencies(decision.action, 4), SOFTMAX, atol=0.012)
    np.testing.assert_allclose(decision.extras["log_prob"], np.log(SOFTMAX)[decision.action], atol=1e-6)


def test_one_row_at_a_time_draws_the_same_choices_as_all_at_once() -> None:
    policy = NumpyPolicy(direct(DiscreteAction(4), 4, Head("categorical", ("scores",), mask=MASK)))
    observation = {"scores": np.tile(LOGITS, (300, 1)), MASK: np.random.default_rng(0).random((300, 4)) < 0.6}
    observation[MASK][:, 0] = True
    noise = noise_for(policy, 300)
    together = policy.act(observation, noise)
    for row in range(300):
        alone = policy.act({n: a[row : row + 1] for n, a in observation.items()}, noise[row : row + 1])
        assert alone.action[0] == together.action[row]
        assert alone.extras["log_prob"][0] == pytest.approx(together.extras["log_prob"][row], abs=1e-6)


@pytest.mark.parametrize("choices", [32, 33, 500])
def test_many_choices_are_sampled_equally_for_one_row_and_for_two(choices: int) -> None:
    policy = NumpyPolicy(direct(DiscreteAction(choices), choices, Head("categorical", ("scores",))))
    scores = np.random.default_rng(0).standard_normal((2, choices)).astype(np.float32)
    noise = noise_for(policy, 2)
    both = policy.act({"scores": scores}, noise)
    first = policy.act({"scores": scores[:1]}, noise[:1])
    assert (first.action.dtype, first.action[0]) == (np.int64, both.action[0])
    assert first.extras["log_prob"][0] == pytest.approx(both.extras["log_prob"][0], abs=1e-6)


@pytest.mark.parametrize("u", [0.0, 1.0 - 2.0**-24])
@pytest.mark.parametrize("rows", [1, 3])
def test_extreme_noise_still_gives_an_allowed_choice(u: float, rows: int) -> None:
    policy = NumpyPolicy(direct(DiscreteAction(4), 4, Head("categorical", ("scores",), mask=MASK)))
    mask = np.tile([False, True, True, False], (rows, 1))
    observation = {"scores": np.zeros((rows, 4), np.float32), MASK: mask}
    decision = policy.act(observation, np.full((rows, 1), u, np.float32))
    assert decision.action.tolist() == [1 if u == 0.0 else 2] * rows


def test_huge_logits_neither_overflow_nor_lose_the_choice() -> None:
    decision = act(direct(DiscreteAction(3), 3, Head("categorical", ("scores",))), np.array([3e38, -3e38, 0.0]))
    assert set(decision.action.tolist()) == {0}
    assert (decision.extras["log_prob"] == 0).all()


def test_masked_choices_share_the_probability_of_the_allowed_ones() -> None:
    spec = direct(DiscreteAction(4), 4, Head("categorical", ("scores",), mask=MASK))
    decision = act(spec, LOGITS, ALLOWED)
    expected = np.where(ALLOWED, SOFTMAX, 0) / SOFTMAX[ALLOWED].sum()
    np.testing.assert_allclose(frequencies(decision.action, 4), expected, atol=0.012)
    assert set(decision.action.tolist()) == {0, 3}


def test_several_choices_are_independent_and_their_log_probabilities_add_up() -> None:
    spec = direct(MultiDiscreteAction((2, 2)), 4, Head("categorical", ("scores",)))
    decision = act(spec, LOGITS)
    parts = [np.exp(part) / np.exp(part).sum() for part in (LOGITS[:2], LOGITS[2:])]
    joint = frequencies(decision.action @ [2, 1], 4)
    np.testing.assert_allclose(joint, np.outer(*parts).ravel(), atol=0.012)
    expected = np.log(parts[0])[decision.action[:, 0]] + np.log(parts[1])[decision.action[:, 1]]
    np.testing.assert_allclose(decision.extras["log_prob"], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["categorical", "deterministic"])
def test_several_masked_choices_are_never_forbidden_ones(kind: str) -> None:
    decision = act(direct(MultiDiscreteAction((2, 2)), 4, Head(kind, ("scores",), mask=MASK)), LOGITS, ALLOWED)
    assert set(map(tuple, decision.action.tolist())) == {(0, 1)}


def test_without_epsilon_the_best_choice_is_always_taken() -> None:
    decision = act(epsilon_greedy(), LOGITS, weights=epsilon(0.0))
    assert set(decision.action.tolist()) == {2}
    assert decision.extras == {}


def test_with_epsilon_one_all_choices_are_equally_likely() -> None:
    decision = act(epsilon_greedy(), LOGITS, weights=epsilon(1.0))
    np.testing.assert_allclose(frequencies(decision.action, 4), 0.25, atol=0.012)


def test_epsilon_is_the_share_of_random_choices() -> None:
    decision = act(epsilon_greedy(), LOGITS, weights=epsilon(0.4))
    np.testing.assert_allclose(frequencies(decision.action, 4), [0.1, 0.1, 0.7, 0.1], atol=0.012)


@pytest.mark.parametrize(("value", "expected"), [(0.0, [1, 0, 0, 0]), (1.0, [0.5, 0, 0, 0.5])])
def test_masked_epsilon_greedy_explores_only_what_is_allowed(value: float, expected: list[float]) -> None:
    decision = act(epsilon_greedy(MASK), LOGITS, ALLOWED, epsilon(value))
    np.testing.assert_allclose(frequencies(decision.action, 4), expected, atol=0.012)


def test_the_first_of_equal_scores_is_chosen() -> None:
    decision = act(direct(DiscreteAction(3), 3, Head("deterministic", ("scores",))), np.array([0.0, 1.0, 1.0]))
    assert set(decision.action.tolist()) == {1}


@pytest.mark.parametrize("kind", ["categorical", "deterministic"])
@pytest.mark.parametrize("rows", [1, 2])
def test_a_mask_that_forbids_everything_is_an_error_that_says_what_to_do(kind: str, rows: int) -> None:
    policy = NumpyPolicy(direct(DiscreteAction(4), 4, Head(kind, ("scores",), mask=MASK)))
    observation = {"scores": np.zeros((rows, 4), np.float32), MASK: np.ones((rows, 4), bool)}
    observation[MASK][-1] = False
    with pytest.raises(NoAllowedAction, match="Allow one choice, or end the episode"):
        policy.act(observation, noise_for(policy, rows))


def test_gaussian_actions_have_the_mean_and_deviation_of_the_policy() -> None:
    program = Program((ArraySpec("scores", "float32", (2,)),), (), (Tensor("log_std", (2,)),))
    head = Head("gaussian", ("scores",), ("log_std",))
    spec = PolicySpec(BoxAction((-1.0, -1.0), (1.0, 1.0)), program, head)
    decision = act(spec, np.array([1.0, -2.0]), weights=np.array([-1.0, 0.5], np.float32))
    np.testing.assert_allclose(decision.action.mean(axis=0), [1.0, -2.0], atol=0.05)
    np.testing.assert_allclose(np.log(decision.action.std(axis=0)), [-1.0, 0.5], atol=0.03)


def test_squashed_actions_stay_within_asymmetric_bounds() -> None:
    head = Head("tanh_gaussian", ("scores", "scores"), settings={"log_std_low": -1.0, "log_std_high": 1.0})
    decision = act(direct(BoxAction((-1.0, 2.0), (3.0, 2.5)), 2, head), np.array([5.0, -5.0]))
    assert decision.action.dtype == np.float32
    assert (decision.action >= [-1.0, 2.0]).all()
    assert (decision.action <= [3.0, 2.5]).all()
    assert np.isfinite(decision.extras["log_prob"]).all()


@pytest.mark.parametrize(
    ("head", "action"),
    [("gaussian", DiscreteAction(2)), ("categorical", BoxAction((0.0,), (1.0,)))],
)
def test_a_head_that_does_not_fit_the_action_is_refused(head: str, action: ActionSpec) -> None:
    policy = NumpyPolicy(direct(action, 2, Head(head, ("scores",))))
    with pytest.raises(ValueError, match=f"Head '{head}' cannot produce {action.kind} actions"):
        policy.act({"scores": np.zeros((1, 2), np.float32)}, noise_for(policy, 1))


def test_squashing_needs_finite_bounds() -> None:
    head = Head("deterministic", ("scores",), settings={"squash": "tanh"})
    policy = NumpyPolicy(direct(BoxAction((-math.inf,), (math.inf,)), 1, head))
    with pytest.raises(ValueError, match="needs finite action bounds"):
        policy.act({"scores": np.zeros((1, 1), np.float32)}, np.zeros((1, 0), np.float32))


def test_a_mask_of_the_wrong_width_is_refused() -> None:
    program = Program((ArraySpec("scores", "float32", (4,)), ArraySpec(MASK, "bool", (3,))), (), ())
    policy = NumpyPolicy(PolicySpec(DiscreteAction(4), program, Head("categorical", ("scores",), mask=MASK)))
    noise = KeyedNoise(0, [StreamKey("c")], 1).at(0)
    with pytest.raises(ValueError, match=r"'action_mask' is bool\[3\]; expected bool\[4\]"):
        policy.act({"scores": np.zeros((1, 4), np.float32), MASK: np.ones((1, 3), bool)}, noise)
