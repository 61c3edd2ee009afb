"""Soft Q-learning with amortised Stein variational gradient descent (arXiv:1702.08165)."""

from __future__ import annotations

import math

import torch
from pydantic import Field

from rl4sys.algorithms.drawing_actor import DrawingActor
from rl4sys.algorithms.off_policy import ActionScale, Moments, OffPolicyConfig, TensorMap, bounded_box
from rl4sys.algorithms.problem import Policies, Problem, Progress, Update, without_memory
from rl4sys.algorithms.registry import register_algorithm
from rl4sys.algorithms.svgd import squashed_score, stein_direction
from rl4sys.experience import Transitions
from rl4sys.networks import joined, rows_of, rows_of_all
from rl4sys.policy import BoxAction, Head, PolicySpec, Program, ProgramBuilder
from rl4sys.policy.policy_spec import Setting

_CHANCE, _EPSILON = "actor.noise", "epsilon"


@register_algorithm("sql")
class SQLConfig(OffPolicyConfig):
    """Off-policy, maximum entropy, with policies of any shape; continuous actions with finite bounds."""

    reward_scale: float = Field(1.0, gt=0)
    """What a reward of 1 counts against a nat of entropy: the inverse of the temperature. More is greedier."""
    value_samples: int = Field(32, ge=1)
    """Uniform actions by which a next state is valued. More estimate better, above all for actions of many numbers."""
    fixed_particles: int = Field(16, ge=1)
    """Actions per observation that say where the density of good actions is. More show more of its peaks."""
    updated_particles: int = Field(16, ge=1)
    """Actions per observation that are moved there, and the sampler with them."""
    noise_size: int | None = Field(None, ge=1, le=4096)
    """Normal numbers that the sampler turns into an action; as many as the action has if not given."""
    ensemble: int = Field(2, ge=1)
    """Critics whose lowest value counts. The paper has one."""

    def build(self, problem: Problem) -> SQL:
        """The algorithm for one problem."""
        return SQL(self, problem)


class SQL(DrawingActor):
    """Learns soft values of actions, and a network that turns noise into samples of exp Q."""

    def __init__(self, config: SQLConfig, problem: Problem) -> None:
        box = bounded_box(problem, "SQL")
        self._config, self._size = config, box.size
        self._scale = ActionScale(box, problem.device)
        self._noise_size = config.noise_size or box.size
        policies, program = _policies(problem, box, self._noise_size)
        (self._output,) = policies.explore.head.inputs
        super().__init__(config, problem, policies, program, count=config.ensemble, frozen=(_EPSILON,))
        self.advance(Progress())

    def advance(self, progress: Progress) -> None:
        """Act at random until learning starts. The share of random actions is a weight of the policy: it travels."""
        self.parameters.set(_EPSILON, torch.tensor(float(progress.steps <= self._config.learning_starts)))

    def update(self, batch: Transitions) -> Update:
        """One step of the critics, then of the sampler; the targets follow (algorithm 1)."""
        moments = Moments.of(batch, self._config.gamma, self._problem.device)
        next_value = self._soft_value(moments.next_observation)
        target = self._config.reward_scale * moments.reward + moments.bootstrap * next_value
        action = self._scale.scaled(moments.action)
        found = self.critics.regress(moments.observation, action, target, moments.weight)
        stein = self._improve(moments.observation)
        self.critics.follow()
        facts = torch.stack([found.loss, found.value, next_value.mean(), stein]).tolist()
        metrics = dict(zip(("critic_loss", "q", "soft_value", "stein"), facts, strict=True))
        return Update(metrics, {"priority": found.priority()})

    def _soft_value(self, observation: TensorMap) -> torch.Tensor:
        """V = log ∫ exp Q da [B], by uniform actions of density 2⁻ᵈ (eq. 10)."""
        count = self._config.value_samples
        seen = _repeated(observation, count)
        rows = len(next(iter(seen.values())))
        values = self.critics.target(seen, self._noise.uniform(rows, self._size)).amin(0)
        return torch.logsumexp(values.view(-1, count), 1) + (self._size * math.log(2.0) - math.log(count))

    def _improve(self, observation: TensorMap) -> torch.Tensor:
        """One step of the sampler along the Stein direction of its particles (eq. 13 and 14); returns their unrest."""
        config, count = self._config, len(next(iter(observation.values())))
        fixed, updated = (
            self._noise.normal(count * particles, self._noise_size).view(count, particles, -1)
            for particles in (config.fixed_particles, config.updated_particles)
        )
        parts = self._accumulation.gradient(
            self.parameters,
            count,
            lambda part: self._differentiate(
                rows_of_all(observation, part), rows_of(fixed, part), rows_of(updated, part), count
            ),
        )
        (unrest,) = joined(parts)
        self._adam.descend()
        return unrest.mean().sqrt()

    def _differentiate(
        self, observation: TensorMap, fixed_noise: torch.Tensor, updated_noise: torch.Tensor, count: int
    ) -> tuple[torch.Tensor]:
        """Add to the sampler's gradient what some rows of `count` have in it; returns squared steps of particles."""
        config, size = self._config, self._size
        fixed, score = self._scored(observation, fixed_noise)
        run = self._actor.forward(_with_noise(observation, updated_noise))
        updated = run.registers[self._output].view(-1, config.updated_particles, size)
        fixed, score = (array.view(-1, config.fixed_particles, size) for array in (fixed, score))
        direction = stein_direction(fixed, score, updated).view(-1, size)
        run.backward({self._output: direction / -(count * config.updated_particles)})
        return (direction.square().sum(-1),)

    def _scored(self, observation: TensorMap, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Particles before they are squashed, and ∇ log p there."""
        seen = _with_noise(observation, noise)
        with torch.no_grad():
            particles = self._actor(seen)[self._output]
        action = torch.tanh(particles)
        judgement = self.critics.judge({name: seen[name] for name in observation}, action)
        lowest = (judgement.values == judgement.values.amin(0)).to(action.dtype)
        return particles, squashed_score(action, judgement.slope(lowest / lowest.sum(0)))


def _with_noise(observation: TensorMap, noise: torch.Tensor) -> TensorMap:
    """Each observation beside each of its noises [B, n, d]."""
    return {**_repeated(observation, noise.shape[1]), _CHANCE: noise.reshape(-1, noise.shape[2])}


def _repeated(observation: TensorMap, count: int) -> TensorMap:
    """Each row `count` times, one after the other."""
    return {name: array.repeat_interleave(count, 0) for name, array in observation.items()}


def _policies(problem: Problem, box: BoxAction, noise_size: int) -> tuple[Policies, Program]:
    """The two policies, and the program to train. Without a critic at hand the best guess is what no noise gives."""
    builder = ProgramBuilder(problem.observation)
    features = problem.networks.actor.features(builder, "actor", standardize=problem.standardize)
    chance = builder.chance(_CHANCE, noise_size)
    joined = builder.op("concat", (features, chance), (builder.shape(features)[0] + noise_size,))
    output = builder.linear(problem.networks.actor.body(builder, joined, "actor"), box.size, "actor.action")
    builder.tensor(_EPSILON, 1)
    program = without_memory(builder.program())
    settings: dict[str, Setting] = {"noise": chance, "size": noise_size}
    explore = Head("noise_conditioned", (output,), (_EPSILON,), settings={**settings, "std": 1.0})
    exploit = Head("noise_conditioned", (output,), settings={**settings, "std": 0.0})
    return Policies(PolicySpec(box, program, explore), PolicySpec(box, program, exploit)), program
