"""Deep Q-learning (Nature 518, 2015); double targets, dueling streams, n-step returns and priorities are options."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field

from rl4sys.algorithms.problem import Policies, Problem, Progress, UnsuitableActions, Update, without_memory
from rl4sys.algorithms.registry import AlgorithmConfig, register_algorithm
from rl4sys.algorithms.returns import n_step_return
from rl4sys.experience import Array, Transitions
from rl4sys.networks import Accumulation, FlatAdam, Parameters, TorchProgram, masked, uniform_fan_in
from rl4sys.policy import BoxAction, DiscreteAction, Head, PolicySpec, Program, ProgramBuilder, layout_of
from rl4sys.replay import Ratio
from rl4sys.state import State, require


@register_algorithm("dqn")
class DQNConfig(AlgorithmConfig):
    """Off-policy; discrete actions."""

    lr: float = Field(1e-3, gt=0)
    """Step size of Adam. Higher learns faster and breaks sooner."""
    anneal_lr: bool = False
    """Lower the step size linearly to zero over the run: the last policy is then a settled one."""
    batch_size: int = Field(128, ge=1)
    """Transitions per update. More make gradients steadier and updates slower."""
    train_frequency: int = Field(4, ge=1)
    """Environment steps (over all environments) between two rounds of updates."""
    gradient_steps: int = Field(1, ge=1)
    """Updates in each round. More learn more from the same data, and take more time."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps that are gathered before learning starts; they earn no updates."""
    target_update_interval: int = Field(250, ge=1)
    """Updates (not environment steps) between two copies of the network into the target."""
    polyak: float = Field(1.0, gt=0, le=1)
    """Share of the network in each such copy: 1 replaces the target, less moves it slowly."""
    epsilon_start: float = Field(1.0, ge=0, le=1)
    """Share of random actions in the beginning."""
    epsilon_end: float = Field(0.05, ge=0, le=1)
    """Share of random actions once exploration is over."""
    exploration_fraction: float = Field(0.1, ge=0, le=1)
    """Part of the run over which the share of random actions falls linearly."""
    exploration_steps: int = Field(50_000, ge=1)
    """The same in steps, for live systems whose run has no known end."""
    double: bool = True
    """Let the network choose the next action and the target judge it (arXiv:1509.06461): less overestimation."""
    dueling: bool = False
    """Learn the value of a state and the advantages of its actions apart (arXiv:1511.06581)."""
    n_step: int = Field(1, ge=1)
    """Rewards summed before bootstrapping. More spread rewards faster, with more variance."""
    max_grad_norm: float = Field(10.0, gt=0)
    """Longer gradients are shortened to this length."""

    buffers = ("uniform", "prioritized", "hindsight")

    def build(self, problem: Problem) -> DQN:
        """The algorithm for one problem."""
        return DQN(self, problem)

    def pace(self, buffer_size: int) -> Ratio:
        """A fixed number of updates for each step."""
        return Ratio(self.gradient_steps / self.train_frequency, self.learning_starts, self.batch_size)

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.batch_size

    def steps_between_updates(self, buffer_size: int) -> int:
        """One round of updates."""
        return self.train_frequency

    @property
    def window(self) -> int:
        """Steps summed before bootstrapping."""
        return self.n_step


