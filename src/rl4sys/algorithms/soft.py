"""What both forms of SAC share: an actor, critics, a temperature, and how a batch improves them in turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

from rl4sys.algorithms.critics import Critics
from rl4sys.algorithms.followed import set_statistics
from rl4sys.algorithms.off_policy import Moments, SampledNoise, TensorMap
from rl4sys.algorithms.problem import Policies, Problem, Progress, Update
from rl4sys.experience import Array, Transitions
from rl4sys.networks import Accumulation, EnsembleProgram, FlatAdam, Parameters, uniform_fan_in
from rl4sys.policy import Program
from rl4sys.state import State, require

if TYPE_CHECKING:
    from rl4sys.algorithms.sac import SACConfig


class SoftLearner(ABC):
    """Kinds of actions differ in what a next state is worth, in what a critic is asked, and in the actor's step."""

    def __init__(
        self, config: SACConfig, problem: Problem, policies: Policies, program: Program, frozen: tuple[str, ...] = ()
    ) -> None:
        self._config, self._problem, self.policies = config, problem, policies
        self._updates = 0
        self._noise = SampledNoise(problem)
        self.parameters = Parameters(program.tensors, problem.device)
        self.parameters.freeze(*frozen, *(n for n in self.parameters.views if n.endswith((".mean", ".scale"))))
        uniform_fan_in(self.parameters, problem.torch_generator("init"))
        self._actor = EnsembleProgram(program, self.parameters.views)
        self._adam = FlatAdam(self.parameters, lr=config.lr, epsilon=1e-8, max_norm=config.max_grad_norm)
        self.critics = Critics(problem, config, config.ensemble)
        self._accumulation = Accumulation()
        self._temperature = config.build_temperature()
        self.advance(Progress())

    @abstractmethod
    def advance(self, progress: Progress) -> None:
        """Take note of how far the run has come."""

    def update(self, batch: Transitions) -> Update:
        """One step of critics, actor and temperature."""
        config = self._config
        moments = Moments.of(batch, config.gamma, self._problem.device)
        with torch.no_grad():
            target = moments.reward + moments.bootstrap * self._next_value(moments.next_observation)
        action = self._judged(moments.action)
        found = self.critics.regress(moments.observation, action, target, moments.weight)
        facts = [found.loss, found.value]
        self._updates += 1
        improves = self._updates % config.policy_delay == 0
        if improves:
            facts += self._improve(moments.observation)
        self.critics.follow()
        return Update(
            self._temperature.metrics(torch.stack(facts).tolist(), adapts=improves), {"priority": found.priority()}
        )

    @abstractmethod
    def _next_value(self, observation: TensorMap) -> torch.Tensor:
        """What the targets expect from here on, entropy included [B]."""

    def _judged(self, action: torch.Tensor) -> torch.Tensor:
        """An action as it was taken, as critics are asked about it."""
        return action

    @abstractmethod
    def _improve(self, observation: TensorMap) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """One step of the actor; returns its loss, the entropy, and how much of it is more than wanted."""

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
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
            "critics": self.critics.state(),
            "temperature": self._temperature.state(),
            "noise": self._noise.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "updates", "parameters", "adam", "critics", "temperature", "noise")
        self._updates = state["updates"]
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._adam.restore(state["adam"])
        self.critics.restore(state["critics"])
        self._temperature.restore(state["temperature"])
        self._noise.restore(state["noise"])
