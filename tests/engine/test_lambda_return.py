"""λ-returns against their definition."""

import numpy as np
import pytest
import torch
from tests.finite_differences import numerical_gradient

from rl4sys.engine import lambda_return


def _reference(reward: np.ndarray, live: np.ndarray, value: np.ndarray, blend: np.ndarray) -> np.ndarray:
    returns = value.copy()
    for t in range(len(reward) - 2, -1, -1):
        later = (1 - blend[t + 1]) * value[t + 1] + blend[t + 1] * returns[t + 1]
        returns[t] = reward[t + 1] + live[t + 1] * later
    return returns[:-1]


def test_returns_follow_their_recursion() -> None:
    rng = np.random.default_rng(0)
    reward, live, value = rng.normal(size=(6, 3)), rng.uniform(size=(6, 3)), rng.normal(size=(6, 3))
    found = lambda_return(*map(torch.from_numpy, (reward, live, value)), 0.95)
    assert found.numpy() == pytest.approx(_reference(reward, live, value, np.full((6, 3), 0.95)), rel=1e-9)


@pytest.mark.parametrize("place", [0, 1, 2], ids=["reward", "continue", "value"])
def test_gradients_of_returns_equal_those_of_the_recursion(place: int) -> None:
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=(6, 3)), rng.uniform(size=(6, 3)), rng.normal(size=(6, 3))]
    weight, blend = rng.normal(size=(5, 3)), np.full((6, 3), 0.95)
    tensors = [torch.from_numpy(array).requires_grad_() for array in arrays]
    loss = (lambda_return(*tensors, 0.95) * torch.from_numpy(weight)).sum()
    (found,) = torch.autograd.grad(loss, tensors[place])

    def reference(x: np.ndarray) -> float:
        changed = [x if number == place else array for number, array in enumerate(arrays)]
        return float((weight * _reference(*changed, blend)).sum())

    assert found.numpy() == pytest.approx(numerical_gradient(reference, arrays[place]), abs=1e-6)


def test_a_lambda_of_zero_cuts_the_return_at_that_row() -> None:
    rng = np.random.default_rng(1)
    reward, live, value = rng.normal(size=(5, 2)), rng.uniform(size=(5, 2)), rng.normal(size=(5, 2))
    blend = np.full((5, 2), 0.9)
    blend[2] = 0.0
    found = lambda_return(*map(torch.from_numpy, (reward, live, value, blend)))
    assert found.numpy() == pytest.approx(_reference(reward, live, value, blend), rel=1e-9)
    assert found[1].numpy() == pytest.approx(reward[2] + live[2] * value[2])


def test_a_termination_ends_the_return() -> None:
    reward, live, value = (
        torch.tensor([0.0, 1.0, 2.0, 4.0]),
        torch.tensor([1.0, 1.0, 0.0, 1.0]),
        torch.full((4,), 100.0),
    )
    assert lambda_return(reward, live, value, 1.0)[:2].tolist() == [3.0, 2.0]


def test_the_value_of_a_chain_is_found_within_two_per_cent() -> None:
    """Five states in a row, reward 1 at the end: iterating λ-returns as targets converges to γ^(steps to the end)."""
    gamma, value = 0.9, torch.zeros(6)
    reward, live = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]) * gamma
    for _ in range(60):
        value[:5] += 0.5 * (lambda_return(reward, live, value, 0.95) - value[:5])
    assert value[:5].tolist() == pytest.approx([gamma**k for k in (4, 3, 2, 1, 0)], rel=0.02)
