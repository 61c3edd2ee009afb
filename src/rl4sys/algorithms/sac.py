"""Soft actor-critic (arXiv:1812.05905), with ensembles and more updates per step as in REDQ (arXiv:2101.05982)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms.off_policy import (
    ActionScale,
    OffPolicyConfig,
    SampledNoise,
    TensorMap,
    bounded_box,
)
from rl4sys.algorithms.problem import Policies, Problem, Progress, without_memory
from rl4sys.algorithms.registry import Algorithm, register_algorithm
from rl4sys.algorithms.sac_discrete import DiscreteSAC
from rl4sys.algorithms.soft import SoftLearner
from rl4sys.algorithms.temperature import Temperature
from rl4sys.networks import (
    LOG_STD_HIGH,
    LOG_STD_LOW,
    Rows,
    TanhGaussianSample,
    joined,
    rows_of,
    rows_of_all,
)
from rl4sys.policy import BoxAction, DiscreteAction, Head, PolicySpec, Program, ProgramBuilder


@register_algorithm("sac")
class SACConfig(OffPolicyConfig):
    """Off-policy, maximum entropy; continuous actions with finite bounds, or one discrete choice."""

    temperature: float | Literal["auto"] = "auto"
    """What randomness is worth, in units of reward: a number keeps it fixed, `auto` learns it."""
    initial_temperature: float = Field(1.0, gt=0)
    """Where a learned temperature starts."""
    temperature_lr: float | None = Field(None, gt=0)
    """Step size of Adam for the temperature; that of the actor if not given."""
    target_entropy: float | None = None
    """The entropy, in nats, that a learned temperature keeps up. If not given, it is minus the size of an action
    (scaled to [−1, 1]), and for discrete actions what `entropy_fraction` says."""
    entropy_fraction: float = Field(0.98, gt=0, lt=1)
    """For discrete actions: the wanted share of the entropy of choosing at random among what is allowed."""
    ensemble: int = Field(2, ge=1)
    """Critics. More estimate better and take time."""
    target_subset: int | None = Field(None, ge=1)
    """Critics, drawn for each update, whose lowest value makes the target; all if not given. REDQ takes 2 of 10."""
    actor_objective: Literal["min", "mean"] = "min"
    """Whether the actor believes the lowest of the critics (the paper) or their mean (REDQ)."""
    policy_delay: int = Field(1, ge=1)
    """Updates of the critics between two of the actor and the temperature. REDQ uses `updates_per_step`."""

    @model_validator(mode="after")
    def _check(self) -> SACConfig:
        if self.target_subset is not None and self.target_subset > self.ensemble:
            raise ValueError(f"target_subset is {self.target_subset}, but ensemble has only {self.ensemble} critics")
        if self.temperature != "auto" and self.temperature < 0:
            raise ValueError(f"temperature is {self.temperature}; expected auto or a number from 0")
        return self

    def build(self, problem: Problem) -> Algorithm:
        """The algorithm for one problem: in its discrete form where there is one choice per step."""
        if isinstance(problem.action, DiscreteAction):
            return DiscreteSAC(self, problem)
        return SAC(self, problem)

    def build_temperature(self) -> Temperature:
        """The temperature, fixed or learned."""
        if self.temperature != "auto":
            return Temperature(self.temperature, None)
        return Temperature(self.initial_temperature, self.temperature_lr or self.lr)

    def pessimistic(self, values: torch.Tensor, noise: SampledNoise) -> torch.Tensor:
        """The lowest of the values [n, …] over all critics, or over a few that are drawn (REDQ, eq. 2)."""
        if self.target_subset is not None and self.target_subset < self.ensemble:
            values = values[noise.choice(self.ensemble, self.target_subset)]
        return values.amin(0)

    def believed(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the actor believes of the values [n, …], and the share that each critic has in it."""
        if self.actor_objective == "mean":
            return values.mean(0), torch.full_like(values, 1.0 / self.ensemble)
        lowest = values.amin(0)
        share = (values == lowest).to(values.dtype)
        return lowest, share / share.sum(0)


