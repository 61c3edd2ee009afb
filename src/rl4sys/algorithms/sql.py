"""Soft Q-learning (arXiv:1702.08165) with amortised Stein variational gradient descent (arXiv:1608.04471)."""

from __future__ import annotations

import math

import torch
from pydantic import Field

from rl4sys.algorithms.off_policy import OffPolicyConfig
from rl4sys.engine import Policies, Problem, TensorBatch, TrainState, Update, UpdateWork, register_algorithm
from rl4sys.networks import TensorMap, squared_error
from rl4sys.policy import BoxAction, Head, Program, ProgramBuilder
from rl4sys.policy.policy_spec import Setting

_NOISE, _EPSILON = "actor.noise", "epsilon"
_NARROWEST = 1e-6
"""The least bandwidth, for particles that coincide."""


@register_algorithm("sql")
class SQLConfig(OffPolicyConfig):
    """Off-policy, maximum entropy, with policies of any shape; continuous actions with finite bounds."""

    reward_scale: float = Field(1.0, gt=0)
    """Weight of rewards relative to entropy: the inverse of the temperature. Larger is greedier."""
    value_samples: int = Field(32, ge=1)
    """Uniform actions that estimate the value of a state. More estimate better, above all in many dimensions."""
    fixed_particles: int = Field(16, ge=1)
    """Actions per observation at which the gradient of Q is taken. More see more modes of the distribution."""
    updated_particles: int = Field(16, ge=1)
    """Actions per observation that are moved towards the distribution, and the sampler with them."""
    noise_size: int | None = Field(None, ge=1, le=4096)
    """Size of the noise vector that the sampler turns into an action; the size of the action if not given."""
    ensemble: int = Field(2, ge=1)
    """Critics whose minimum counts. The paper has one."""

    schedulable = ("lr", "critic_lr", "reward_scale")

    def work(self, buffer_size: int) -> UpdateWork:
        """With all critics."""
        return UpdateWork(self.updates_per_step, critics=self.ensemble)

    def build(self, problem: Problem) -> SQL:
        """The algorithm for one problem."""
        return SQL(self, problem)


class SQL:
    """Learns soft Q-values, and a network that turns noise into samples of exp Q."""

    def __init__(self, config: SQLConfig, problem: Problem) -> None:
        action = problem.bounded_action("SQL")
        self.config, self.size = config, action.size
        self.noise_size = config.noise_size or action.size
        self.policies, program = _policies(problem, action, self.noise_size)
        self.train_state = state = TrainState(problem, self.policies, config.gamma)
        self.sampler = state.network(
            "actor",
            program,
            self.policies.explore.head.inputs,
            config.actor_settings(),
            frozen=(_EPSILON,),
            extra_inputs=(_NOISE,),
            fused=True,
        )
        self.critics = config.critics(state, problem, config.ensemble)
        # Random actions until learning starts.
        state.schedule(_EPSILON, lambda progress: float(progress.steps <= config.learning_starts))

    def update(self, batch: TensorBatch) -> Update:
        """One step of the critics, then of the sampler; then the targets (algorithm 1)."""
        config, state, rows = self.config, self.train_state, len(batch.reward)
        with torch.no_grad():
            next_value = self.soft_value(batch.next_observation)
            scale = state.scheduled("reward_scale", config.reward_scale)
            target = scale * batch.reward + batch.discount * next_value
        critic_loss, q, error = self.critics.minimize(self.critic_loss, batch, target)
        fixed, updated = (
            state.normal(rows * particles, self.noise_size).view(rows, particles, -1)
            for particles in (config.fixed_particles, config.updated_particles)
        )
        _, squared_step = self.sampler.minimize(self.sampler_loss, batch, fixed, updated)
        self.critics.polyak_update(config.polyak)
        metrics = {"critic_loss": critic_loss, "q": q.mean(), "soft_value": next_value.mean()}
        return Update(metrics | {"stein": squared_step.mean().sqrt()}, {"priority": error.abs().mean(0)})

    def soft_value(self, observation: TensorMap) -> torch.Tensor:
        """V = log ∫ exp Q da [B], estimated with uniform actions, whose density is 2⁻ᵈ (eq. 10)."""
        count = self.config.value_samples
        repeated = _repeated(observation, count)
        rows = len(next(iter(repeated.values())))
        q = self.critics.target(repeated, self.train_state.uniform(rows, self.size)).amin(0)
        return torch.logsumexp(q.view(-1, count), 1) + (self.size * math.log(2.0) - math.log(count))

    def critic_loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[½ (Q(s, a) − y)²], summed over critics (eq. 11)."""
        q = self.critics(batch.observation, batch.action)
        return squared_error(q, target, batch.weight), q, q.detach() - target

    def sampler_loss(
        self, batch: TensorBatch, fixed_noise: torch.Tensor, updated_noise: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """−E[a · φ(a)]: its gradient moves the sampled particles a along the Stein direction φ (eq. 13 and 14)."""
        fixed, score = self.scored_particles(batch.observation, fixed_noise)
        updated = self.sampled(batch.observation, updated_noise)
        with torch.no_grad():
            direction = stein_direction(fixed, score, updated)
        loss = -(updated * direction).sum(-1).mean()
        return loss, direction.square().sum(-1).mean(-1)

    def scored_particles(self, observation: TensorMap, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Particles before they are squashed [B, n, d], and ∇ log p there."""
        with torch.no_grad():
            particles = self.sampled(observation, noise)
        action = torch.tanh(particles).view(-1, self.size).requires_grad_()
        q = self.critics(_repeated(observation, noise.shape[1]), action).amin(0)
        (slope,) = torch.autograd.grad(q.sum(), action)
        return particles, squashed_score(action.detach(), slope).view_as(particles)

    def sampled(self, observation: TensorMap, noise: torch.Tensor) -> torch.Tensor:
        """Actions before they are squashed [B, n, d], for noise [B, n, k]."""
        particles = noise.shape[1]
        output = self.sampler(_repeated(observation, particles), noise.reshape(-1, self.noise_size))
        return output.view(-1, particles, self.size)  # type: ignore[no-any-return]  # networks are not typed