class DQN:
    """Learns the value of each choice from replayed transitions."""

    def __init__(self, config: DQNConfig, problem: Problem) -> None:
        if not isinstance(problem.action, DiscreteAction):
            others = "sac, td3 or ppo" if isinstance(problem.action, BoxAction) else "ppo"
            raise UnsuitableActions(
                f"DQN needs one discrete choice per step; this environment wants {problem.action.kind} actions. "
                f"Use algorithm.name={others}, or an environment with discrete actions."
            )
        self._config = config
        self._problem = problem
        self._updates = 0
        self.policies, program, self._value = _programs(problem, config.dueling)
        self._scores = self.policies.exploit.head.inputs[0]
        self.parameters = Parameters(program.tensors, problem.device)
        self.parameters.freeze("epsilon", *(n for n in self.parameters.views if n.endswith((".mean", ".scale"))))
        uniform_fan_in(self.parameters, problem.torch_generator("init"))
        # The acting tensors come first; what only learning needs follows them.
        self._policy_size = layout_of(self.policies.explore.program).size
        self._online = TorchProgram(program, self.parameters)
        self._target_parameters = self.parameters.copy()
        self._target = TorchProgram(program, self._target_parameters)
        self._adam = FlatAdam(self.parameters, lr=config.lr, epsilon=1e-8, max_norm=config.max_grad_norm)
        self._accumulation = Accumulation()
        self.advance(Progress())

    def advance(self, progress: Progress) -> None:
        """Set the step size and ε from the number of steps. ε is a weight of the policy: it travels with it."""
        config = self._config
        if progress.total_steps is None:
            done = progress.steps / max(1, config.exploration_steps)
        else:
            done = progress.steps / max(1.0, config.exploration_fraction * progress.total_steps)
        epsilon = config.epsilon_start + min(1.0, done) * (config.epsilon_end - config.epsilon_start)
        self._lr = config.lr * (1.0 - progress.fraction) if config.anneal_lr else config.lr
        with torch.no_grad():
            self.parameters.views["epsilon"].fill_(epsilon)

    def update(self, batch: Transitions) -> Update:
        """One step along the gradient of the weighted Huber loss of the temporal-difference error."""
        parts = self._accumulation.gradient(self.parameters, len(batch), lambda part: self._differentiate(batch, part))
        value, error, loss = parts[0] if len(parts) == 1 else _summed(parts)
        norm = self._adam.step_along(loss, self._lr)
        self._updates += 1
        if self._updates % self._config.target_update_interval == 0:
            self._target_parameters.flat.lerp_(self.parameters.flat, self._config.polyak)
        metrics = {"loss": loss.item(), "q": value.mean().item(), "gradient_norm": norm.item()}
        return Update(metrics, {"priority": error.abs().cpu().numpy()})

    def _differentiate(self, batch: Transitions, part: slice | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Add to the gradient of the loss what some rows, or all, have in it; returns their values, errors and loss."""
        device, rows = self._problem.device, slice(None) if part is None else part
        observation, next_observation = (
            {name: torch.from_numpy(np.asarray(array)[rows]).to(device) for name, array in arrays.items()}
            for arrays in (batch.observation, batch.next_observation)
        )
        reward, bootstrap = (torch.from_numpy(a[rows]).to(device) for a in n_step_return(batch, self._config.gamma))
        action = torch.from_numpy(batch.action[rows]).to(device).unsqueeze(1)
        with torch.no_grad():
            target = reward + bootstrap * self._next_value(next_observation)
        value = self._values(self._online, observation).gather(1, action).squeeze(1)
        errors = F.smooth_l1_loss(value, target, reduction="none")
        loss = (errors * torch.from_numpy(batch.weight[rows]).to(device)).mean()
        if part is not None:
            loss = loss * (len(value) / len(batch))
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        value = value.detach()
        return value, value - target, loss.detach()

    def _next_value(self, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        """max_a Q(s′, a) of the target, over the allowed actions; with `double`, at the online network's choice."""
        mask = observation[self._problem.mask] if self._problem.mask else None
        values = self._values(self._target, observation)
        judge = self._values(self._online, observation) if self._config.double else values
        chosen = masked(judge, mask).argmax(1, keepdim=True)
        return values.gather(1, chosen).squeeze(1)

    def _values(self, network: TorchProgram, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        registers: dict[str, torch.Tensor] = network(observation)
        scores = registers[self._scores]
        if self._value is None:
            return scores
        return registers[self._value] + scores - scores.mean(1, keepdim=True)

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, in the target too."""
        for parameters in (self.parameters, self._target_parameters):
            parameters.set(f"{name}.mean", torch.from_numpy(mean))
            parameters.set(f"{name}.scale", torch.from_numpy(scale))

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy, ε included; the value stream of a dueling network stays here."""
        return self.parameters.flat[: self._policy_size].cpu().numpy()

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {
            "updates": self._updates,
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "target": self._target_parameters.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "updates", "parameters", "target", "adam")
        self._updates = state["updates"]
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._target_parameters.flat.copy_(torch.from_numpy(state["target"]))
        self._adam.restore(state["adam"])


def _programs(problem: Problem, dueling: bool) -> tuple[Policies, Program, str | None]:
    """The two policies, the program to train, and its register with the state's value (dueling only).

    Adding a state's value changes no choice, so the policies of a dueling network carry its advantages only.
    """
    assert isinstance(problem.action, DiscreteAction)
    builder = ProgramBuilder(problem.observation)
    features = problem.networks.actor.features(builder, "actor", standardize=problem.standardize)
    body = problem.networks.actor.body(builder, features, "actor")
    scores = builder.linear(body, problem.action.n, "actor.action")
    builder.tensor("epsilon", 1)
    acting = builder.program()
    explore = Head("epsilon_greedy", (scores,), ("epsilon",), problem.mask)
    exploit = Head("deterministic", (scores,), mask=problem.mask)
    policies = Policies(PolicySpec(problem.action, acting, explore), PolicySpec(problem.action, acting, exploit))
    value = builder.linear(body, 1, "value") if dueling else None
    return policies, without_memory(builder.program()), value


def _summed(
    parts: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The values, errors and loss of all parts."""
    values, errors, losses = zip(*parts, strict=True)
    return torch.cat(values), torch.cat(errors), torch.stack(losses).sum()
