"""Twin delayed deterministic policy gradient (arXiv:1802.09477)."""

from __future__ import annotations

import torch
from pydantic import Field

from rl4sys.algorithms.critics import Critics
from rl4sys.algorithms.deterministic import DeterministicActor, DeterministicConfig
from rl4sys.algorithms.off_policy import ActionScale, Moments, SampledNoise, TensorMap, bounded_box
from rl4sys.algorithms.problem import Problem, Progress, Update
from rl4sys.algorithms.registry import register_algorithm
from rl4sys.experience import Array, Transitions
from rl4sys.state import State, require


@register_algorithm("td3")
class TD3Config(DeterministicConfig):
    """Off-policy; continuous actions with finite bounds."""

    policy_delay: int = Field(2, ge=1)
    """Updates of the critics between two of the actor and of all targets. More lets the critics settle."""
    target_noise: float = Field(0.2, ge=0)
    """Deviation of the noise on the target's action, as a share of half the range: smooths the critics over actions."""
    target_noise_clip: float = Field(0.5, ge=0)
    """The most of that noise, in the same units."""
    ensemble: int = Field(2, ge=1)
    """Critics whose lowest value makes the target. The actor climbs the first."""

    def build(self, problem: Problem) -> TD3:
        """The algorithm for one problem."""
        return TD3(self, problem)


class TD3:
    """Learns twin critics that doubt each other, and an actor that climbs one of them now and then."""

    def __init__(self, config: TD3Config, problem: Problem) -> None:
        box = bounded_box(problem, "TD3")
        self._config, self._problem = config, problem
        self._scale = ActionScale(box, problem.device)
        self._updates = 0
        self._noise = SampledNoise(problem)
        self.actor = DeterministicActor(problem, box, config)
        self.critics = Critics(problem, config, config.ensemble)
        self._actor_loss = torch.zeros(())
        self.policies, self.parameters = self.actor.policies, self.actor.parameters
        self.advance(Progress())

    def advance(self, progress: Progress) -> None:
        """Act at random until learning starts."""
        self.actor.advance(progress)

    def update(self, batch: Transitions) -> Update:
        """One step of the critics; every few steps also one of the actor and the targets (algorithm 1)."""
        moments = Moments.of(batch, self._config.gamma, self._problem.device)
        next_value = self.critics.target(moments.next_observation, self._smoothed(moments.next_observation)).amin(0)
        target = moments.reward + moments.bootstrap * next_value
        action = self._scale.scaled(moments.action)
        found = self.critics.regress(moments.observation, action, target, moments.weight)
        self._updates += 1
        if self._updates % self._config.policy_delay == 0:
            self._actor_loss = self.actor.climb(moments.observation, self.critics)
            self.critics.follow()
            self.actor.follow()
        facts = torch.stack([found.loss, found.value, self._actor_loss]).tolist()
        metrics = dict(zip(("critic_loss", "q", "actor_loss"), facts, strict=True))
        return Update(metrics, {"priority": found.priority()})

    def _smoothed(self, observation: TensorMap) -> torch.Tensor:
        """The target's action with clipped noise, within [−1, 1] (eq. 14)."""
        action = self.actor.target(observation)
        bound = self._config.target_noise_clip
        noise = (self._noise.normal(*action.shape) * self._config.target_noise).clamp_(-bound, bound)
        return (action + noise).clamp_(-1.0, 1.0)

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, everywhere."""
        self.actor.standardize(name, mean, scale)
        self.critics.standardize(name, mean, scale)

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy; the critics stay here."""
        return self.actor.weights()

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {
            "updates": self._updates,
            "actor_loss": self._actor_loss.item(),
            "actor": self.actor.state(),
            "critics": self.critics.state(),
            "noise": self._noise.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "updates", "actor_loss", "actor", "critics", "noise")
        self._updates = state["updates"]
        self._actor_loss = torch.tensor(state["actor_loss"])
        self.actor.restore(state["actor"])
        self.critics.restore(state["critics"])
        self._noise.restore(state["noise"])
