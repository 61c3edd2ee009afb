"""Models that predict one step from a flat observation: what is trained, and the program that planners run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch

from rl4sys.dynamics.config import GaussianConfig, OneStepConfig
from rl4sys.dynamics.forecast import Forecast
from rl4sys.dynamics.statistics import (
    CHANGE_SCALING,
    REWARD_SCALING,
    STATE_SCALING,
    STATISTICS,
    Standardization,
    declare_statistics,
)
from rl4sys.experience import ArraySpec
from rl4sys.networks import TensorMap
from rl4sys.policy import Program, ProgramBuilder, Tensor

Predict: TypeAlias = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, ...]]
"""The predictions of all members for states and actions [members, B, …]: see `OneStepModel.training`."""
_STATE, _ACTION, _NAME = "state", "action", "model"
_UNBOUNDED = 1e9
"""The clip of ops that only scale."""


class OneStepTargets(NamedTuple):
    """What members are to predict, standardized: [members, B, n] each."""

    delta: torch.Tensor
    reward: torch.Tensor


class Prediction(NamedTuple):
    """Registers of one member's predictions, standardized; deviations if it is Gaussian."""

    delta: str
    reward: str
    delta_std: str | None
    reward_std: str | None

    @property
    def registers(self) -> tuple[str, ...]:
        """Those that there are."""
        return tuple(name for name in self if name is not None)


