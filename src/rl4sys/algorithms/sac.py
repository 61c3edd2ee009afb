"""Soft actor-critic (arXiv:1812.05905), with ensembles and more updates per step as in REDQ (arXiv:2101.05982)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms.off_policy import OffPolicyConfig
from rl4sys.algorithms.sac_discrete import DiscreteSAC
from rl4sys.engine import (
    Algorithm,
    Horizon,
    ImitationConfig,
    IncumbentRows,
    Policies,
    Problem,
    Progress,
    SequencePlan,
    TensorBatch,
    TrainState,
    Update,
    UpdateWork,
    fit_actor_and_critics,
    horizon_seconds,
    register_algorithm,
)
from rl4sys.experience import Sequences
from rl4sys.networks import (
    LOG_STD_HIGH,
    LOG_STD_LOW,
    NetworksConfig,
    OptimizerSettings,
    TensorMap,
    TrainedScalar,
    gaussian,
    squared_error,
    tanh_gaussian,
)
from rl4sys.policy import BoxAction, DiscreteAction, Head, Program, ProgramBuilder

_LARGEST_ACTION = 0.999
"""Actions nearer to their bounds are imitated as this one: those at the bounds are infinite before tanh."""


@register_algorithm("sac")
class SACConfig(OffPolicyConfig):
    """Off-policy, maximum entropy; continuous actions with finite bounds, or one discrete action."""

    temperature: float | Literal["auto"] = "auto"
    """Weight of the entropy, in units of reward: a number fixes it, `auto` learns it."""
    initial_temperature: float = Field(1.0, gt=0)
    """Where a learned temperature starts."""
    temperature_lr: float | None = Field(None, gt=0)
    """Learning rate of the temperature; that of the actor if not given."""
    target_entropy: float | None = None
    """The entropy, in nats, that a learned temperature aims at. If not given, it is minus the size of an action
    (scaled to [−1, 1]), and for discrete actions it follows from `entropy_fraction`."""
    entropy_fraction: float = Field(0.98, gt=0, lt=1)
    """For discrete actions: the target as a share of the entropy of a uniform choice among the allowed actions."""
    ensemble: int = Field(2, ge=1)
    """Number of critics. More give better estimates and slower updates."""
    target_subset: int | None = Field(None, ge=1)
    """Critics, drawn for each update, whose minimum makes the target; all if not given. REDQ takes 2 of 10."""
    actor_objective: Literal["min", "mean"] = "min"
    """Whether the actor maximises the minimum over the critics (the paper) or their mean (REDQ)."""
    policy_delay: int = Field(1, ge=1)
    """Updates of the critics per update of the actor and the temperature. REDQ uses `updates_per_step`."""
    sequence_length: int = Field(32, ge=2)
    """With memory: steps of each sequence that is learned from. Longer ones learn to remember for longer."""
    burn_in: int = Field(8, ge=0)
    """With memory: steps before these that only fill the memory, which starts empty (R2D2, ICLR 2019)."""

    horizon: Horizon = None
    """Discount by elapsed time instead of by `gamma`, such as `30s`: what follows dt seconds later is worth
    exp(−dt / horizon). A longer one looks further ahead. Clients pass `now` to `act`, environments to `info`."""

    imitates = True
    schedulable = ("lr", "critic_lr", "temperature_lr", "temperature", "target_entropy")

    @model_validator(mode="after")
    def _check(self) -> SACConfig:
        if self.target_subset is not None and self.target_subset > self.ensemble:
            raise ValueError(f"target_subset is {self.target_subset}, but ensemble has only {self.ensemble} critics")
        if self.temperature != "auto" and self.temperature < 0:
            raise ValueError(f"temperature is {self.temperature}; expected auto or a number from 0")
        if self.temperature == "auto" and "temperature" in self.schedules:
            raise ValueError("temperature is auto, so it is learned; schedule target_entropy, or set a number")
        return self

    @property
    def critic_quantiles(self) -> int:
        """Outputs of each critic: one, the mean, unless it learns a distribution."""
        return 1

    def work(self, buffer_size: int) -> UpdateWork:
        """With all critics."""
        return UpdateWork(self.updates_per_step, critics=self.ensemble)

    @classmethod
    def replays_sequences(cls, networks: NetworksConfig) -> bool:
        """If the actor or the critics have memory."""
        return networks.actor.has_memory or networks.critic.has_memory

    def sequence_plan(self) -> SequencePlan:
        """Burn-in, the steps to learn from, and those until the value of the last one."""
        return SequencePlan(self.burn_in, self.sequence_length, self.n_step)

    def train_state(self, problem: Problem, policies: Policies) -> TrainState:
        """The state of either form."""
        plan = self.sequence_plan() if self.replays_sequences(problem.networks) else None
        return TrainState(problem, policies, self.step_gamma, sequences=plan)

    @property
    def horizon_seconds(self) -> float | None:
        """That of `horizon`."""
        return horizon_seconds(self.horizon)

    def starts_randomly(self, progress: Progress) -> bool:
        """Whether actions are uniformly random at this point; never where the policy starts by imitation."""
        return self.imitate is None and progress.steps <= self.learning_starts

    def build(self, problem: Problem) -> Algorithm:
        """The algorithm for one problem: in its discrete form where an action is one choice."""
        if isinstance(problem.action, DiscreteAction):
            return DiscreteSAC(self, problem)
        return SAC(self, problem)

    def log_alpha(self, state: TrainState) -> TrainedScalar:
        """The logarithm of the temperature, trained or constant."""
        if self.temperature == "auto":
            settings = OptimizerSettings(self.temperature_lr or self.lr, lr_setting="temperature_lr")
            return state.scalar("log_alpha", math.log(self.initial_temperature), settings)
        return state.scalar("log_alpha", math.log(self.temperature) if self.temperature else -math.inf, None)


class SAC:
    """Learns a squashed Gaussian policy that maximises return and entropy."""

    def __init__(self, config: SACConfig, problem: Problem) -> None:
        action = problem.bounded_action("SAC")
        self.config, self.size = config, action.size
        self.policies, program = _policies(problem, action)
        self.train_state = state = config.train_state(problem, self.policies)
        outputs = self.policies.explore.head.inputs
        self.actor = state.network("actor", program, outputs, config.actor_settings(), frozen=("epsilon",), fused=True)
        self.critics = config.critics(state, problem, config.ensemble, config.critic_quantiles)
        self.log_alpha = config.log_alpha(state)
        self.target_entropy = -float(action.size) if config.target_entropy is None else config.target_entropy
        # Random actions until learning starts.
        state.schedule("epsilon", lambda progress: float(config.starts_randomly(progress)))

    def update(self, batch: TensorBatch) -> Update:
        """One step of critics, actor and temperature (eq. 5, 7 and 18)."""
        config, state, alpha = self.config, self.train_state, self.alpha()
        with torch.no_grad():
            noise = state.normal(*batch.reward.shape, self.size)
            mean, log_std = batch.next_outputs(self.actor)
            next_action, next_log_prob = tanh_gaussian(mean, log_std, noise)
            next_q = batch.next_target_outputs(self.critics, next_action, *self.beside_action(len(next_action)))
            if config.target_subset is not None:
                next_q = next_q[state.permutation(config.ensemble)[: config.target_subset]]
            target = self.soft_target(batch, next_q, alpha * next_log_prob)
        critic_loss, q, error = self.critics.minimize(self.critic_loss, batch, target)
        metrics = {"critic_loss": critic_loss, "q": q.mean(), "temperature": alpha}
        if self.critics.optimizer.steps % config.policy_delay == 0:
            noise = state.normal(*batch.reward.shape, self.size)
            actor_loss, log_prob = self.actor.minimize(self.actor_loss, batch, noise)
            metrics |= {"actor_loss": actor_loss, "entropy": -log_prob.mean()}
            if config.temperature == "auto":
                self.log_alpha.minimize(self.temperature_loss, log_prob)
        self.critics.polyak_update(config.polyak)
        return Update(metrics, batch.feedback(error.abs().mean(0)))

    def soft_target(self, batch: TensorBatch, next_q: torch.Tensor, entropy_cost: torch.Tensor) -> torch.Tensor:
        """y = r + γ d (min Q̄(s′, a′) − α log π(a′ | s′)) (eq. 3 and 5)."""
        return batch.reward + batch.discount * batch.at_next(next_q.amin(0) - entropy_cost)

    def alpha(self) -> torch.Tensor:
        """The temperature."""
        return self.train_state.scheduled("temperature", self.log_alpha.value.exp())

    def critic_loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[½ (Q(s, a) − y)²], summed over critics (eq. 5)."""
        beside = self.beside_action(len(batch.action))
        q, target = batch.rows(batch.outputs(self.critics, batch.action, *beside)), batch.rows(target)
        return squared_error(q, target, batch.weight), q, q.detach() - target

    def actor_loss(self, batch: TensorBatch, noise: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[α log π(a | s) − Q(s, a)] with reparameterised actions a (eq. 7)."""
        mean, log_std = batch.outputs(self.actor)
        action, log_prob = tanh_gaussian(mean, log_std, noise)
        beside = self.beside_action(len(action))
        q, log_prob = batch.rows(batch.outputs(self.critics, action, *beside)), batch.rows(log_prob)
        value = self.actor_value(q)
        return (self.alpha() * log_prob - value).mean(), log_prob

    def beside_action(self, rows: int) -> tuple[torch.Tensor, ...]:
        """What the critics read beside an observation and an action: nothing."""
        return ()

    def actor_value(self, q: torch.Tensor) -> torch.Tensor:
        """What the actor maximises, from the values of all critics."""
        return q.amin(0) if self.config.actor_objective == "min" else q.mean(0)

    def imitate(self, batch: Sequences, plan: ImitationConfig) -> Update:
        """Fit the actor to decisions of the incumbent, and the critics to the λ-returns that followed them."""
        rows = self.train_state.incumbent_rows(batch, plan, self.value)
        return fit_actor_and_critics(rows, plan, self.actor, self.critics, self.imitation_loss, self.return_loss)

    def value(self, observation: TensorMap) -> torch.Tensor:
        """min Q(s, tanh(mean)) over the critics."""
        q: torch.Tensor = self.critics(observation, torch.tanh(self.actor(observation)[0])).amin(0)
        return q

    def imitation_loss(self, batch: IncumbentRows, floor: float) -> torch.Tensor:
        """−E[log density of artanh(a)] under the Gaussian before tanh, its standard deviation at least the floor."""
        mean, log_std = self.actor(batch.observation)
        lowest = max(LOG_STD_LOW, math.log(floor)) if floor else LOG_STD_LOW
        raw = torch.atanh(batch.action.clamp(-_LARGEST_ACTION, _LARGEST_ACTION))
        return -gaussian(mean, log_std.clamp(lowest, LOG_STD_HIGH), raw).log_prob.mean()

    def return_loss(self, batch: IncumbentRows) -> torch.Tensor:
        """E[½ (Q(s, a) − R)²], summed over critics."""
        return squared_error(
            self.critics(batch.observation, batch.action), batch.returns, torch.ones_like(batch.returns)
        )

    def temperature_loss(self, log_prob: torch.Tensor) -> torch.Tensor:
        """E[−log α (log π(a | s) + target entropy)] (eq. 18, by the logarithm of α)."""
        target_entropy = self.train_state.scheduled("target_entropy", self.target_entropy)
        return -(self.log_alpha.value * (log_prob + target_entropy)).mean()


def _policies(problem: Problem, action: BoxAction) -> tuple[Policies, Program]:
    """The two policies, and the program to train."""
    builder = ProgramBuilder(problem.observation)
    body = problem.actor_body(builder)
    mean, log_std = (builder.linear(body, action.size, f"actor.{part}") for part in ("mean", "log_std"))
    builder.tensor("epsilon", 1)
    program = builder.program()
    bounds = {"log_std_low": LOG_STD_LOW, "log_std_high": LOG_STD_HIGH}
    explore = Head("tanh_gaussian", (mean, log_std), ("epsilon",), settings=bounds)
    exploit = Head("deterministic", (mean,), settings={"squash": "tanh"})
    return Policies.over(action, program, explore, exploit), program
