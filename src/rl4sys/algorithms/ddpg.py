"""Deep deterministic policy gradient (arXiv:1509.02971)."""

from __future__ import annotations

import torch

from rl4sys.algorithms.critics import Critics
from rl4sys.algorithms.deterministic import DeterministicActor, DeterministicConfig
from rl4sys.algorithms.off_policy import ActionScale, Moments, bounded_box
from rl4sys.algorithms.problem import Problem, Progress, Update
from rl4sys.algorithms.registry import register_algorithm
from rl4sys.experience import Array, Transitions
from rl4sys.state import State, require


@register_algorithm("ddpg")
class DDPGConfig(DeterministicConfig):
    """Off-policy; continuous actions with finite bounds."""

    def build(self, problem: Problem) -> DDPG:
        """The algorithm for one problem."""
        return DDPG(self, problem)


class DDPG:
    """Learns one critic, and an actor that climbs it."""

    def __init__(self, config: DDPGConfig, problem: Problem) -> None:
        box = bounded_box(problem, "DDPG")
        self._config, self._problem = config, problem
        self._scale = ActionScale(box, problem.device)
        self.actor = DeterministicActor(problem, box, config)
        self.critics = Critics(problem, config, 1)
        self.policies, self.parameters = self.actor.policies, self.actor.parameters
        self.advance(Progress())

    def advance(self, progress: Progress) -> None:
        """Act at random until learning starts."""
        self.actor.advance(progress)

    def update(self, batch: Transitions) -> Update:
        """One step of the critic, then of the actor; the targets follow (algorithm 1)."""
        moments = Moments.of(batch, self._config.gamma, self._problem.device)
        next_action = self.actor.target(moments.next_observation)
        next_value = self.critics.target(moments.next_observation, next_action)[0]
        target = moments.reward + moments.bootstrap * next_value
        action = self._scale.scaled(moments.action)
        found = self.critics.regress(moments.observation, action, target, moments.weight)
        actor_loss = self.actor.climb(moments.observation, self.critics)
        self.critics.follow()
        self.actor.follow()
        facts = torch.stack([found.loss, found.value, actor_loss]).tolist()
        metrics = dict(zip(("critic_loss", "q", "actor_loss"), facts, strict=True))
        return Update(metrics, {"priority": found.priority()})

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, everywhere."""
        self.actor.standardize(name, mean, scale)
        self.critics.standardize(name, mean, scale)

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy; the critic stays here."""
        return self.actor.weights()

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {"actor": self.actor.state(), "critics": self.critics.state()}

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "actor", "critics")
        self.actor.restore(state["actor"])
        self.critics.restore(state["critics"])
