from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl4sys.experience import Transitions
from rl4sys.replay import Priorities, PrioritizedBuffer, Ratio

from .segments import segment


def buffer_of(capacity: int, batch_size: int = 64, **priorities: Any) -> PrioritizedBuffer:
    rng = np.random.default_rng(0)
    return PrioritizedBuffer(capacity, Ratio(10, 0, batch_size), rng, Priorities(**priorities))


def drawn(buffer: PrioritizedBuffer) -> Transitions:
    return next(buffer.due())


def test_transitions_are_drawn_in_proportion_to_their_priorities() -> None:
    buffer = buffer_of(capacity=2000, alpha=0.5)
    buffer.add(segment(1500))
    errors = np.random.default_rng(1).gamma(1.0, size=1500)
    buffer.annotate(np.arange(1500), {"priority": errors})
    priority = (errors + 1e-6) ** 0.5
    expected = 2000 * 64 * priority / priority.sum()
    times = np.bincount(np.concatenate([drawn(buffer).ids for _ in range(2000)]), minlength=1500)
    # χ² has mean 1499 and standard deviation 55 for independent draws; stratified ones vary a little less.
    assert 1200 < ((times - expected) ** 2 / expected).sum() < 1700


def test_one_transition_is_drawn_from_each_equal_share() -> None:
    buffer = buffer_of(capacity=256, batch_size=64)
    buffer.add(segment(256))
    assert (drawn(buffer).ids // 4).tolist() == list(range(64))


def test_importance_weights_correct_the_bias_relative_to_the_largest_of_the_batch() -> None:
    buffer = buffer_of(capacity=50, batch_size=500, alpha=1.0, beta=0.5, beta_steps=100)
    buffer.add(segment(50))
    errors = np.linspace(0.5, 3.0, 50)
    buffer.annotate(np.arange(50), {"priority": -errors})
    batch = drawn(buffer)
    share = (errors + 1e-6) / (errors + 1e-6).sum()
    weight = (50 * share[batch.ids]) ** -0.75
    np.testing.assert_allclose(batch.weight, weight / weight.max(), rtol=1e-6)
    assert batch.weight.dtype == np.float32


def test_beta_rises_to_one_and_stays_there() -> None:
    priorities = Priorities(beta=0.4, beta_steps=100)
    assert [priorities.beta_after(steps) for steps in (0, 50, 100, 1000)] == [0.4, 0.7, 1.0, 1.0]


def test_new_transitions_enter_with_the_highest_priority_so_far() -> None:
    buffer = buffer_of(capacity=10, alpha=1.0)
    buffer.add(segment(2))
    buffer.annotate(np.array([0, 1]), {"priority": np.array([7.0, 0.5])})
    buffer.annotate(np.array([0]), {"priority": np.array([0.1])})
    buffer.add(segment(1, start=2))
    assert np.round(buffer.state()["leaves"], 5).tolist() == [0.1, 0.5, 7.0]


def test_errors_of_overwritten_transitions_are_ignored() -> None:
    buffer = buffer_of(capacity=4, alpha=1.0)
    buffer.add(segment(4))
    buffer.add(segment(2, start=4))
    buffer.annotate(np.array([0, 1, 2]), {"priority": np.array([50.0, 60.0, 3.0])})
    assert np.round(buffer.state()["leaves"], 5).tolist() == [3.0, 1.0, 1.0, 1.0]
    buffer.annotate(np.array([0, 1]), {"priority": np.array([50.0, 60.0])})
    assert buffer.state()["highest"] == pytest.approx(3.0)


def test_priorities_annotated_between_two_batches_take_effect_at_once() -> None:
    buffer = buffer_of(capacity=100, alpha=1.0)
    buffer.add(segment(100))
    due = buffer.due()
    next(due)
    buffer.annotate(np.arange(100), {"priority": np.where(np.arange(100) == 42, 1.0, 0.0)})
    assert (next(due).ids == 42).all()


def test_an_algorithm_without_errors_is_refused_with_a_hint_at_uniform_replay() -> None:
    buffer = buffer_of(capacity=4)
    with pytest.raises(ValueError, match=r"buffer\.type=uniform"):
        buffer.annotate(np.array([0]), {"latent": np.zeros(1)})


def test_an_error_of_nan_is_refused() -> None:
    buffer = buffer_of(capacity=4)
    buffer.add(segment(1))
    with pytest.raises(ValueError, match="diverged"):
        buffer.annotate(np.array([0]), {"priority": np.array([np.nan])})