def squashed_score(action: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """∇ log p(x) of the density p(x) ∝ exp Q(tanh x) · |d tanh x / dx|, given action = tanh x and slope = ∇Q there.

    Before the tanh there are no bounds, and the second factor keeps particles from diverging; squashed samples of p
    have the density exp Q.
    """
    return slope * (1.0 - action.square()) - 2.0 * action


def stein_direction(fixed: torch.Tensor, score: torch.Tensor, updated: torch.Tensor) -> torch.Tensor:
    """φ(y) = mean over x of κ(x, y) ∇ log p(x) + ∇ₓ κ(x, y): moves `updated` towards p (eq. 8 of 1608.04471).

    For a batch of densities: fixed particles x [B, f, d], ∇ log p there [B, f, d], updated particles y [B, u, d],
    all in one space; the result is [B, u, d].
    """
    difference = fixed.unsqueeze(2) - updated.unsqueeze(1)
    distance = difference.square().sum(-1)
    width = bandwidth(distance)
    kernel = torch.exp(-distance / width)
    attraction = kernel.transpose(1, 2) @ score
    repulsion = (kernel.unsqueeze(-1) * difference).sum(1) * (-2.0 / width)
    return (attraction + repulsion) / fixed.shape[1]


def bandwidth(distance: torch.Tensor) -> torch.Tensor:
    """The bandwidth [B, 1, 1] of kernels exp(−distance/h), for squared distances [B, f, u].

    By the median, so that the kernels around one particle sum to about one, f · exp(−median/h) ≈ 1; the + 1 keeps the
    logarithm positive for a single particle.
    """
    median = distance.flatten(1).median(1).values
    return (median / math.log(distance.shape[1] + 1.0)).clamp(min=_NARROWEST)[:, None, None]


def _repeated(observation: TensorMap, count: int) -> TensorMap:
    """Each row `count` times in sequence."""
    return {name: array.repeat_interleave(count, 0) for name, array in observation.items()}


def _policies(problem: Problem, action: BoxAction, noise_size: int) -> tuple[Policies, Program]:
    """The two policies, and the program to train. The exploiting one acts with zero noise."""
    builder = ProgramBuilder(problem.observation)
    noise = builder.chance(_NOISE, noise_size)
    output = builder.linear(problem.actor_body(builder, noise), action.size, "actor.action")
    builder.tensor(_EPSILON, 1)
    program = builder.program()
    settings: dict[str, Setting] = {"noise": noise, "size": noise_size}
    explore = Head("noise_conditioned", (output,), (_EPSILON,), settings={**settings, "std": 1.0})
    exploit = Head("noise_conditioned", (output,), settings={**settings, "std": 0.0})
    return Policies.over(action, program, explore, exploit), program
