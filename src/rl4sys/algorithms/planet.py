"""PlaNet (arXiv:1811.04551): learns a model of the world from sequences, and plans in its latent space."""

from __future__ import annotations

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms.model_sizes import SIZES, SizeName
from rl4sys.algorithms.world_policies import require_suitable, world_forecast, world_weights
from rl4sys.dynamics import Evidence, Forecast, WorldModel, action_size, evidence
from rl4sys.dynamics.rssm import PREVIOUS_ACTION
from rl4sys.engine import AlgorithmConfig, Policies, Problem, TrainState, Update, register_algorithm
from rl4sys.experience import ArraySpec, Sequences
from rl4sys.networks import OptimizerSettings, truncated_normal
from rl4sys.policy import ActionSpec, BoxAction, Head, PolicySpec, Program, ProgramBuilder
from rl4sys.policy.policy_spec import Setting
from rl4sys.replay import Ratio

_STD, _EPSILON, _PLAN, _NEXT_ACTION = "exploration.std", "exploration.epsilon", "plan", f"{PREVIOUS_ACTION}.next"


@register_algorithm("planet")
class PlaNetConfig(AlgorithmConfig):
    """Model-based; continuous actions with finite bounds; vectors, images or both. Each decision is a search."""

    size: SizeName = "1m"
    """Size of all networks. Larger ones predict better after more data, and take longer per decision and update."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount of predicted rewards per step."""
    lr: float | None = Field(None, gt=0)
    """Learning rate; one that suits the size if not given."""
    batch_size: int = Field(16, ge=1)
    """Sequences per update."""
    sequence_length: int = Field(50, ge=2)
    """Rows of a sequence. Longer ones train a longer memory, and take longer."""
    context: int = Field(1, ge=1)
    """Rows at the start of a sequence that only let the model find its state, unless an episode begins there."""
    updates_per_step: float = Field(0.5, gt=0)
    """Updates for each environment step. More learn more from the same data, and take time."""
    train_frequency: int = Field(1, ge=1)
    """Environment steps (over all environments) between two rounds of updates."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps of uniformly random actions before learning starts; no updates are due for them."""
    free_nats: float = Field(1.0, ge=0)
    """Divergence between inferred and predicted states that costs nothing."""
    dynamics_scale: float = Field(1.0, ge=0)
    """How strongly predicted states are drawn to inferred ones."""
    representation_scale: float = Field(0.1, ge=0)
    """How strongly inferred states are drawn to predicted ones."""
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
    adaptive_clip: float | None = Field(0.3, gt=0)
    """The gradient of each tensor is scaled down to this share of the tensor's norm; null leaves it as it is."""
    warmup_steps: int = Field(1_000, ge=0)
    """Updates over which the learning rate grows from zero."""

    buffers = ("sequences",)
    own_networks = "algorithm.size"

    @model_validator(mode="after")
    def _check(self) -> PlaNetConfig:
        if self.elites > self.candidates:
            raise ValueError(f"elites is {self.elites}, but there are only {self.candidates} candidates")
        return self

    def build(self, problem: Problem) -> PlaNet:
        """The algorithm for one problem."""
        return PlaNet(self, problem)

    def pace(self, buffer_size: int) -> Ratio:
        """A fixed number of updates for each step."""
        return Ratio(self.updates_per_step, self.learning_starts, self.batch_size)

    def steps_between_updates(self, buffer_size: int) -> int:
        """One round of updates."""
        return self.train_frequency

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.batch_size * self.sequence_length

    def own_weights(self, observation: tuple[ArraySpec, ...], action: ActionSpec) -> int:
        """Weights of all networks."""
        return world_weights(SIZES[self.size], observation, action, None, ())

    @property
    def window(self) -> int:
        """Rows of a sequence."""
        return self.sequence_length

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
        action, size = problem.bounded_action("PlaNet"), SIZES[config.size]
        self.config, self.problem = config, problem
        self.model = model = WorldModel(
            problem.observation,
            action_size(problem.action),
            size,
            config.free_nats,
            config.dynamics_scale,
            config.representation_scale,
            1.0,
            None,
        )
        self.policies = _policies(config, model, problem, action)
        self.train_state = state = TrainState(problem, self.policies, config.gamma, memory=True)
        settings = OptimizerSettings(
            config.lr or size.lr, rule="laprop", adaptive_clip=config.adaptive_clip, warmup_steps=config.warmup_steps
        )
        generator, gains = problem.torch_generator("init"), {"reward.out": 0.0}
        self.optimizer = state.optimizer(
            "planet",
            [self.policies.explore.program, Program((), (), model.tensors())],
            settings,
            frozen=(_STD, _EPSILON),
            initialize=lambda parameters: truncated_normal(parameters, gains, generator),
        )
        self.views = self.optimizer.parameters.views
        state.schedule(_STD, lambda progress: config.exploration_std)
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
