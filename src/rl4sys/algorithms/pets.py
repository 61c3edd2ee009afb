"""Probabilistic ensembles with trajectory sampling (arXiv:1805.12114): learns a model, and plans with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, model_validator

from rl4sys.dynamics import (
    DYNAMICS,
    STATISTICS,
    DynamicsConfig,
    EnsembleConfig,
    Forecast,
    OneStepConfig,
    OneStepModel,
    OneStepTargets,
    Standardization,
    flat_state,
)
from rl4sys.engine import (
    AlgorithmConfig,
    Policies,
    Problem,
    TensorBatch,
    TrainState,
    Update,
    UpdateWork,
    register_algorithm,
)
from rl4sys.experience import ArraySpec, Sequences
from rl4sys.networks import NetworksConfig, OptimizerSettings, UnsuitableNetwork
from rl4sys.policy import ActionSpec, BoxAction, Head, Memory, PolicySpec, Program, layout_of, output_size
from rl4sys.policy.action_encoding import action_encoder
from rl4sys.policy.planned_head import MAX_PLANNED_STEPS
from rl4sys.policy.policy_spec import Setting
from rl4sys.replay import Ratio

_STD, _EPSILON, _PLAN = "exploration.std", "exploration.epsilon", "plan"


@register_algorithm("pets")
class PETSConfig(AlgorithmConfig):
    """Model-based; continuous actions with finite bounds. Needs few steps, and much computation for each decision."""

    gamma: float = Field(1.0, ge=0, le=1)
    """Discount of predicted rewards per step."""
    dynamics: Annotated[DynamicsConfig, DYNAMICS] = EnsembleConfig()
    """The model: deterministic, gaussian or ensemble."""
    propagation: Literal["mean", "sample"] = "mean"
    """Whether each member predicts the mean of the next state, or draws it. Draws account for a noisy environment."""
    lr: float = Field(2e-3, gt=0)
    """Learning rate of the model."""
    batch_size: int = Field(64, ge=1)
    """Transitions per update and member."""
    updates_per_step: float = Field(1.0, gt=0)
    """Updates of the model for each environment step. More fit it better to the same data, and take time."""
    train_frequency: int = Field(25, ge=1)
    """Environment steps (over all environments) between two rounds of updates; decisions use the last round's model."""
    learning_starts: int = Field(200, ge=0)
    """Steps of uniformly random actions before learning starts; no updates are due for them."""
    exploration_std: float = Field(0.0, ge=0)
    """Standard deviation of noise on planned actions while training, as a share of half their range."""
    horizon: int = Field(20, ge=1)
    """Steps that are planned ahead. Too few overlook what an action leads to; many add up the errors of the model."""
    iterations: int = Field(3, ge=1)
    """Rounds of the cross-entropy method per decision."""
    candidates: int = Field(100, ge=2)
    """Sequences of actions in each round. More find better plans; decisions take as much longer."""
    elites: int = Field(10, ge=2)
    """Best candidates, to which the next round is fitted."""
    initial_std: float = Field(0.5, gt=0)
    """Standard deviation of the first round, as a share of half the range of actions."""
    min_std: float = Field(0.05, ge=0)
    """The least standard deviation of later rounds."""
    momentum: float = Field(0.1, ge=0, lt=1)
    """Share of the last round's distribution that the next one keeps."""

    buffers = ("uniform",)
    schedulable = ("lr", "exploration_std")

    @model_validator(mode="after")
    def _check(self) -> PETSConfig:
        if not isinstance(self.dynamics, OneStepConfig):
            raise ValueError(
                f"dynamics is of type {DYNAMICS.name_of(self.dynamics)}, and pets plans with models of single steps: "
                f"deterministic, gaussian or ensemble. For an rssm use algorithm.name=planet or dreamer"
            )
        if self.propagation == "sample" and self.dynamics.std_bounds is None:
            raise ValueError(
                "propagation is sample, which a deterministic model cannot do; use mean, or type: gaussian"
            )
        if self.elites > self.candidates:
            raise ValueError(f"elites is {self.elites}, but there are only {self.candidates} candidates")
        steps = self.horizon * self.iterations * self.candidates
        if steps > MAX_PLANNED_STEPS:
            raise ValueError(
                f"horizon · iterations · candidates is {steps:,}; a decision may predict {MAX_PLANNED_STEPS:,} steps "
                f"at most"
            )
        return self

    def build(self, problem: Problem) -> PETS:
        """The algorithm for one problem."""
        return PETS(self, problem)

    def pace(self, buffer_size: int) -> Ratio:
        """Each member learns from transitions of its own."""
        return Ratio(self.updates_per_step, self.learning_starts, self.batch_size * self.one_step.members)

    def steps_between_updates(self, buffer_size: int) -> int:
        """One round of updates."""
        return self.train_frequency

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.batch_size

    def work(self, buffer_size: int) -> UpdateWork:
        """With all members."""
        return UpdateWork(self.updates_per_step, critics=self.one_step.members)

    def own_weights(self, observation: tuple[ArraySpec, ...], action: ActionSpec) -> int:
        """Those of all members."""
        program, _ = OneStepModel(self.one_step, observation, output_size(action)).training()
        return self.one_step.members * layout_of(program).size

    @property
    def one_step(self) -> OneStepConfig:
        """The model, whose type was checked."""
        assert isinstance(self.dynamics, OneStepConfig)
        return self.dynamics

    def search_settings(self, reward: str) -> dict[str, Setting]:
        """Settings of the head that plans."""
        return {
            "reward": reward,
            "next": f"{_PLAN}.next",
            "horizon": self.horizon,
            "iterations": self.iterations,
            "candidates": self.candidates,
            "elites": self.elites,
            "initial_std": self.initial_std,
            "min_std": self.min_std,
            "momentum": self.momentum,
            "discount": self.gamma,
        }


