"""Several critics that judge together, with targets that follow them slowly."""

from __future__ import annotations

from typing import NamedTuple

import torch

from rl4sys.algorithms.followed import Followed
from rl4sys.algorithms.off_policy import OffPolicyConfig, TensorMap
from rl4sys.algorithms.problem import Problem, without_memory
from rl4sys.experience import Array, ArraySpec
from rl4sys.networks import (
    Accumulation,
    EnsembleProgram,
    Pass,
    Workspace,
    joined,
    rows_of,
    rows_of_all,
    stacked_parameters,
)
from rl4sys.policy import BoxAction, DiscreteAction, Program, ProgramBuilder

_ACTION = "critic.action"


class Regression(NamedTuple):
    """What a step of the critics found."""

    loss: torch.Tensor
    value: torch.Tensor
    """The mean of all values."""
    error: torch.Tensor
    """[n, B]: values minus target."""

    def priority(self) -> Array:
        """[B]: how surprising each transition was, for prioritized replay."""
        return self.error.abs().mean(0).cpu().numpy()


class Judgement:
    """What critics say about an action: values [n, B]."""

    def __init__(self, run: Pass, output: str) -> None:
        self._pass, self._output = run, output
        self.values = run.registers[output].squeeze(-1)

    def slope(self, share: torch.Tensor) -> torch.Tensor:
        """How the sum of share · values changes with the action: [B, d] for a share [n, B]."""
        return self._pass.backward({self._output: share.unsqueeze(-1)})[_ACTION]


class Critics(Followed):
    """`count` networks of one shape, trained together and drawn apart.

    For continuous actions they judge a pair: values are [n, B]. For discrete ones they judge all choices: [n, B, k].
    """

    def __init__(self, problem: Problem, config: OffPolicyConfig, count: int) -> None:
        program, self._output = _program(problem)
        statistics = {f"{spec.name}.{part}" for spec in problem.observation for part in ("mean", "scale")}
        shared = [tensor.name for tensor in program.tensors if tensor.name in statistics]
        generator = problem.torch_generator("critics")
        lr = config.lr if config.critic_lr is None else config.critic_lr
        parameters = stacked_parameters(program, count, shared, problem.device, generator)
        super().__init__(parameters, lr, config.max_grad_norm, config.polyak)
        frozen = {name: view.detach() for name, view in self.parameters.views.items()}
        first = {name: view if name in shared else view[:1] for name, view in frozen.items()}
        self._accumulation = Accumulation()
        workspace = Workspace()
        self._online, self._frozen, self._first, self._target = (
            EnsembleProgram(program, tensors, workspace)
            for tensors in (self.parameters.views, frozen, first, self.targets.views)
        )

    def judge(self, observation: TensorMap, action: torch.Tensor) -> Judgement:
        """What all critics say about an action, to be differentiated by it."""
        return Judgement(self._forward(self._frozen, observation, action, (_ACTION,)), self._output)

    def judge_first(self, observation: TensorMap, action: torch.Tensor) -> Judgement:
        """What the first critic says about an action, to be differentiated by it."""
        return Judgement(self._forward(self._first, observation, action, (_ACTION,)), self._output)

    def judge_choices(self, observation: TensorMap) -> torch.Tensor:
        """What all critics say about every choice: [n, B, k]."""
        return self._run_in_parts(self._frozen, observation, None)

    def target(self, observation: TensorMap, action: torch.Tensor | None = None) -> torch.Tensor:
        """What the targets say; nothing is differentiated."""
        with torch.no_grad():
            return self._run_in_parts(self._target, observation, action)

    def regress(
        self, observation: TensorMap, action: torch.Tensor, target: torch.Tensor, weight: torch.Tensor
    ) -> Regression:
        """One step along the gradient of half the weighted mean squared error of each critic, summed over critics.

        The action is a vector [B, d], or the number of a choice [B].
        """
        share = weight / len(weight)
        parts = self._accumulation.gradient(
            self.parameters,
            len(target),
            lambda part: self._differentiate(
                rows_of_all(observation, part), *(rows_of(array, part) for array in (action, target, share))
            ),
        )
        values, error, gradient = joined(parts, 1)
        self.adam.descend()
        return Regression(torch.dot(error.flatten(), gradient.flatten()) * 0.5, values.mean(), error)

    def _differentiate(
        self, observation: TensorMap, action: torch.Tensor, target: torch.Tensor, share: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Add to the gradient what some rows have in it; returns values, errors, and gradients by value [n, B]."""
        chooses = action.ndim == 1
        run = self._forward(self._online, observation, None if chooses else action)
        every = run.registers[self._output]
        if chooses:
            place = action.expand(len(every), -1).unsqueeze(-1)
            values = every.gather(-1, place).squeeze(-1)
        else:
            values = every.squeeze(-1)
        error = values - target
        gradient = error * share
        spread = gradient.unsqueeze(-1)
        run.backward({self._output: torch.zeros_like(every).scatter_(-1, place, spread) if chooses else spread})
        return values, error, gradient

    def _forward(
        self,
        program: EnsembleProgram,
        observation: TensorMap,
        action: torch.Tensor | None,
        differentiate: tuple[str, ...] = (),
    ) -> Pass:
        return program.forward(observation if action is None else {**observation, _ACTION: action}, differentiate)

    def _run_in_parts(
        self, program: EnsembleProgram, observation: TensorMap, action: torch.Tensor | None
    ) -> torch.Tensor:
        rows = len(next(iter(observation.values())))
        parts = self._accumulation.results(
            rows,
            lambda part: (
                self._run(program, rows_of_all(observation, part), None if action is None else rows_of(action, part)),
            ),
        )
        return joined(parts, 1)[0]

    def _run(self, program: EnsembleProgram, observation: TensorMap, action: torch.Tensor | None) -> torch.Tensor:
        if action is None:
            return program(observation)[self._output]
        return program({**observation, _ACTION: action})[self._output].squeeze(-1)


def _program(problem: Problem) -> tuple[Program, str]:
    """The program of one critic, and the register with its values."""
    builder = ProgramBuilder(problem.observation)
    features = problem.networks.critic.features(builder, "critic", standardize=problem.standardize)
    outputs = 1
    match problem.action:
        case DiscreteAction(n=n):
            outputs = n
        case BoxAction(size=size):
            action = builder.input(ArraySpec(_ACTION, "float32", (size,)))
            features = builder.op("concat", (features, action), (builder.shape(features)[0] + size,))
    body = problem.networks.critic.body(builder, features, "critic")
    value = builder.linear(body, outputs, "critic.value")
    return without_memory(builder.program()), value
