from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import ALGORITHMS, PPO, Problem, Progress, run_update
from rl4sys.config import ConfigError
from rl4sys.experience import Array, Sequences
from rl4sys.policy import BoxAction, NumpyPolicy, layout_of

from .networks_of import acting, flat_of
from .ppo_reference import distribution
from .problems import BOX, DISCRETE, fixed_batch, ppo, problem, segment, sequences
from .reference import named


def weights(algorithm: PPO) -> Array:
    found: Array = flat_of(algorithm)
    return found


def own_batch(algorithm: PPO, asked: Problem, steps: int = 32, ages: tuple[int, ...] = ()) -> Sequences:
    """Experience with the log-probabilities that this very policy gives its actions."""
    part = segment(np.random.default_rng(2), asked, steps)
    rows = {name: array[:-1] for name, array in part.observation.items()}
    named_weights = named(acting(algorithm).layout, weights(algorithm))
    log_prob, _ = distribution(named_weights, asked.action, rows, part.action)
    return sequences([replace(part, extras={"log_prob": log_prob.astype(np.float32)})], ages)


@pytest.mark.parametrize("size", [1, 4, 8])
def test_minibatches_hold_every_step_once(size: int) -> None:
    # Without learning, equal parts of one whole have the losses of the whole on average.
    settings: dict[str, Any] = {"lr": 1e-12, "epochs": 1, "normalize_advantage": False}
    batch = sequences([segment(np.random.default_rng(0), problem(), 16)])
    whole, _ = run_update(ppo(minibatch_size=16, **settings), batch)
    parts, _ = run_update(ppo(minibatch_size=size, **settings), batch)
    for name in ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"):
        assert parts[name] == pytest.approx(whole[name], rel=1e-5, abs=1e-6)


def test_the_last_minibatch_may_be_smaller() -> None:
    metrics, _ = run_update(ppo(minibatch_size=5, epochs=2), fixed_batch(problem()))
    assert metrics["epochs"] == 2.0
    assert all(np.isfinite(value) for value in metrics.values())


def test_every_epoch_has_its_own_order() -> None:
    algorithm = ppo(minibatch_size=4, epochs=1)
    orders = [algorithm.train_state.state()["generators"]["shuffle"]]
    for _ in range(2):
        run_update(algorithm, fixed_batch(problem()))
        orders.append(algorithm.train_state.state()["generators"]["shuffle"])
    assert orders[0] != orders[1] != orders[2]


@pytest.mark.parametrize(("steps", "share"), [(0, 1.0), (250, 0.75), (1000, 0.0), (1200, 0.0)])
def test_the_learning_rate_is_annealed_to_zero_over_the_run(steps: int, share: float) -> None:
    algorithm = ppo(lr=0.01, epochs=1, minibatch_size=1000)
    before = weights(algorithm)
    algorithm.train_state.advance(Progress(steps, 1000))
    metrics, _ = run_update(algorithm, fixed_batch(problem()))
    assert metrics["lr"] == pytest.approx(0.01 * share)
    # The first step of Adam moves every weight by the step size, nearly.
    assert np.abs(weights(algorithm) - before).max() == pytest.approx(0.01 * share, rel=0.02)


@pytest.mark.parametrize("settings", [{"anneal_lr": False}, {}], ids=["constant", "no end known"])
def test_the_learning_rate_is_constant_without_annealing(settings: dict[str, Any]) -> None:
    algorithm = ppo(lr=0.01, **settings)
    algorithm.train_state.advance(Progress(500, None if not settings else 1000))
    assert run_update(algorithm, fixed_batch(problem()))[0]["lr"] == 0.01


def test_training_on_a_batch_stops_at_the_target_kl() -> None:
    algorithm = ppo(lr=0.02, epochs=20, minibatch_size=16, target_kl=0.01)
    metrics, _ = run_update(algorithm, own_batch(algorithm, problem()))
    assert 0.5 <= metrics["epochs"] < 20
    assert metrics["epochs"] % 0.5 == 0


