"""Settings and critics that the actor-critic algorithms with replay share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rl4sys.engine import AlgorithmConfig, Problem, TrainState
from rl4sys.experience import ArraySpec
from rl4sys.networks import Network, OptimizerSettings
from rl4sys.policy import BoxAction, DiscreteAction, ProgramBuilder
from rl4sys.replay import Ratio

_ACTION = "critic.action"
_AFTER_MEMORY = 64
"""Units of the layer that joins what is remembered with an action."""


class OffPolicyConfig(AlgorithmConfig):
    """Settings of algorithms that train an actor and critics from replay."""

    lr: float = Field(3e-4, gt=0)
    """Learning rate of the actor. Higher learns faster and is less stable."""
    critic_lr: float | None = Field(None, gt=0)
    """Learning rate of the critics; that of the actor if not given."""
    batch_size: int = Field(256, ge=1)
    """Transitions per update; with memory, steps in all sequences together. More give less noisy gradients and slower
    updates."""
    updates_per_step: float = Field(1.0, gt=0)
    """Updates for each environment step, over all environments. More learn more from the same data, and take time."""
    train_frequency: int = Field(1, ge=1)
    """Environment steps (over all environments) between two rounds of updates."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps of uniformly random actions before learning starts; no updates are due for them."""
    polyak: float = Field(0.005, gt=0, le=1)
    """Share of the networks in their targets after each update. More updates targets faster, and less stably."""
    n_step: int = Field(1, ge=1)
    """Rewards summed before bootstrapping. More propagate rewards faster, with more variance and off-policy bias."""
    max_grad_norm: float | None = Field(None, gt=0)
    """If set, longer gradients are scaled down to this norm."""

    buffers = ("uniform", "prioritized", "hindsight")
    schedulable: ClassVar[tuple[str, ...]] = ("lr", "critic_lr")

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

    def actor_settings(self) -> OptimizerSettings:
        """How the actor is trained."""
        return OptimizerSettings(self.lr, max_grad_norm=self.max_grad_norm)

    def critic_settings(self) -> OptimizerSettings:
        """How the critics are trained."""
        return OptimizerSettings(self.critic_lr or self.lr, max_grad_norm=self.max_grad_norm, lr_setting="critic_lr")

    def critics(self, state: TrainState, problem: Problem, members: int, quantiles: int = 1) -> Network:
        """`members` critics with target networks.

        For continuous actions they take an observation and an action: [n, B]. For discrete ones they give a value for
        each action: [n, B, k]. With several `quantiles` of the value of a continuous action
        they give all of them: [n, B, q].
        """
        builder = ProgramBuilder(problem.observation)
        inputs = (
            [ArraySpec(_ACTION, "float32", (problem.action.size,))] if isinstance(problem.action, BoxAction) else []
        )
        outputs = problem.action.n if isinstance(problem.action, DiscreteAction) else quantiles
        body = _critic_body(builder, problem, inputs)
        value = problem.networks.critic.scores(builder, body, outputs, "critic.value")
        return state.network(
            "critics",
            builder.program(),
            [value],
            self.critic_settings(),
            members=members,
            extra_inputs=[spec.name for spec in inputs],
            target=True,
            squeeze=bool(inputs) and quantiles == 1,
            fused=True,
        )


def _critic_body(builder: ProgramBuilder, problem: Problem, inputs: list[ArraySpec]) -> str:
    """The critic up to its last hidden layer.

    An action is joined after the memory, and one more layer follows: what is remembered must depend on what was seen,
    and not on the action whose value is asked for (as in arXiv:2110.05038).
    """
    if not inputs or not problem.networks.critic.has_memory:
        return problem.critic_body(builder, *inputs)
    joined = builder.joined([problem.critic_body(builder), *map(builder.input, inputs)])
    return builder.activation(builder.linear(joined, _AFTER_MEMORY, "critic.joined"), "relu")
