from __future__ import annotations

import math

import pytest
import torch

from rl4sys.networks import imitation_log_prob, lowest_log_std, smoothed_log_prob
from rl4sys.policy import BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction

LOGITS = torch.tensor([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]])
ACTION = torch.tensor([0, 1])


def test_without_a_floor_it_is_the_log_probability() -> None:
    expected = torch.log_softmax(LOGITS, -1)[torch.arange(2), ACTION]
    assert torch.equal(smoothed_log_prob(LOGITS, ACTION, None, 0.0), expected)


def test_the_best_policy_gives_every_allowed_choice_its_share_of_the_floor() -> None:
    mask = torch.tensor([[True, True, True, False]])
    logits = torch.zeros(1, 4, requires_grad=True)
    optimizer = torch.optim.Adam([logits], 0.05)
    for _ in range(500):
        optimizer.zero_grad()
        (-smoothed_log_prob(logits, torch.tensor([1]), mask, 0.3).mean()).backward()
        optimizer.step()
    probability = torch.softmax(logits.masked_fill(~mask, -1e9), -1)[0]
    assert probability.tolist() == pytest.approx([0.1, 0.8, 0.1, 0.0], abs=1e-3)


def test_what_falls_below_the_floor_costs_its_square() -> None:
    logits = torch.tensor([[0.0, 0.01, 0.99]]).log()
    log_floor = math.log(0.3 / 3)
    lack = (log_floor - math.log(0.01)) ** 2
    found = smoothed_log_prob(logits[:, 1:], torch.tensor([1]), None, 0.2)
    expected = 0.8 * math.log(0.99) + 0.1 * (math.log(0.99) + math.log(0.01)) - lack / 2
    assert found.item() == pytest.approx(expected, rel=1e-4)


def test_an_excluded_action_counts_for_nothing_and_gradients_stay_finite() -> None:
    logits = LOGITS.clone().requires_grad_()
    mask = torch.tensor([[False, True, True], [False, True, False]])
    found = smoothed_log_prob(logits, ACTION, mask, 0.1)
    found.sum().backward()
    assert found[0] > -2.0
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def test_parts_of_an_action_add_up() -> None:
    space, box = MixedAction((2, 3), (-1.0,), (1.0,)), BoxAction((-1.0,), (1.0,))
    output = torch.tensor([[0.3, 0.1, 0.5, -0.2, 0.0, 0.4]])
    action, log_std = torch.tensor([[1.0, 2.0, 0.25]]), torch.tensor([-1.0])
    both = imitation_log_prob(space, output, action, None, log_std, 0.1)
    choices = imitation_log_prob(MultiDiscreteAction((2, 3)), output[:, :5], action[:, :2].long(), None, None, 0.1)
    numbers = imitation_log_prob(box, output[:, 5:], action[:, 2:], None, log_std, 0.1)
    assert torch.allclose(both, choices + numbers)
    one = imitation_log_prob(DiscreteAction(2), output[:, :2], torch.tensor([1]), None, None, 0.1)
    assert torch.allclose(choices - one, smoothed_log_prob(output[:, 2:5], torch.tensor([2]), None, 0.1))


def test_the_standard_deviation_keeps_a_share_of_half_the_range() -> None:
    lowest = lowest_log_std(BoxAction((-2.0, -math.inf), (2.0, math.inf)), 0.1).exp()
    assert lowest.tolist() == pytest.approx([0.2, 0.1])
    assert lowest_log_std(BoxAction((-2.0,), (2.0,)), 0.0).tolist() == [-math.inf]
