"""What both forms of SAC share: a temperature, and how a batch improves critics, actor and temperature in turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

from rl4sys.algorithms.drawing_actor import SAVED, DrawingActor
from rl4sys.algorithms.off_policy import Moments, TensorMap
from rl4sys.algorithms.problem import Policies, Problem, Progress, Update
from rl4sys.experience import Transitions
from rl4sys.policy import Program
from rl4sys.state import State, require

if TYPE_CHECKING:
    from rl4sys.algorithms.sac import SACConfig


class SoftLearner(DrawingActor, ABC):
    """Kinds of actions differ in what a next state is worth, in what a critic is asked, and in the actor's step."""

    def __init__(
        self, config: SACConfig, problem: Problem, policies: Policies, program: Program, frozen: tuple[str, ...] = ()
    ) -> None:
        super().__init__(config, problem, policies, program, count=config.ensemble, frozen=frozen)
        self._config = config
        self._updates = 0
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

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {**super().state(), "updates": self._updates, "temperature": self._temperature.state()}

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "updates", "temperature", *SAVED)
        super().restore({name: state[name] for name in SAVED})
        self._updates = state["updates"]
        self._temperature.restore(state["temperature"])