class SAC(SoftLearner):
    """Learns a squashed Gaussian policy that earns much and stays as random as it can afford."""

    def __init__(self, config: SACConfig, problem: Problem) -> None:
        box = bounded_box(problem, "SAC")
        self._scale = ActionScale(box, problem.device)
        self._size = box.size
        self._target_entropy = -float(box.size) if config.target_entropy is None else config.target_entropy
        policies, program = _policies(problem, box)
        self._mean, self._log_std = policies.explore.head.inputs
        super().__init__(config, problem, policies, program, frozen=("epsilon",))

    def advance(self, progress: Progress) -> None:
        """Act at random until learning starts. The share of random actions is a weight of the policy: it travels."""
        with torch.no_grad():
            self.parameters.views["epsilon"].fill_(float(progress.steps <= self._config.learning_starts))

    def _next_value(self, observation: TensorMap) -> torch.Tensor:
        """Of one action that is drawn (eq. 3)."""
        parts = self._accumulation.results(_count(observation), lambda part: self._outputs(observation, part))
        mean, log_std = joined(parts)
        following = TanhGaussianSample.of(mean, log_std, self._noise.normal(*mean.shape))
        values = self.critics.target(observation, following.action)
        return self._config.pessimistic(values, self._noise) - self._temperature.value * following.log_prob

    def _outputs(self, observation: TensorMap, part: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        registers = self._actor(rows_of_all(observation, part))
        return registers[self._mean], registers[self._log_std]

    def _judged(self, action: torch.Tensor) -> torch.Tensor:
        return self._scale.scaled(action)

    def _improve(self, observation: TensorMap) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """One step of the actor; returns its loss, the entropy, and how much of it is more than wanted."""
        count = _count(observation)
        noise = self._noise.normal(count, self._size)
        parts = self._accumulation.gradient(
            self.parameters,
            count,
            lambda part: self._differentiate(rows_of_all(observation, part), rows_of(noise, part), count),
        )
        log_prob, value = joined(parts)
        self._adam.descend()
        entropy = -log_prob.mean()
        return -(self._temperature.value * entropy + value.mean()), entropy, entropy - self._target_entropy

    def _differentiate(
        self, observation: TensorMap, noise: torch.Tensor, count: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add to the actor's gradient what some rows of `count` have in it; returns log-probabilities and values.

        The gradient of α log π(a) − Q(a), with a = tanh(raw) and raw = mean + std · noise, by hand: log π changes with
        raw by 2a, and a by 1 − a².
        """
        alpha, run = self._temperature.value, self._actor.forward(observation)
        mean, log_std = run.registers[self._mean], run.registers[self._log_std]
        sample = TanhGaussianSample.of(mean, log_std, noise)
        action = sample.action
        judgement = self.critics.judge(observation, action)
        value, share = self._config.believed(judgement.values)
        by_raw = (2.0 * alpha * action - judgement.slope(share) * (1.0 - action.square())) / count
        by_log_std = (by_raw * sample.spread - alpha / count) * (log_std == sample.log_std)
        run.backward({self._mean: by_raw, self._log_std: by_log_std})
        return sample.log_prob, value


def _count(observation: TensorMap) -> int:
    return len(next(iter(observation.values())))


def _policies(problem: Problem, box: BoxAction) -> tuple[Policies, Program]:
    """The two policies, and the program to train."""
    builder = ProgramBuilder(problem.observation)
    features = problem.networks.actor.features(builder, "actor", standardize=problem.standardize)
    body = problem.networks.actor.body(builder, features, "actor")
    mean, log_std = (builder.linear(body, box.size, f"actor.{part}") for part in ("mean", "log_std"))
    builder.tensor("epsilon", 1)
    program = without_memory(builder.program())
    bounds = {"log_std_low": LOG_STD_LOW, "log_std_high": LOG_STD_HIGH}
    explore = Head("tanh_gaussian", (mean, log_std), ("epsilon",), settings=bounds)
    exploit = Head("deterministic", (mean,), settings={"squash": "tanh"})
    return Policies(PolicySpec(box, program, explore), PolicySpec(box, program, exploit)), program