@dataclass(frozen=True, slots=True)
class OneStepModel:
    """The programs of a model over observations of `state_size` numbers and actions of `action_size`.

    Its state is the standardized observation.
    """

    config: OneStepConfig
    observation: tuple[ArraySpec, ...]
    action_size: int

    @property
    def state_size(self) -> int:
        """Numbers in a flat observation."""
        return sum(math.prod(spec.shape) for spec in self.observation)

    def training(self, *tensors: tuple[str, int]) -> tuple[Program, tuple[str, ...]]:
        """The program of one member, from `state` and `action` to its predictions, and their registers.

        It declares the statistics, and then other tensors by name and size.
        """
        inputs = ArraySpec(_STATE, "float32", (self.state_size,)), ArraySpec(_ACTION, "float32", (self.action_size,))
        builder = ProgramBuilder(inputs)
        prediction = self._predict(builder, _STATE, _NAME, self.config.std_bounds)
        for name, size in tensors:
            builder.tensor(name, size)
        declare_statistics(builder, self.state_size)
        return builder.program(), prediction.registers

    def acting(self, training: Program, shared: tuple[str, ...]) -> tuple[Program, str]:
        """The program that makes the state of an observation, with the tensors of all members, and its register.

        The tensors lie as in the trained parameters, where each but the shared ones has a leading axis of members.
        """
        builder = ProgramBuilder(self.observation)
        flat = builder.features(standardize=False)
        state = builder.op("standardize", (flat,), (self.state_size,), STATE_SCALING, clip=_UNBOUNDED)
        names = {*shared, *STATISTICS}
        tensors = [
            Tensor(_member(tensor.name, member), tensor.shape) if tensor.name not in names else tensor
            for tensor in training.tensors
            for member in range(1 if tensor.name in names else self.config.members)
        ]
        return replace(builder.program(), tensors=tuple(tensors)), state

    def planning(self, *, sample: bool) -> tuple[Program, str]:
        """The program that planners run, from an action to the next state of each member, and its register of rewards.

        The reward is the mean over members. With `sample`, next states are drawn and not only the means.
        """
        builder = ProgramBuilder((ArraySpec(_ACTION, "float32", (self.action_size,)),))
        members, size = self.config.members, self.state_size
        rewards: list[str] = []
        for member in range(members):
            state = builder.memory(f"{_STATE}.{member}", (size,))
            bounds = self.config.std_bounds if sample else None
            prediction = self._predict(builder, state, _member(_NAME, member), bounds)
            delta = prediction.delta
            if prediction.delta_std is not None:
                noise = builder.chance(f"noise.{member}", size, "normal")
                spread = builder.multiply(prediction.delta_std, noise)
                delta = builder.op("add", (delta, spread), (size,))
            for name in CHANGE_SCALING:
                builder.tensor(name, size)
            change = builder.op("standardize", (delta,), (size,), CHANGE_SCALING, clip=_UNBOUNDED)
            builder.remember(state, builder.op("add", (state, change), (size,)))
            rewards.append(prediction.reward)
        reward = _mean(builder, rewards)
        for name in REWARD_SCALING:
            builder.tensor(name, 1)
        reward = builder.op("standardize", (reward,), (1,), REWARD_SCALING, clip=_UNBOUNDED)
        return builder.program(), reward

    def _predict(
        self, builder: ProgramBuilder, state: str, name: str, std_bounds: tuple[float, float] | None
    ) -> Prediction:
        body = self.config.body(builder, builder.joined([state, _ACTION]), name)
        sizes = {"delta": self.state_size, "reward": 1}
        delta, reward = (builder.linear(body, size, f"{name}.{part}") for part, size in sizes.items())
        if std_bounds is None:
            return Prediction(delta, reward, None, None)
        # All layers first: those that read the same register train as one step.
        raw = [builder.linear(body, size, f"{name}.{part}_std") for part, size in sizes.items()]
        delta_std, reward_std = (_bounded(builder, register, *std_bounds) for register in raw)
        return Prediction(delta, reward, delta_std, reward_std)

    def forecast(
        self, predict: Predict, statistics: Standardization, observation: torch.Tensor, actions: torch.Tensor
    ) -> Forecast:
        """What follows from flat observations [B, n] and actions [B, steps, a], by the means of every member."""
        state = observation.expand(self.config.members, *observation.shape)
        observations, rewards, stds = [], [], []
        for action in actions.unbind(1):
            outputs = predict(statistics.standardized("state", state), action.expand(len(state), *action.shape))
            state = state + statistics.restored("delta", outputs[0])
            observations.append(state)
            rewards.append(statistics.restored("reward", outputs[1]).squeeze(-1))
            stds.append(outputs[2:])
        known = torch.stack(observations, 2).cpu().numpy(), torch.stack(rewards, 2).cpu().numpy()
        if not stds[0]:
            return Forecast(*known)
        delta_std, reward_std = stds[0]
        delta_std, reward_std = delta_std * statistics.deviation("delta"), reward_std * statistics.deviation("reward")
        return Forecast(*known, delta_std.cpu().numpy(), reward_std.squeeze(-1).cpu().numpy())

    def losses(self, outputs: tuple[torch.Tensor, ...], targets: OneStepTargets) -> torch.Tensor:
        """The loss of each member [members], a mean over rows and a sum over what is predicted.

        Squared errors, or the negative log-likelihood of a Gaussian without its constant (arXiv:1805.12114, eq. 1),
        weighted by the predicted variance (arXiv:2203.09168, eq. 2).
        """
        mean, target = torch.cat(outputs[:2], -1), torch.cat(targets, -1)
        if len(outputs) == 2:
            return (0.5 * (mean - target) ** 2).sum(-1).mean(-1)
        std = torch.cat(outputs[2:], -1)
        weight = std.detach() ** (2.0 * self.config.beta) if isinstance(self.config, GaussianConfig) else 1.0
        return (weight * (0.5 * ((mean - target) / std) ** 2 + std.log())).sum(-1).mean(-1)


def flat_state(observation: TensorMap, specs: tuple[ArraySpec, ...]) -> torch.Tensor:
    """Observations as one flat float32 vector [B, n], as `ProgramBuilder.features` makes it."""
    parts = []
    for spec in specs:
        numbers = observation[spec.name].to(torch.float32)
        parts.append((numbers / 255.0 if spec.dtype == "uint8" else numbers).flatten(1))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _bounded(builder: ProgramBuilder, register: str, low: float, high: float) -> str:
    """A standard deviation within bounds: low + (high − low) · sigmoid.

    Its logarithm is nearly linear in between, as that of PETS, whose bounds are soft as well.
    """
    size = builder.shape(register)
    share = builder.op("sigmoid", (register,), size)
    return builder.op("scale", (share,), size, factor=high - low, offset=low)


def _mean(builder: ProgramBuilder, registers: list[str]) -> str:
    total = registers[0]
    for register in registers[1:]:
        total = builder.op("add", (total, register), builder.shape(total))
    if len(registers) == 1:
        return total
    return builder.op("scale", (total,), builder.shape(total), factor=1.0 / len(registers), offset=0.0)


def _member(tensor: str, member: int) -> str:
    """The name that a tensor, or the model, has for one member."""
    return f"{_NAME}.{member}{tensor.removeprefix(_NAME)}"
