"""What algorithms with an actor, critics and a replay have in common: settings, batches, and the scale of actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field

from rl4sys.algorithms.problem import Problem, UnsuitableActions
from rl4sys.algorithms.registry import AlgorithmConfig
from rl4sys.algorithms.returns import n_step_return
from rl4sys.experience import Array, Arrays, Transitions
from rl4sys.policy import BoxAction, DiscreteAction
from rl4sys.replay import Ratio
from rl4sys.state import State

TensorMap = Mapping[str, torch.Tensor]


class OffPolicyConfig(AlgorithmConfig):
    """Settings of algorithms that train an actor and critics from replay."""

    lr: float = Field(3e-4, gt=0)
    """Step size of Adam for the actor. Higher learns faster and breaks sooner."""
    critic_lr: float | None = Field(None, gt=0)
    """Step size of Adam for the critics; that of the actor if not given."""
    batch_size: int = Field(256, ge=1)
    """Transitions per update. More make gradients steadier and updates slower."""
    updates_per_step: float = Field(1.0, gt=0)
    """Updates for each environment step, over all environments. More learn more from the same data, and take time."""
    train_frequency: int = Field(1, ge=1)
    """Environment steps (over all environments) between two rounds of updates."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps of uniformly random actions before learning starts; they earn no updates."""
    polyak: float = Field(0.005, gt=0, le=1)
    """Share of the networks in their targets after each update. More follows faster, with less stable targets."""
    n_step: int = Field(1, ge=1)
    """Rewards summed before bootstrapping. More spread rewards faster, with more variance and off-policy bias."""
    max_grad_norm: float | None = Field(None, gt=0)
    """If set, longer gradients are shortened to this length."""

    buffers = ("uniform", "prioritized", "hindsight")

    def pace(self, buffer_size: int) -> Ratio:
        """A fixed number of updates for each step."""
        return Ratio(self.updates_per_step, self.learning_starts, self.batch_size)

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.batch_size

    def steps_between_updates(self, buffer_size: int) -> int:
        """One round of updates."""
        return self.train_frequency

    @property
    def window(self) -> int:
        """Steps summed before bootstrapping."""
        return self.n_step


@dataclass(frozen=True, slots=True)
class Moments:
    """A batch as tensors: [B, …]."""

    observation: TensorMap
    action: torch.Tensor
    reward: torch.Tensor
    """[B]: discounted over the window."""
    bootstrap: torch.Tensor
    """[B]: what the value of the next observation counts; 0 after a termination, never after a truncation."""
    next_observation: TensorMap
    weight: torch.Tensor

    @classmethod
    def of(cls, batch: Transitions, gamma: float, device: torch.device) -> Moments:
        """The tensors of a batch; on the CPU they share its memory."""
        reward, bootstrap = n_step_return(batch, gamma)
        return cls(
            _tensors(batch.observation, device),
            _tensor(batch.action, device),
            _tensor(reward, device),
            _tensor(bootstrap, device),
            _tensors(batch.next_observation, device),
            _tensor(batch.weight, device),
        )


class ActionScale:
    """Between the bounds of an environment, which need not be symmetric, and the [−1, 1] that networks learn in."""

    def __init__(self, box: BoxAction, device: torch.device) -> None:
        low, high = np.array(box.low, np.float32), np.array(box.high, np.float32)
        self._middle = torch.from_numpy((high + low) / np.float32(2.0)).to(device)
        self._inverse = torch.from_numpy(np.float32(2.0) / (high - low)).to(device)

    def scaled(self, action: torch.Tensor) -> torch.Tensor:
        """Actions of the environment in [−1, 1]; what lay beyond the bounds was executed at the bound."""
        return ((action - self._middle) * self._inverse).clamp_(-1.0, 1.0)


def bounded_box(problem: Problem, algorithm: str) -> BoxAction:
    """The action of the problem, if it is a vector with finite bounds and room between them."""
    action = problem.action
    if not isinstance(action, BoxAction):
        others = "sac, dqn or ppo" if isinstance(action, DiscreteAction) else "ppo"
        raise UnsuitableActions(
            f"{algorithm} cannot choose {action.kind} actions, which this environment wants. "
            f"Use algorithm.name={others}, or an environment with continuous actions."
        )
    for place, (low, high) in enumerate(zip(action.low, action.high, strict=True)):
        # As they will be computed with: the largest numbers of float32 stand for no bounds, and overflow here.
        with np.errstate(over="ignore"):
            width = np.float32(high) - np.float32(low)
        if not (np.isfinite(width) and width > 0):
            raise UnsuitableActions(
                f"{algorithm} acts within bounds, and number {place} of this environment's action has the bounds "
                f"{low} and {high}. Wrap the environment so that they are finite and apart "
                f"(gymnasium.wrappers.TransformAction(environment, lambda action: action, Box(low, high))), or use "
                f"algorithm.name=ppo."
            )
    return action


class SampledNoise:
    """Normal numbers for the learner's own samples, from a generator that is saved."""

    def __init__(self, problem: Problem) -> None:
        self._generator = problem.torch_generator("samples")
        self._device = problem.device

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal numbers, drawn on the CPU, so that every device sees the same."""
        return torch.randn(shape, generator=self._generator).to(self._device)

    def uniform(self, *shape: int) -> torch.Tensor:
        """Numbers from −1 to 1, each as likely as any other, drawn on the CPU too."""
        return torch.rand(shape, generator=self._generator).mul_(2.0).sub_(1.0).to(self._device)

    def choice(self, size: int, count: int) -> torch.Tensor:
        """`count` different numbers below `size`."""
        return torch.randperm(size, generator=self._generator)[:count].to(self._device)

    def state(self) -> State:
        """Where the generator is."""
        return {"generator": self._generator.get_state().numpy().copy()}

    def restore(self, state: State) -> None:
        """Go on there."""
        self._generator.set_state(torch.from_numpy(state["generator"]))


def _tensor(array: Array, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(array).to(device)


def _tensors(arrays: Arrays, device: torch.device) -> dict[str, torch.Tensor]:
    return {name: _tensor(np.asarray(array), device) for name, array in arrays.items()}
