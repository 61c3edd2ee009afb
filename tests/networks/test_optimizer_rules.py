"""Optimizers by name, against those of torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rl4sys.networks import OPTIMIZERS, BatchSplitter, Optimizer, OptimizerSettings, Parameters
from rl4sys.networks.optimizer_rules import orthogonal_matrix
from rl4sys.policy import Tensor

SHAPES = {"layer.weight": (4, 6), "layer.bias": (6,), "frozen.weight": (2, 2)}


def trained(rule: Any, steps: int = 12, optimizer: Optimizer | None = None) -> Optimizer:
    """Steps towards fixed places; the places of a frozen tensor do not matter."""
    if optimizer is None:
        parameters = Parameters((Tensor(name, shape) for name, shape in SHAPES.items()), torch.device("cpu"))
        parameters.flat.copy_(torch.linspace(-1.0, 1.0, len(parameters.flat)))
        parameters.freeze("frozen.weight")
        optimizer = Optimizer(parameters, OptimizerSettings(0.01, rule=OPTIMIZERS.parse(rule)), BatchSplitter())
    views = optimizer.parameters.views
    for _ in range(steps):
        optimizer.minimize(lambda: loss_of([views["layer.weight"], views["layer.bias"]]))
    return optimizer


def loss_of(tensors: list[torch.Tensor]) -> torch.Tensor:
    return sum((tensor - tensor.numel() / 10).square().sum() for tensor in tensors)


@pytest.mark.parametrize(
    ("rule", "torch_rule"),
    [
        ({"name": "adam"}, lambda weight, bias: torch.optim.Adam([weight, bias], 0.01)),
        (
            {"name": "adamw", "weight_decay": 0.1},
            lambda weight, bias: torch.optim.AdamW(
                [{"params": [weight], "weight_decay": 0.1}, {"params": [bias], "weight_decay": 0.0}], 0.01
            ),
        ),
        (
            {"name": "rmsprop", "momentum": 0.5},
            lambda weight, bias: torch.optim.RMSprop([weight, bias], 0.01, momentum=0.5),
        ),
    ],
)
def test_a_rule_takes_the_steps_of_torch(rule: dict[str, Any], torch_rule: Any) -> None:
    parameters = trained(rule).parameters
    start = torch.linspace(-1.0, 1.0, len(parameters.flat))
    weight, bias = (start[:24].view(4, 6).clone().requires_grad_(), start[24:30].clone().requires_grad_())
    reference = torch_rule(weight, bias)
    for _ in range(12):
        reference.zero_grad()
        loss_of([weight, bias]).backward()
        reference.step()
    assert torch.allclose(parameters.views["layer.weight"], weight, atol=1e-5)
    assert torch.allclose(parameters.views["layer.bias"], bias, atol=1e-5)


def test_sgd_keeps_a_share_of_its_last_step() -> None:
    parameters = Parameters([Tensor("number", (1,))], torch.device("cpu"))
    rule = OPTIMIZERS.parse({"name": "sgd", "momentum": 0.5})
    optimizer = Optimizer(parameters, OptimizerSettings(1.0, rule=rule), BatchSplitter())
    places = []
    for _ in range(3):
        optimizer.minimize(lambda: parameters.views["number"].sum())
        places.append(parameters.flat.item())
    assert places == pytest.approx([-1.0, -2.5, -4.25])


def test_muon_takes_orthogonal_steps_for_matrices() -> None:
    found = orthogonal_matrix(torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0)), 5)
    singular = torch.linalg.svdvals(found)
    assert ((singular > 0.6) & (singular < 1.3)).all()
    before = trained({"name": "muon"}, 0).parameters.views["layer.weight"].detach().clone()
    step = trained({"name": "muon"}, 1).parameters.views["layer.weight"] - before
    assert torch.linalg.matrix_norm(step).item() <= 0.01 * 0.2 * 6**0.5 * 1.3 * 2.0


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_every_rule_resumes_exactly_and_leaves_frozen_tensors(name: str) -> None:
    rule = {"name": name, **({"momentum": 0.9} if name in ("sgd", "rmsprop") else {})}
    first, whole = trained(rule, 6), trained(rule, 12)
    resumed = trained(rule, 0)
    resumed.restore(first.state())
    assert torch.equal(trained(rule, 6, resumed).parameters.flat, whole.parameters.flat)
    assert torch.equal(whole.parameters.views["frozen.weight"], trained(rule, 0).parameters.views["frozen.weight"])
