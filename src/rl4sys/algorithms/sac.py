"""Soft actor-critic (arXiv:1812.05905), with ensembles and more updates per step as in REDQ (arXiv:2101.05982)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms.critics import Critics, set_statistics, squared_error
from rl4sys.algorithms.off_policy import (
    ActionScale,
    Moments,
    OffPolicyConfig,
    SampledNoise,
    TensorMap,
    bounded_box,
)
from rl4sys.algorithms.problem import Policies, Problem, Progress, Update, without_memory
from rl4sys.algorithms.registry import Algorithm, register_algorithm
from rl4sys.algorithms.sac_discrete import DiscreteSAC
from rl4sys.algorithms.temperature import FACTS, FixedTemperature, LearnedTemperature
from rl4sys.experience import Array, Transitions
from rl4sys.networks import EnsembleProgram, FlatAdam, Parameters, tanh_gaussian_sample, uniform_fan_in
from rl4sys.policy import BoxAction, DiscreteAction, Head, PolicySpec, Program, ProgramBuilder
from rl4sys.state import State, require

LOG_STD_LOW, LOG_STD_HIGH = -20.0, 2.0


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
    """The entropy that a learned temperature keeps up, of actions scaled to [−1, 1]; minus their size if not given."""
    entropy_fraction: float = Field(0.98, gt=0, lt=1)
    """The same for discrete actions, as a share of the entropy of choosing at random among what is allowed."""
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

    def build_temperature(self, device: torch.device) -> FixedTemperature | LearnedTemperature:
        """The temperature, fixed or learned."""
        if self.temperature != "auto":
            return FixedTemperature(self.temperature, device)
        return LearnedTemperature(self.initial_temperature, self.temperature_lr or self.lr, device)

    def pessimistic(self, values: torch.Tensor, noise: SampledNoise) -> torch.Tensor:
        """The lowest of the values [n, …] over all critics, or over a few that are drawn (REDQ, eq. 2)."""
        if self.target_subset is not None and self.target_subset < self.ensemble:
            values = values[noise.choice(self.ensemble, self.target_subset)]
        return values.amin(0)

    def believed(self, values: torch.Tensor) -> torch.Tensor:
        """What the actor believes of the values [n, …]."""
        return values.amin(0) if self.actor_objective == "min" else values.mean(0)


class SAC:
    """Learns a squashed Gaussian policy that earns much and stays as random as it can afford."""

    def __init__(self, config: SACConfig, problem: Problem) -> None:
        box = bounded_box(problem, "SAC")
        self._config, self._problem = config, problem
        self._scale = ActionScale(box, problem.device)
        self._target_entropy = -float(box.size) if config.target_entropy is None else config.target_entropy
        self._updates = 0
        self._noise = SampledNoise(problem)
        self.policies, program = _policies(problem, box)
        self._mean, self._log_std = self.policies.explore.head.inputs
        self.parameters = Parameters(program.tensors, problem.device)
        self.parameters.freeze("epsilon", *(n for n in self.parameters.views if n.endswith((".mean", ".scale"))))
        uniform_fan_in(self.parameters, problem.torch_generator("init"))
        self._actor = EnsembleProgram(program, self.parameters.views)
        self._adam = FlatAdam(self.parameters, lr=config.lr, epsilon=1e-8, max_norm=config.max_grad_norm)
        self.critics = Critics(problem, config, config.ensemble)
        self._temperature = config.build_temperature(problem.device)
        self._actor_facts = torch.zeros(2)
        self.advance(Progress())

    def advance(self, progress: Progress) -> None:
        """Act at random until learning starts. The share of random actions is a weight of the policy: it travels."""
        with torch.no_grad():
            self.parameters.views["epsilon"].fill_(float(progress.steps <= self._config.learning_starts))

    def update(self, batch: Transitions) -> Update:
        """One step of critics, actor and temperature (eq. 5, 7 and 18)."""
        config, alpha = self._config, self._temperature.value
        moments = Moments.of(batch, config.gamma, self._problem.device)
        with torch.no_grad():
            next_action, next_log_prob = self._sample(moments.next_observation, len(batch))
            next_value = config.pessimistic(self.critics.target(moments.next_observation, next_action), self._noise)
            target = moments.reward + moments.bootstrap * (next_value - alpha * next_log_prob)
        value = self.critics.values(moments.observation, self._scale.scaled(moments.action))
        critic_loss = squared_error(value, target, moments.weight)
        self.critics.descend(critic_loss)
        self._updates += 1
        if self._updates % config.policy_delay == 0:
            self._actor_facts = self._improve(moments.observation, len(batch))
        self.critics.follow()
        value = value.detach()
        facts = torch.stack([critic_loss.detach(), value.mean(), alpha])
        metrics = dict(zip(FACTS, torch.cat([facts, self._actor_facts]).tolist(), strict=True))
        return Update(metrics, {"priority": (value - target).abs().mean(0).cpu().numpy()})

    def _improve(self, observation: TensorMap, count: int) -> torch.Tensor:
        """One step of the actor, then of the temperature; returns the actor's loss and the entropy."""
        action, log_prob = self._sample(observation, count)
        value = self._config.believed(self.critics.judge(observation, action))
        loss = (self._temperature.value * log_prob - value).mean()
        self._adam.step(loss)
        entropy = -log_prob.detach().mean()
        self._temperature.adapt(entropy - self._target_entropy)
        return torch.stack([loss.detach(), entropy])

    def _sample(self, observation: TensorMap, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Actions in [−1, 1] with their log-densities there: the target entropy must not depend on units."""
        registers = self._actor(observation)
        mean, log_std = registers[self._mean], registers[self._log_std].clamp(LOG_STD_LOW, LOG_STD_HIGH)
        return tanh_gaussian_sample(mean, log_std, self._noise.normal(count, mean.shape[1]))

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, everywhere."""
        set_statistics(self.parameters, name, mean, scale)
        self.critics.standardize(name, mean, scale)

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy; the critics stay here."""
        return self.parameters.flat.cpu().numpy()

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {
            "updates": self._updates,
            "actor_facts": self._actor_facts.tolist(),
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
            "critics": self.critics.state(),
            "temperature": self._temperature.state(),
            "noise": self._noise.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "updates", "actor_facts", "parameters", "adam", "critics", "temperature", "noise")
        self._updates = state["updates"]
        self._actor_facts = torch.tensor(state["actor_facts"])
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._adam.restore(state["adam"])
        self.critics.restore(state["critics"])
        self._temperature.restore(state["temperature"])
        self._noise.restore(state["noise"])


def _policies(problem: Problem, box: BoxAction) -> tuple[Policies, Program]:
    """The two policies, and the program to train."""
    builder = ProgramBuilder(problem.observation)
    features = builder.features(standardize=problem.standardize)
    body = problem.networks.actor.body(builder, features, "actor")
    mean, log_std = (builder.linear(body, box.size, f"actor.{part}") for part in ("mean", "log_std"))
    builder.tensor("epsilon", 1)
    program = without_memory(builder.program())
    bounds = {"log_std_low": LOG_STD_LOW, "log_std_high": LOG_STD_HIGH}
    explore = Head("tanh_gaussian", (mean, log_std), ("epsilon",), settings=bounds)
    exploit = Head("deterministic", (mean,), settings={"squash": "tanh"})
    return Policies(PolicySpec(box, program, explore), PolicySpec(box, program, exploit)), program
