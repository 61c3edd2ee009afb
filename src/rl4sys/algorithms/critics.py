"""Several critics that judge together, with targets that follow them slowly."""

from __future__ import annotations

import torch

from rl4sys.algorithms.off_policy import OffPolicyConfig, TensorMap
from rl4sys.algorithms.problem import Problem, without_memory
from rl4sys.experience import Array, ArraySpec
from rl4sys.networks import EnsembleProgram, FlatAdam, Parameters, stacked_parameters
from rl4sys.policy import BoxAction, DiscreteAction, Program, ProgramBuilder
from rl4sys.state import State, require

_ACTION = "critic.action"


class Critics:
    """`count` networks of one shape, trained together and drawn apart.

    For continuous actions they judge a pair: values are [n, B]. For discrete ones they judge all choices: [n, B, k].
    """

    def __init__(self, problem: Problem, config: OffPolicyConfig, count: int) -> None:
        program, self._output = _program(problem)
        shared = [tensor.name for tensor in program.tensors if not tensor.name.startswith("critic.")]
        generator = problem.torch_generator("critics")
        self.parameters = stacked_parameters(program, count, shared, problem.device, generator)
        self.targets = self.parameters.copy()
        frozen = {name: view.detach() for name, view in self.parameters.views.items()}
        first = {name: view if name in shared else view[:1] for name, view in frozen.items()}
        self._online = EnsembleProgram(program, self.parameters.views)
        self._frozen = EnsembleProgram(program, frozen)
        self._first = EnsembleProgram(program, first)
        self._target = EnsembleProgram(program, self.targets.views)
        self._polyak = config.polyak
        lr = config.lr if config.critic_lr is None else config.critic_lr
        self._adam = FlatAdam(self.parameters, lr=lr, epsilon=1e-8, max_norm=config.max_grad_norm)

    def values(self, observation: TensorMap, action: torch.Tensor | None = None) -> torch.Tensor:
        """What the critics say, to be trained."""
        return self._run(self._online, observation, action)

    def judge(self, observation: TensorMap, action: torch.Tensor | None = None) -> torch.Tensor:
        """What the critics say, to be differentiated by the action only."""
        return self._run(self._frozen, observation, action)

    def judge_first(self, observation: TensorMap, action: torch.Tensor) -> torch.Tensor:
        """What the first critic says [B], to be differentiated by the action only."""
        return self._run(self._first, observation, action)[0]

    def target(self, observation: TensorMap, action: torch.Tensor | None = None) -> torch.Tensor:
        """What the targets say; nothing is differentiated."""
        with torch.no_grad():
            return self._run(self._target, observation, action)

    def descend(self, loss: torch.Tensor) -> torch.Tensor:
        """One step of Adam along the gradient of the loss; returns the gradient's norm."""
        return self._adam.step(loss)

    def follow(self) -> None:
        """Move the targets a little towards the critics."""
        self.targets.flat.lerp_(self.parameters.flat, self._polyak)

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, in the targets too."""
        for parameters in (self.parameters, self.targets):
            set_statistics(parameters, name, mean, scale)

    def state(self) -> State:
        """Critics, targets and optimizer."""
        return {
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "targets": self.targets.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "parameters", "targets", "adam")
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self.targets.flat.copy_(torch.from_numpy(state["targets"]))
        self._adam.restore(state["adam"])

    def _run(self, program: EnsembleProgram, observation: TensorMap, action: torch.Tensor | None) -> torch.Tensor:
        if action is None:
            return program(observation)[self._output]
        return program({**observation, _ACTION: action})[self._output].squeeze(-1)


def squared_error(values: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Half the weighted mean squared error of each critic, summed over critics: values [n, B], the others [B]."""
    return 0.5 * ((values - target).square() * weight).mean(1).sum()


def set_statistics(parameters: Parameters, name: str, mean: Array, scale: Array) -> None:
    """Write the statistics of one observation into the tensors that standardize it."""
    parameters.set(f"{name}.mean", torch.from_numpy(mean))
    parameters.set(f"{name}.scale", torch.from_numpy(scale))


def _program(problem: Problem) -> tuple[Program, str]:
    """The program of one critic, and the register with its values."""
    builder = ProgramBuilder(problem.observation)
    features = builder.features(standardize=problem.standardize)
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