class PETS:
    """Learns an ensemble of one-step models; the policy plans with it by the cross-entropy method."""

    def __init__(self, config: PETSConfig, problem: Problem) -> None:
        action = _require_suitable(problem)
        self.config = config
        self.members = config.one_step.members
        self.observation, self._encode_action = problem.observation, action_encoder(action)
        self.dynamics = OneStepModel(config.one_step, problem.observation, action.size)
        program, outputs = self.dynamics.training((_STD, action.size), (_EPSILON, 1))
        self.policies = _policies(config, self.dynamics, program, action)
        self.train_state = state = TrainState(problem, self.policies, config.gamma)
        shared = (*STATISTICS, _STD, _EPSILON)
        settings, members = OptimizerSettings(config.lr), self.members if self.members > 1 else None
        self.model = state.network(
            "model", program, outputs, settings, members=members, shared=shared, extra_inputs=("action",)
        )
        self.standardization = Standardization(self.model.optimizer.parameters)
        state.schedule(_STD, lambda progress: state.scheduled("exploration_std", config.exploration_std))
        # Random actions until learning starts.
        state.schedule(_EPSILON, lambda progress: float(progress.steps <= config.learning_starts))

    def update(self, batch: TensorBatch) -> Update:
        """One step of every member, on transitions of its own (algorithm 1, line 5)."""
        state, following = (flat_state(seen, self.observation) for seen in (batch.observation, batch.next_observation))
        reward = batch.reward.unsqueeze(1)
        statistics = self.standardization
        statistics.observe(self.model.optimizer.steps, state, following - state, reward)
        rows = (
            statistics.standardized("state", state),
            batch.action,
            statistics.standardized("delta", following - state),
            statistics.standardized("reward", reward),
        )
        loss, error = self.model.minimize(self.model_loss, *map(self.by_member, rows))
        return Update({"model_loss": loss, "model_error": error, "reward": reward.mean()}, {})

    def model_loss(
        self, state: torch.Tensor, action: torch.Tensor, delta: torch.Tensor, reward: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Mean over members of their losses (eq. 1), and the root of their mean squared standardized error."""
        state, action, delta, reward = (rows.transpose(0, 1) for rows in (state, action, delta, reward))
        targets = OneStepTargets(delta, reward)
        outputs = self.predictions(state, action)
        losses = self.dynamics.losses(outputs, targets)
        error = torch.cat(outputs[:2], -1).detach() - torch.cat(targets, -1)
        return losses.sum(), error.square().mean().sqrt()

    def predictions(self, state: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Standardized changes, rewards and, if Gaussian, their deviations: [members, B, n], from such inputs."""
        if self.members > 1:
            outputs: tuple[torch.Tensor, ...] = self.model({"state": state}, action)
            return outputs
        return tuple(output.unsqueeze(0) for output in self.model({"state": state[0]}, action[0]))

    def forecast(self, sequences: Sequences, context: int) -> Forecast:
        """What follows the first `context` rows, given the actions; only the last of these rows counts here."""
        rows = {name: torch.from_numpy(array[:, context - 1]) for name, array in sequences.observation.items()}
        actions = np.zeros(sequences.action[:, context - 1 : -1].shape, np.float32)
        self._encode_action(sequences.action[:, context - 1 : -1], actions)
        with torch.no_grad():
            state = flat_state(rows, self.observation)
            return self.dynamics.forecast(self.predictions, self.standardization, state, torch.from_numpy(actions))

    def by_member(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows [B · members, n] as [B, members, n]."""
        return rows.reshape(-1, self.members, rows.shape[-1])


def _policies(config: PETSConfig, dynamics: OneStepModel, training: Program, action: BoxAction) -> Policies:
    """Both plan; one of them acts at random at first, and adds noise."""
    program, state = dynamics.acting(training, (_STD, _EPSILON))
    model, reward = dynamics.planning(sample=config.propagation == "sample")
    settings = config.search_settings(reward)
    plan = Memory(_PLAN, (config.horizon, action.size), f"{_PLAN}.next")
    inputs = (*(state,) * config.one_step.members, _PLAN)
    program = replace(program, carry=(plan,))
    explore = Head("planned", inputs, (_STD, _EPSILON), settings=settings)
    exploit = Head("planned", inputs, settings=settings)
    return Policies(PolicySpec(action, program, explore, model), PolicySpec(action, program, exploit, model))


def _require_suitable(problem: Problem) -> BoxAction:
    """The action, if the problem is one for a model of flat observations."""
    action = problem.bounded_action("PETS")
    if problem.networks != NetworksConfig():
        raise UnsuitableNetwork("pets has its own networks: set algorithm.dynamics, and leave out network.")
    if problem.standardize:
        raise UnsuitableNetwork("pets standardizes observations by itself: set environment.normalize_obs=false.")
    if problem.mask is not None:
        raise UnsuitableNetwork("pets cannot predict which actions are allowed. Use algorithm.name=ppo.")
    images = [spec.name for spec in problem.observation if spec.dtype == "uint8" and len(spec.shape) == 3]
    if images:
        raise UnsuitableNetwork(
            f"pets predicts numbers, and the observation '{images[0]}' is an image. Use numbers, or another algorithm."
        )
    return action
