"""An actor without chance of its own, and the noise that lets it explore: what DDPG and TD3 act with."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field

from rl4sys.algorithms.critics import Critics
from rl4sys.algorithms.followed import Followed
from rl4sys.algorithms.off_policy import OffPolicyConfig, TensorMap
from rl4sys.algorithms.problem import Policies, Problem, Progress, without_memory
from rl4sys.experience import Array
from rl4sys.networks import Accumulation, EnsembleProgram, Parameters, joined, rows_of_all, uniform_fan_in
from rl4sys.policy import BoxAction, Head, Memory, PolicySpec, Program, ProgramBuilder
from rl4sys.policy.policy_spec import Setting

_STD, _EPSILON, _NOISE = "exploration.std", "exploration.epsilon", "exploration.noise"


class DeterministicConfig(OffPolicyConfig):
    """Settings of algorithms that explore by adding noise to what they think best."""

    lr: float = Field(1e-3, gt=0)
    """Step size of Adam for the actor. Higher learns faster and breaks sooner."""
    exploration: Literal["gaussian", "ornstein_uhlenbeck"] = "gaussian"
    """Noise that is new in every step, or that goes on from the last one: smoother, for systems with inertia."""
    exploration_std: float = Field(0.1, ge=0)
    """Deviation of the noise in each step, as a share of half the range of actions. More explores more."""
    exploration_theta: float = Field(0.15, gt=0, le=1)
    """Share by which Ornstein–Uhlenbeck noise returns to zero in each step. Less wanders longer."""


class DeterministicActor(Followed):
    """The network that acts, its target, its optimizer, and the two policies over its weights."""

    def __init__(self, problem: Problem, box: BoxAction, config: DeterministicConfig) -> None:
        self.policies, program = _policies(problem, box, config)
        self._output = self.policies.exploit.head.inputs[0]
        self._learning_starts = config.learning_starts
        parameters = Parameters(program.tensors, problem.device)
        statistics = (name for name in parameters.views if name.endswith((".mean", ".scale")))
        parameters.freeze(_STD, _EPSILON, *statistics)
        uniform_fan_in(parameters, problem.torch_generator("init"))
        parameters.set(_STD, torch.full((box.size,), config.exploration_std))
        super().__init__(parameters, config.lr, config.max_grad_norm, config.polyak)
        self._accumulation = Accumulation()
        self._online = EnsembleProgram(program, self.parameters.views)
        self._target = EnsembleProgram(program, self.targets.views)

    def advance(self, progress: Progress) -> None:
        """Act at random until learning starts. The share of random actions is a weight of the policy: it travels."""
        with torch.no_grad():
            self.parameters.views[_EPSILON].fill_(float(progress.steps <= self._learning_starts))

    def target(self, observation: TensorMap) -> torch.Tensor:
        """What its target thinks best, in [−1, 1]."""
        count = len(next(iter(observation.values())))
        with torch.no_grad():
            parts = self._accumulation.results(
                count, lambda part: (self._target(rows_of_all(observation, part))[self._output],)
            )
            return torch.tanh(joined(parts)[0])

    def climb(self, observation: TensorMap, critics: Critics) -> torch.Tensor:
        """One step that raises what the first critic says about this actor's actions; returns minus its mean."""
        count = len(next(iter(observation.values())))
        parts = self._accumulation.gradient(
            self.parameters, count, lambda part: (self._differentiate(rows_of_all(observation, part), critics, count),)
        )
        (values,) = joined(parts, 1)
        self.adam.descend()
        return -values.mean()

    def _differentiate(self, observation: TensorMap, critics: Critics, count: int) -> torch.Tensor:
        """Add to the gradient what some rows of `count` have in it; returns what the first critic says [1, B]."""
        run = self._online.forward(observation)
        action = torch.tanh(run.registers[self._output])
        judgement = critics.judge_first(observation, action)
        slope = judgement.slope(torch.full_like(judgement.values, -1.0 / count))
        run.backward({self._output: slope * (1.0 - action.square())})
        return judgement.values

    def weights(self) -> Array:
        """The flat weights of the acting policy."""
        return self.parameters.flat.cpu().numpy()


def _policies(problem: Problem, box: BoxAction, config: DeterministicConfig) -> tuple[Policies, Program]:
    """The two policies, and the program to train. The exploring one remembers its noise if that goes on."""
    builder = ProgramBuilder(problem.observation)
    features = problem.networks.actor.features(builder, "actor", standardize=problem.standardize)
    mean = builder.linear(problem.networks.actor.body(builder, features, "actor"), box.size, "actor.action")
    builder.tensor(_STD, box.size)
    builder.tensor(_EPSILON, 1)
    program = without_memory(builder.program())
    exploring = program
    inputs: tuple[str, ...] = (mean,)
    settings: dict[str, Setting] = {}
    if config.exploration == "ornstein_uhlenbeck":
        following = f"{_NOISE}.next"
        exploring = replace(program, carry=(Memory(_NOISE, (box.size,), following),))
        inputs, settings = (mean, _NOISE), {"theta": config.exploration_theta, "next": following}
    explore = Head("perturbed", inputs, (_STD, _EPSILON), settings=settings)
    exploit = Head("deterministic", (mean,), settings={"squash": "tanh"})
    return Policies(PolicySpec(box, exploring, explore), PolicySpec(box, program, exploit)), program