def test_a_batch_beyond_the_target_kl_takes_no_step() -> None:
    algorithm = ppo(target_kl=1e-6)
    before = weights(algorithm)
    metrics, _ = run_update(algorithm, fixed_batch(problem()))
    assert metrics["epochs"] == 0.0
    assert np.array_equal(weights(algorithm), before)


def test_fresh_experience_is_not_weighted() -> None:
    careful, bold = ppo(max_importance=1.0), ppo(max_importance=100.0)
    batch = fixed_batch(problem())
    metrics, _ = run_update(careful, batch)
    run_update(bold, batch)
    assert metrics["effective_sample_share"] == 1.0
    assert metrics["mean_age"] == 0.0
    assert weights(careful).tobytes() == weights(bold).tobytes()


def test_older_experience_is_weighted_up_to_a_bound() -> None:
    batch = fixed_batch(problem(), ages=(0, 2, 1))
    unlikely = replace(batch, extras={"log_prob": np.full_like(batch.reward, -5.0)})
    metrics, _ = run_update(ppo(max_importance=1.5), unlikely)
    # 6 of 17 steps are fresh and weigh 1; all others would weigh about 50: (Σw)² / (N Σw²).
    assert metrics["effective_sample_share"] == pytest.approx((6 + 11 * 1.5) ** 2 / (17 * (6 + 11 * 1.5**2)))
    assert metrics["mean_age"] == pytest.approx((4 * 2 + 7 * 1) / 17)


def test_importance_weights_of_a_very_different_policy_do_not_overflow() -> None:
    batch = fixed_batch(problem(), ages=(1, 1, 1))
    impossible = replace(batch, extras={"log_prob": np.full_like(batch.reward, -200.0)})
    metrics, _ = run_update(ppo(max_importance=2.0), impossible)
    assert metrics["effective_sample_share"] == pytest.approx(1.0)


def test_a_batch_that_stops_early_reports_the_same_metrics() -> None:
    early, _ = run_update(ppo(target_kl=1e-6), fixed_batch(problem()))
    whole, _ = run_update(ppo(), fixed_batch(problem()))
    assert set(whole) == set(early)


def test_older_experience_of_an_equal_policy_has_weight_one() -> None:
    fresh, older = (ppo(lr=0.01, minibatch_size=8) for _ in range(2))
    run_update(fresh, own_batch(fresh, problem()))
    run_update(older, own_batch(older, problem(), ages=(3,)))
    np.testing.assert_allclose(weights(older), weights(fresh), atol=1e-4)


@pytest.mark.parametrize("action", [DISCRETE, BOX], ids=["discrete", "box"])
def test_only_the_weights_of_the_actor_are_published(action: Any) -> None:
    algorithm = ppo(action)
    layout = acting(algorithm).layout
    program = algorithm.policies.explore.program
    assert algorithm.train_state.policy_weights().size == layout_of(program).size
    assert not any(tensor.name.startswith("critic") for tensor in program.tensors)
    assert [name for name, _ in layout.shapes][: len(program.tensors)] == [tensor.name for tensor in program.tensors]


def test_published_statistics_change_what_the_policy_sees() -> None:
    algorithm = ppo(BOX, standardize=True)
    observation = np.array([[3.0, -2.0, 5.0]], np.float32)
    mean, scale = np.array([1.0, 0.0, 5.0], np.float32), np.array([2.0, 0.5, 9.0], np.float32)
    acting(algorithm).views["actor.action.weight"].data.mul_(100.0)
    before = NumpyPolicy(algorithm.policies.exploit, algorithm.train_state.policy_weights())
    expected = before.act({"observation": (observation - mean) * scale}, np.zeros((1, 0))).action.copy()
    algorithm.train_state.standardize("observation", mean, scale)
    after = NumpyPolicy(algorithm.policies.exploit, algorithm.train_state.policy_weights())
    assert after.act({"observation": observation}, np.zeros((1, 0))).action == pytest.approx(expected, rel=1e-6)


