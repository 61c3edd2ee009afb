"""An actor that draws its actions, and the critics that judge them: what SAC and soft Q-learning train."""

from __future__ import annotations

import torch

from rl4sys.algorithms.critics import Critics
from rl4sys.algorithms.followed import set_statistics
from rl4sys.algorithms.off_policy import OffPolicyConfig, SampledNoise
from rl4sys.algorithms.problem import Policies, Problem
from rl4sys.experience import Array
from rl4sys.networks import Accumulation, EnsembleProgram, FlatAdam, Parameters, uniform_fan_in
from rl4sys.policy import Program
from rl4sys.state import State, require

SAVED = ("parameters", "adam", "critics", "noise")
"""The names in the state that every such algorithm has."""


class DrawingActor:
    """The actor's network and optimizer, `count` critics, and the chance that training draws from."""

    def __init__(
        self,
        config: OffPolicyConfig,
        problem: Problem,
        policies: Policies,
        program: Program,
        *,
        count: int,
        frozen: tuple[str, ...] = (),
    ) -> None:
        """`frozen` tensors of the program are not trained; nor are the statistics of observations."""
        self._problem, self.policies = problem, policies
        self._noise = SampledNoise(problem)
        self.parameters = Parameters(program.tensors, problem.device)
        self.parameters.freeze(*frozen, *(n for n in self.parameters.views if n.endswith((".mean", ".scale"))))
        uniform_fan_in(self.parameters, problem.torch_generator("init"))
        self._actor = EnsembleProgram(program, self.parameters.views)
        self._adam = FlatAdam(self.parameters, lr=config.lr, epsilon=1e-8, max_norm=config.max_grad_norm)
        self.critics = Critics(problem, config, count)
        self._accumulation = Accumulation()

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
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
            "critics": self.critics.state(),
            "noise": self._noise.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, *SAVED)
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._adam.restore(state["adam"])
        self.critics.restore(state["critics"])
        self._noise.restore(state["noise"])
