"""PlaNet (arXiv:1811.04551): learns a model of the world from sequences, and plans in its latent space."""

from __future__ import annotations

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms.world_model_config import WorldModelConfig
from rl4sys.algorithms.world_policies import require_suitable, world_forecast, world_weights
from rl4sys.dynamics import Evidence, Forecast, WorldModel, evidence
from rl4sys.dynamics.rssm import PREVIOUS_ACTION
from rl4sys.engine import Policies, Problem, TrainState, Update, register_algorithm
from rl4sys.experience import ArraySpec, Sequences
from rl4sys.networks import truncated_normal
from rl4sys.policy import ActionSpec, BoxAction, Head, PolicySpec, Program, ProgramBuilder
from rl4sys.policy.policy_spec import Setting

_STD, _EPSILON, _PLAN, _NEXT_ACTION = "exploration.std", "exploration.epsilon", "plan", f"{PREVIOUS_ACTION}.next"


@register_algorithm("planet")
class PlaNetConfig(WorldModelConfig):
    """Model-based; continuous actions with finite bounds; vectors, images or both. Each decision is a search."""

    gamma: float = Field(1.0, ge=0, le=1)
    """Discount of predicted rewards per step."""
    sequence_length: int = Field(50, ge=2)
    """Rows of a sequence. Longer ones train a longer memory, and take longer."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps of uniformly random actions before learning starts; no updates are due for them."""
    exploration_std: float = Field(0.3, ge=0)
    """Standard deviation of noise on planned actions while training, as a share of half their range."""
    horizon: int = Field(12, ge=1)
    """Steps that are planned ahead. Too few overlook what an action leads to; many add up the errors of the model."""
    iterations: int = Field(10, ge=1)
    """Rounds of the cross-entropy method per decision."""
    candidates: int = Field(1_000, ge=2)
    """Sequences of actions in each round. More find better plans; decisions take as much longer."""
    elites: int = Field(100, ge=2)
    """Best candidates, to which the next round is fitted."""

    schedulable = ("lr", "exploration_std")

    @model_validator(mode="after")
    def _check(self) -> PlaNetConfig:
        if self.elites > self.candidates:
            raise ValueError(f"elites is {self.elites}, but there are only {self.candidates} candidates")
        return self

    def build(self, problem: Problem) -> PlaNet:
        """The algorithm for one problem."""
        return PlaNet(self, problem)

    def own_weights(self, observation: tuple[ArraySpec, ...], action: ActionSpec) -> int:
        """Weights of all networks."""
        return world_weights(self.model_size, observation, action, None, ())

    def search_settings(self, reward: str) -> dict[str, Setting]:
        """Settings of the head that plans; the paper starts from a standard deviation of 1 and has no lower limit."""
        return {
            "reward": reward,
            "next": f"{_PLAN}.next",
            "action": _NEXT_ACTION,
            "horizon": self.horizon,
            "iterations": self.iterations,
            "candidates": self.candidates,
            "elites": self.elites,
            "initial_std": 1.0,
            "min_std": 0.0,
            "momentum": 0.0,
            "discount": self.gamma,
        }


class PlaNet:
    """Trains a world model on recorded sequences; the policy plans with it by the cross-entropy method."""

    def __init__(self, config: PlaNetConfig, problem: Problem) -> None:
        require_suitable(problem, "PlaNet")
        action = problem.bounded_action("PlaNet")
        self.config, self.problem = config, problem
        self.model = model = config.world_model(problem, 1.0, None)
        self.policies = _policies(config, model, problem, action)
        self.train_state = state = TrainState(problem, self.policies, config.gamma, memory=True)
        generator, gains = problem.torch_generator("init"), {"reward.out": 0.0}
        self.optimizer = state.optimizer(
            "planet",
            [self.policies.explore.program, Program((), (), model.tensors())],
            config.optimizer_settings(),
            frozen=(_STD, _EPSILON),
            initialize=lambda parameters: truncated_normal(parameters, gains, generator),
        )
        self.views = self.optimizer.parameters.views
        state.schedule(_STD, lambda progress: state.scheduled("exploration_std", config.exploration_std))
        # Random actions until learning starts.
        state.schedule(_EPSILON, lambda progress: float(progress.steps <= config.learning_starts))

    def update(self, batch: Sequences) -> Update:
        """One step on the loss of the model (eq. 4)."""
        data = evidence(batch, self.problem.action, self.config.context, self.problem.device)
        uniform = self.train_state.random(len(data), self.config.sequence_length, self.model.rssm.groups)
        loss, *found = self.optimizer.minimize(self.loss, data, uniform)
        return Update({"loss": loss, **dict(zip(self.metric_names, found, strict=True))}, {})

    def forecast(self, sequences: Sequences, context: int) -> Forecast:
        """What follows the first `context` rows, given the actions."""
        return world_forecast(self.model, self.views, self.problem, sequences, context)

    def loss(self, data: Evidence, uniform: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The loss, then its parts."""
        understood = self.model.understand(self.views, data, uniform)
        self.metric_names = list(understood.metrics)
        return understood.loss, *understood.metrics.values()


def _policies(config: PlaNetConfig, model: WorldModel, problem: Problem, action: BoxAction) -> Policies:
    """Both filter and plan; one of them acts at random at first, and adds noise."""
    planning = ProgramBuilder((ArraySpec("action", "float32", (action.size,)),))
    imagined = planning.joined(model.rssm.write_imagination(planning, "action"))
    reward = model.reward.write(planning, imagined)
    predicts = planning.program()

    def policy(*exploration: str, draw: bool) -> PolicySpec:
        builder = ProgramBuilder(problem.observation)
        state = model.rssm.write_filter(builder, model.encoder.write(builder), draw=draw)
        builder.remember(PREVIOUS_ACTION, _NEXT_ACTION)
        plan = builder.memory(_PLAN, (config.horizon, action.size), f"{_PLAN}.next")
        for tensor in predicts.tensors:
            builder.tensor(tensor.name, *tensor.shape)
        builder.tensor(_STD, action.size)
        builder.tensor(_EPSILON, 1)
        head = Head("planned", (*state, plan), exploration, settings=config.search_settings(reward))
        return PolicySpec(action, builder.program(), head, predicts)

    return Policies(policy(_STD, _EPSILON, draw=True), policy(draw=False))