def test_statistics_are_never_trained() -> None:
    algorithm = ppo(standardize=True, lr=0.1)
    run_update(algorithm, fixed_batch(problem()))
    found = named(acting(algorithm).layout, weights(algorithm))
    assert found["observation.mean"].tolist() == [0.0] * 3
    assert found["observation.scale"].tolist() == [1.0] * 3


def test_initial_weights_are_orthogonal_with_a_small_last_layer() -> None:
    algorithm = ppo(BoxAction((-1.0,), (1.0,)), log_std_init=-0.7)
    found = named(acting(algorithm).layout, weights(algorithm))
    hidden = found["actor.0.weight"]
    np.testing.assert_allclose(hidden @ hidden.T, 2.0 * np.eye(3), atol=1e-6)
    assert np.linalg.norm(found["actor.action.weight"]) == pytest.approx(0.01, rel=1e-5)
    assert np.linalg.norm(found["critic.value.weight"]) == pytest.approx(1.0, rel=1e-5)
    assert not any(array.any() for name, array in found.items() if name.endswith("bias"))
    assert found["log_std"] == pytest.approx([-0.7])


def test_actor_and_critic_can_have_separate_learning_rates() -> None:
    algorithm = ppo(lr=0.01, critic_lr=0.03, epochs=1, minibatch_size=1000)
    before = {name: flat_of(algorithm, name) for name in ("actor", "critic")}
    run_update(algorithm, fixed_batch(problem()))
    # The first step of Adam moves every weight by the learning rate, nearly.
    for name, lr in (("actor", 0.01), ("critic", 0.03)):
        assert np.abs(flat_of(algorithm, name) - before[name]).max() == pytest.approx(lr, rel=0.02)


def test_a_critic_with_separate_epochs_continues_after_the_policy_stops() -> None:
    algorithm = ppo(lr=0.02, epochs=20, critic_epochs=3, minibatch_size=16, target_kl=0.01)
    twin = ppo(lr=0.02, epochs=20, critic_epochs=4, minibatch_size=16, target_kl=0.01)
    batch = own_batch(algorithm, problem())
    metrics, _ = run_update(algorithm, batch)
    run_update(twin, batch)
    assert metrics["epochs"] < 20
    assert np.array_equal(flat_of(algorithm, "actor"), flat_of(twin, "actor"))
    assert not np.array_equal(flat_of(algorithm, "critic"), flat_of(twin, "critic"))


def test_two_optimizers_continue_where_they_were() -> None:
    algorithm = ppo(critic_lr=0.02, critic_epochs=2, epochs=1, minibatch_size=8)
    run_update(algorithm, fixed_batch(problem()))
    twin = ppo(critic_lr=0.02, critic_epochs=2, epochs=1, minibatch_size=8)
    twin.train_state.restore(algorithm.train_state.state())
    for one in (algorithm, twin):
        run_update(one, fixed_batch(problem()))
    for name in ("actor", "critic"):
        assert np.array_equal(flat_of(algorithm, name), flat_of(twin, name))


def test_a_shared_trunk_is_one_set_of_layers_that_both_losses_shape() -> None:
    algorithm, apart = ppo(shared_trunk=True), ppo()
    names = list(algorithm.actor.optimizer.parameters.views)
    assert "critic.value.weight" in names
    assert not any(name.startswith("critic.0") for name in names)
    batch = fixed_batch(problem())
    before = algorithm.actor.optimizer.parameters.views["actor.0.weight"].detach().clone()
    rows = algorithm.with_advantages(batch, algorithm.critic, 0.99, 0.95)
    algorithm.critic.minimize(algorithm.value_loss, rows)
    assert not torch.equal(algorithm.actor.optimizer.parameters.views["actor.0.weight"], before)
    assert algorithm.policies == apart.policies


def test_a_shared_trunk_has_one_optimizer() -> None:
    with pytest.raises(ConfigError, match="shared_trunk trains actor and critic together"):
        ALGORITHMS.parse({"name": "ppo", "shared_trunk": True, "critic_lr": 1e-3})
