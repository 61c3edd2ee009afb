"""Imitation of the incumbent: the settings, and its decisions as rows to learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from pydantic import Field

from rl4sys.config import Config
from rl4sys.engine.advantage_batch import generalized_advantage
from rl4sys.engine.problem import Update
from rl4sys.engine.tensor_batch import TransitionTensors
from rl4sys.experience import Sequences
from rl4sys.networks import Network, Optimizer, TensorMap

_GAE_LAMBDA = 0.95
"""Weight of long returns where an algorithm has no setting for it."""


class ImitationConfig(Config):
    """How a policy starts from decisions of the incumbent, the rule by which the system has decided so far."""

    decisions: int = Field(5_000, ge=1)
    """The first decisions of the incumbent to imitate, all at once. More imitate it more exactly, but start later."""
    epochs: int = Field(20, ge=1)
    """Passes over these decisions. More imitate them more exactly, and take more time."""
    minibatch_size: int = Field(256, ge=1)
    """Decisions per gradient step."""
    lr: float = Field(1e-3, gt=0)
    """Learning rate of the imitation alone."""
    floor: float = Field(0.1, ge=0, lt=1)
    """Share of the probability that is spread evenly over all allowed choices, so that each of k choices keeps
    floor / k and the policy explores. For continuous actions: the smallest standard deviation, as a share of half the
    range of an action (of 1 where it has no bounds)."""


@runtime_checkable
class Imitator(Protocol):
    """An algorithm that can start from decisions of the incumbent."""

    def imitate(self, batch: Sequences, plan: ImitationConfig) -> Update:
        """Fit the policy to the decisions of the incumbent, and critics to the returns that followed."""


@contextmanager
def learning_rate(lr: float, *optimizers: Optimizer) -> Iterator[None]:
    """Train with another learning rate for a while; the optimizers start over afterwards, with the rate they had."""
    before = [optimizer.lr for optimizer in optimizers]
    try:
        for optimizer in optimizers:
            optimizer.lr = lr
        yield
    finally:
        for optimizer, rate in zip(optimizers, before, strict=True):
            optimizer.lr = rate
            optimizer.start_over()


def fit_actor_and_critics(
    rows: Iterator[IncumbentRows],
    plan: ImitationConfig,
    actor: Network,
    critics: Network,
    actor_loss: Callable[[IncumbentRows, float], torch.Tensor],
    critic_loss: Callable[[IncumbentRows], torch.Tensor],
) -> Update:
    """Fit the actor to decisions of the incumbent, and the critics with their targets to what followed."""
    losses: list[torch.Tensor] = []
    with learning_rate(plan.lr, actor.optimizer, critics.optimizer):
        for minibatch in rows:
            losses.append(actor.minimize(lambda taken: actor_loss(taken, plan.floor), minibatch))
            critics.minimize(critic_loss, minibatch)
    critics.polyak_update(1.0)
    return Update({"imitation_loss": losses[-1]}, {})


@dataclass(frozen=True, slots=True)
class IncumbentRows:
    """Decisions of the incumbent [B, …]; slicing takes some of them."""

    observation: TensorMap
    action: torch.Tensor
    """Continuous actions in [−1, 1], discrete ones as numbers."""
    returns: torch.Tensor
    """λ-returns of what followed."""

    def __len__(self) -> int:
        return len(self.action)

    def __getitem__(self, rows: slice | torch.Tensor) -> IncumbentRows:
        observation = {name: array[rows] for name, array in self.observation.items()}
        return IncumbentRows(observation, self.action[rows], self.returns[rows])

    @classmethod
    def of(
        cls,
        batch: Sequences,
        tensors: TransitionTensors,
        value: Callable[[TensorMap], torch.Tensor],
    ) -> IncumbentRows:
        """The decisions of a batch; `value` predicts the value of each observation [N, …] of it."""
        acted = batch.acted
        flat = {
            name: tensors.tensor(array.reshape(acted.size, *array.shape[2:]))
            for name, array in batch.observation.items()
        }
        with torch.no_grad():
            values = value(flat).cpu().numpy().reshape(acted.shape)
        advantage = generalized_advantage(batch.reward, batch.discount, acted, values, tensors.gamma, _GAE_LAMBDA)
        chosen = tensors.tensor(np.flatnonzero(acted))
        action = tensors.tensor(batch.action.reshape(acted.size, *batch.action.shape[2:]))[chosen]
        returns = tensors.tensor((advantage + values).reshape(acted.size))[chosen]
        return cls({name: array[chosen] for name, array in flat.items()}, tensors.scaled(action), returns)

    def minibatches(self, size: int, order: torch.Tensor) -> Iterator[IncumbentRows]:
        """Every decision once, in this order."""
        for start in range(0, len(self), size):
            yield self[order[start : start + size]]
