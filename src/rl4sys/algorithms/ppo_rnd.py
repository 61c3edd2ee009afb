"""PPO with a bonus for novelty: random network distillation (arXiv:1810.12894)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from pydantic import Field

from rl4sys.algorithms.ppo import PPO, PPOConfig
from rl4sys.engine import Problem, Update, register_algorithm
from rl4sys.experience import Array, Arrays, Sequences
from rl4sys.networks import OptimizerSettings, TensorMap, orthogonal
from rl4sys.policy import ProgramBuilder

_PARTS = ("random", "predictor")


@register_algorithm("ppo_rnd")
class PPORNDConfig(PPOConfig):
    """On-policy, with curiosity; discrete, multi-discrete, continuous and mixed actions."""

    bonus: float = Field(0.5, ge=0)
    """Weight of the bonus, whose standard deviation is 1, in the reward. More explores more; 0 is PPO."""
    bonus_lr: float = Field(1e-3, gt=0)
    """Learning rate of the network that predicts. Higher gets used to what is new sooner."""
    features: int = Field(64, ge=1)
    """Outputs of the random network. More tell more observations apart."""
    bonus_rate: float = Field(0.05, gt=0, le=1)
    """Share of each batch in the running mean and variance of the bonus."""

    imitates = False
    schedulable = (*PPOConfig.schedulable, "bonus", "bonus_lr")

    def build(self, problem: Problem) -> PPORND:
        """The algorithm for one problem."""
        return PPORND(self, problem)


class PPORND(PPO):
    """Adds to each reward how badly a network predicts a random function of the observation that followed."""

    config: PPORNDConfig

    def __init__(self, config: PPORNDConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        builder = ProgramBuilder(problem.observation)
        outputs = []
        for part in _PARTS:
            features = builder.features(standardize=problem.standardize)
            body = builder.activation(builder.linear(features, config.features, f"{part}.0"), "relu")
            outputs.append(builder.linear(body, config.features, f"{part}.features"))
        generator = problem.torch_generator("novelty")
        self.novelty = self.train_state.network(
            "novelty",
            builder.program(),
            outputs,
            OptimizerSettings(config.bonus_lr, lr_setting="bonus_lr"),
            frozen=[f"random.{layer}.{part}" for layer in ("0", "features") for part in ("weight", "bias")],
            initialize=lambda parameters: orthogonal(parameters, {}, generator),
        )
        self.scale = self.train_state.running("bonus_scale", 3)

    def update(self, batch: Sequences) -> Update:
        """PPO with the bonus added to rewards; then one pass of the predictor over what was seen."""
        seen = self._rows(batch.observation)
        with torch.no_grad():
            errors = self.errors(seen).cpu().numpy().reshape(batch.acted.shape)
        # The reward of a step counts the novelty of what followed it.
        following = np.roll(errors, -1, 1)
        found = torch.from_numpy(following[batch.acted])
        moments = torch.stack([found.mean(), found.square().mean(), torch.ones(())])
        self.scale.lerp_(moments.to(self.scale.device), self.config.bonus_rate)
        bonus = np.where(batch.acted, following / self._deviation(), 0.0).astype(np.float32)
        weight = self.train_state.scheduled("bonus", self.config.bonus)
        update = super().update(replace(batch, reward=batch.reward + np.float32(weight) * bonus))
        metrics: dict[str, torch.Tensor | float] = {"bonus": float(weight * bonus[batch.acted].mean())}
        metrics["novelty_loss"] = self.fit(seen, batch.acted)
        return Update({**update.metrics, **metrics}, update.feedback)

    def fit(self, seen: TensorMap, acted: Array) -> torch.Tensor:
        """One pass of the predictor over the observations, in random order; returns its last loss."""
        # Where an action was taken, and what followed; all else is padding.
        real = np.flatnonzero(acted | np.roll(acted, 1, 1))
        order = torch.from_numpy(self.shuffle.permutation(real))
        loss = torch.zeros(())
        for start in range(0, len(order), self.config.minibatch_size):
            chosen = order[start : start + self.config.minibatch_size].to(self.scale.device)
            loss = self.novelty.minimize(self.novelty_loss, _Observations(seen, chosen))
        return loss

    def novelty_loss(self, rows: _Observations) -> torch.Tensor:
        """E[mean (f̂(s) − f(s))²]."""
        return self.errors(rows.observation).mean()

    def errors(self, observation: TensorMap) -> torch.Tensor:
        """The error of the prediction for each observation [B]."""
        random, predicted = self.novelty(observation)
        error: torch.Tensor = (predicted - random.detach()).square().mean(-1)
        return error

    def _deviation(self) -> float:
        """The running standard deviation of the errors."""
        mean, square = (self.scale[:2] / self.scale[2]).tolist()
        return float(max(square - mean**2, 1e-12) ** 0.5)

    def _rows(self, observation: Arrays) -> TensorMap:
        return {
            name: torch.from_numpy(array.reshape(-1, *array.shape[2:])).to(self.problem.device)
            for name, array in observation.items()
        }


class _Observations:
    """Some rows of observations, which can be cut into parts."""

    def __init__(self, observation: TensorMap, rows: torch.Tensor) -> None:
        self._whole, self._rows = observation, rows

    @property
    def observation(self) -> TensorMap:
        return {name: array[self._rows] for name, array in self._whole.items()}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice) -> _Observations:
        return _Observations(self._whole, self._rows[rows])
