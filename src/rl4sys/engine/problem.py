"""The inputs and results of every algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from rl4sys.engine.previous_action import previous_action, remembering
from rl4sys.engine.schedules import Schedules
from rl4sys.experience import ArraySpec
from rl4sys.networks import NetworkConfig, NetworksConfig, OptimizerConfig, TensorMap, UnsuitableNetwork, exists
from rl4sys.policy import (
    COUNT,
    MASK,
    ActionSpec,
    BoxAction,
    DiscreteAction,
    Head,
    PolicySpec,
    Program,
    ProgramBuilder,
    output_size,
)
from rl4sys.policy.policy_spec import HeadKind
from rl4sys.seeding import Seeds


class Update(NamedTuple):
    """The result of learning from one batch."""

    metrics: Mapping[str, torch.Tensor | float]
    feedback: Mapping[str, torch.Tensor]
    """Per row of the batch, for the buffer: `priority`, …"""


class Policies(NamedTuple):
    """Two policies over the same weights: one explores, the other acts greedily."""

    explore: PolicySpec
    exploit: PolicySpec

    @classmethod
    def over(cls, action: ActionSpec, program: Program, explore: Head, exploit: Head) -> Policies:
        """Two heads over one program."""
        return cls(*(PolicySpec(action, program, remembering(head, program)) for head in (explore, exploit)))


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be learned, with which networks, on which device, from which seeds."""

    observation: tuple[ArraySpec, ...]
    action: ActionSpec
    networks: NetworksConfig
    device: torch.device
    seeds: Seeds
    standardize: bool = False
    """Whether policies standardize observations with statistics that travel with the weights."""
    compile: bool = False
    """Whether losses are compiled with `torch.compile`."""
    algorithm: str = "this algorithm"
    """The name of the algorithm, for errors."""
    schedules: Schedules = field(default_factory=dict)
    """By what the algorithm's settings are multiplied over the run."""
    optimizer: OptimizerConfig | None = None
    """How gradients become steps; the algorithm's own way if not given."""

    @property
    def mask(self) -> str | None:
        """The name of the observation that marks the allowed actions, if there is one."""
        return MASK if any(spec.name == MASK for spec in self.observation) else None

    @property
    def count(self) -> str | None:
        """The name of the observation that counts the candidates, if actions are a choice among some."""
        is_choice = isinstance(self.action, DiscreteAction)
        return COUNT if is_choice and any(spec.name == COUNT for spec in self.observation) else None

    def allowed(self, observation: TensorMap) -> torch.Tensor | None:
        """Which actions may be chosen: the candidates that exist, less what the mask forbids; None for all."""
        mask = observation[MASK] if self.mask else None
        if self.count is None:
            return mask
        existing = exists(observation[self.count], output_size(self.action))
        return existing if mask is None else existing & mask

    def choosing_head(self, kind: HeadKind, inputs: tuple[str, ...], tensors: tuple[str, ...] = ()) -> Head:
        """A head over choices that respects the mask and the number of candidates."""
        return Head(kind, inputs, tensors, self.mask, {"count": self.count} if self.count else {})

    @property
    def remembered_action(self) -> ActionSpec | None:
        """The action, if a network reads the previous one."""
        networks = self.networks.actor, self.networks.critic
        return self.action if any(network.reads_previous_action for network in networks) else None

    def torch_generator(self, *name: str | int) -> torch.Generator:
        """A torch generator for a named purpose; on the CPU, so that it is equal on every device."""
        return torch.Generator().manual_seed(self.seeds.integer(*name))

    def actor_scores(self, builder: ProgramBuilder, body: str | None = None) -> str:
        """Write the actor with its last layer, "actor.action": an output for each choice or number of the action."""
        register = self.actor_body(builder) if body is None else body
        return self.networks.actor.scores(builder, register, output_size(self.action), "actor.action")

    def actor_body(self, builder: ProgramBuilder, *joined: str) -> str:
        """Write the actor up to its last hidden layer; returns its register. `joined` registers add to its input."""
        return self._body(builder, self.networks.actor, "actor", lambda: joined)

    def critic_body(self, builder: ProgramBuilder, *inputs: ArraySpec) -> str:
        """The same for a critic; `inputs`, such as an action, are declared and added to its features."""
        return self._body(builder, self.networks.critic, "critic", lambda: [builder.input(array) for array in inputs])

    def _body(
        self, builder: ProgramBuilder, network: NetworkConfig, name: str, joined: Callable[[], Sequence[str]]
    ) -> str:
        """`joined` is called after the features are made, which are made of all inputs that are declared by then."""
        if network.scores_candidates and not isinstance(self.action, DiscreteAction):
            raise UnsuitableNetwork(
                f"network.{name}.type is candidates, which chooses one row, and this environment wants "
                f"{self.action.kind} actions. Choose another network, or an environment with one discrete choice."
            )
        features = network.features(builder, name, standardize=self.standardize)
        before = [previous_action(builder, self.action)] if network.reads_previous_action else []
        return network.body(builder, builder.joined([features, *before, *joined()]), name)

    def value_program(self) -> tuple[Program, str]:
        """A critic that predicts one value from an observation, and the register with it."""
        builder = ProgramBuilder(self.observation)
        body = self.networks.critic.summary(builder, self.critic_body(builder), "critic")
        value = builder.linear(body, 1, "critic.value")
        return builder.program(), value

    def bounded_action(self, algorithm: str) -> BoxAction:
        """The action, if it is a vector with finite bounds that are apart."""
        if not isinstance(self.action, BoxAction):
            others = "sac, dqn or ppo" if isinstance(self.action, DiscreteAction) else "ppo"
            raise UnsuitableActions(
                f"{algorithm} cannot choose {self.action.kind} actions, which this environment needs. "
                f"Use algorithm.name={others}, or an environment with continuous actions."
            )
        for place, (low, high) in enumerate(zip(self.action.low, self.action.high, strict=True)):
            # In float32, as they are computed with: its largest numbers stand for no bounds, and overflow here.
            with np.errstate(over="ignore"):
                width = np.float32(high) - np.float32(low)
            if not (np.isfinite(width) and width > 0):
                raise UnsuitableActions(
                    f"{algorithm} acts within bounds, and number {place} of this environment's action has the bounds "
                    f"{low} and {high}. Wrap the environment so that they are finite and apart "
                    f"(gymnasium.wrappers.TransformAction(environment, lambda action: action, Box(low, high))), or use "
                    f"algorithm.name=ppo."
                )
        return self.action


class UnsuitableActions(ValueError):
    """An algorithm cannot produce the actions that the environment wants."""
