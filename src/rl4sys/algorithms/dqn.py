"""Deep Q-learning (Nature 518, 2015); double targets, dueling streams, n-step returns and priorities are options."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field

from rl4sys.engine import (
    AlgorithmConfig,
    Horizon,
    ImitationConfig,
    IncumbentRows,
    Policies,
    Problem,
    Progress,
    SequencePlan,
    TensorBatch,
    TrainState,
    UnsuitableActions,
    Update,
    horizon_seconds,
    learning_rate,
    register_algorithm,
)
from rl4sys.experience import Sequences
from rl4sys.networks import NetworksConfig, OptimizerSettings, TensorMap, UnsuitableNetwork, masked
from rl4sys.policy import BoxAction, DiscreteAction, Program, ProgramBuilder
from rl4sys.replay import Ratio

_MARGIN, _LEAST_MARGIN = 0.1, 0.01
"""By how much the value of the incumbent's choice exceeds those of others: a share of the size of returns, at least."""


@register_algorithm("dqn")
class DQNConfig(AlgorithmConfig):
    """Off-policy; discrete actions."""

    lr: float = Field(1e-3, gt=0)
    """Learning rate. Higher learns faster and is less stable."""
    anneal_lr: bool = False
    """Lower the learning rate linearly to zero over the run, so that the last policy has converged."""
    batch_size: int = Field(128, ge=1)
    """Transitions per update; with memory, steps in all sequences together. More give less noisy gradients and slower
    updates."""
    train_frequency: int = Field(4, ge=1)
    """Environment steps (over all environments) between two rounds of updates."""
    gradient_steps: int = Field(1, ge=1)
    """Updates in each round. More learn more from the same data, and take more time."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps collected before learning starts; no updates are due for them."""
    target_update_interval: int = Field(250, ge=1)
    """Updates (not environment steps) between two updates of the target network."""
    polyak: float = Field(1.0, gt=0, le=1)
    """Share of the network in each update of its target: 1 copies it, less moves the target slowly."""
    epsilon_start: float = Field(1.0, ge=0, le=1)
    """Share of random actions at the start."""
    epsilon_end: float = Field(0.05, ge=0, le=1)
    """Share of random actions once exploration is over."""
    exploration_fraction: float = Field(0.1, ge=0, le=1)
    """Part of the run over which the share of random actions falls linearly."""
    exploration_steps: int = Field(50_000, ge=1)
    """The same in steps, for live systems whose run has no known end."""
    double: bool = True
    """Choose the next action with the network, evaluate it with the target (arXiv:1509.06461): less overestimation."""
    dueling: bool = False
    """Learn the value of a state and the advantages of its actions separately (arXiv:1511.06581)."""
    n_step: int = Field(1, ge=1)
    """Rewards summed before bootstrapping. More propagate rewards faster, with more variance."""
    max_grad_norm: float | None = Field(10.0, gt=0)
    """Longer gradients are scaled down to this norm; null leaves them as they are."""
    sequence_length: int = Field(16, ge=2)
    """With memory: steps of each sequence that is learned from. Longer ones learn to remember for longer."""
    burn_in: int = Field(8, ge=0)
    """With memory: steps before these that only fill the memory, which starts empty (R2D2, ICLR 2019)."""

    horizon: Horizon = None
    """Discount by elapsed time instead of by `gamma`, such as `30s`: what follows dt seconds later is worth
    exp(−dt / horizon). A longer one looks further ahead. Clients pass `now` to `act`, environments to `info`."""

    buffers = ("uniform", "prioritized", "hindsight")
    imitates = True
    schedulable = ("lr", "epsilon")

    @property
    def horizon_seconds(self) -> float | None:
        """That of `horizon`."""
        return horizon_seconds(self.horizon)

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

    @classmethod
    def replays_sequences(cls, networks: NetworksConfig) -> bool:
        """If its one network has memory."""
        return networks.actor.has_memory

    def sequence_plan(self) -> SequencePlan:
        """Burn-in, the steps to learn from, and those until the value of the last one."""
        return SequencePlan(self.burn_in, self.sequence_length, self.n_step)

    def epsilon(self, progress: Progress) -> float:
        """The share of random actions at this point of the run."""
        if progress.total_steps is None:
            done = progress.steps / self.exploration_steps
        else:
            done = progress.steps / max(1.0, self.exploration_fraction * progress.total_steps)
        start, end = self.epsilon_start, self.epsilon_end
        if self.imitate is not None:
            # A policy that imitates knows what to do from the start.
            start, end = self.imitate.floor, min(end, self.imitate.floor)
        return start + min(1.0, done) * (end - start)


class DQN:
    """Learns the value of each action from replayed transitions, or from sequences if its network has memory."""

    def __init__(self, config: DQNConfig, problem: Problem) -> None:
        self.config, self.problem = config, problem
        self.policies, program, outputs = self.declare()
        plan = config.sequence_plan() if config.replays_sequences(problem.networks) else None
        self.train_state = state = TrainState(problem, self.policies, config.step_gamma, sequences=plan)
        settings = OptimizerSettings(config.lr, max_grad_norm=config.max_grad_norm, anneal_lr=config.anneal_lr)
        self.network = state.network("q", program, outputs, settings, frozen=("epsilon",), target=True)
        epsilon = config.epsilon
        if "epsilon" in problem.schedules:
            epsilon = lambda progress: state.scheduled("epsilon", config.epsilon_start)  # noqa: E731
        state.schedule("epsilon", epsilon)

    def declare(self) -> tuple[Policies, Program, list[str]]:
        """The two policies, the program to train, and its outputs."""
        if not self.config.dueling:
            return value_policies(self.problem, "DQN")
        if self.problem.count is not None:
            raise UnsuitableNetwork(
                "algorithm.dueling subtracts the mean over all choices, and the number of candidates differs from step "
                "to step. Set algorithm.dueling=false."
            )
        # Adding a state's value changes no choice, so the policies of a dueling network carry its advantages only.
        return value_policies(self.problem, "DQN", ("value", 1))

    def update(self, batch: TensorBatch) -> Update:
        """One step on the temporal-difference error (algorithm 1)."""
        config = self.config
        with torch.no_grad():
            next_q = self.q_values(batch.next_target_outputs(self.network))
            chosen_by = self.q_values(batch.next_outputs(self.network)) if config.double else next_q
            best = masked(chosen_by, self.problem.allowed(batch.next_observation)).argmax(-1, keepdim=True)
            target = batch.reward + batch.discount * batch.at_next(next_q.gather(-1, best).squeeze(-1))
        loss, q, error = self.network.minimize(self.loss, batch, target)
        if self.network.optimizer.steps % config.target_update_interval == 0:
            self.network.polyak_update(config.polyak)
        metrics = {"loss": loss, "q": q.mean(), "gradient_norm": self.network.optimizer.gradient_norm}
        return Update(metrics, batch.feedback(error))

    def imitate(self, batch: Sequences, plan: ImitationConfig) -> Update:
        """Fit values to returns, those of the incumbent's choices ahead of all others (DQfD, arXiv:1704.03732)."""
        with learning_rate(plan.lr, self.network.optimizer):
            minibatches = self.train_state.incumbent_rows(batch, plan, self.best_value)
            losses = [self.network.minimize(self.imitation_loss, minibatch) for minibatch in minibatches]
        self.network.polyak_update(1.0)
        return Update({"imitation_loss": losses[-1]}, {})

    def best_value(self, observation: TensorMap) -> torch.Tensor:
        """max Q(s, a) over the allowed actions."""
        return masked(self.q_values(self.network(observation)), self.problem.allowed(observation)).amax(-1)

    def imitation_loss(self, batch: IncumbentRows) -> torch.Tensor:
        """E[Huber(R − Q(s, a_E)) + max(Q(s, a) + margin · 1[a ≠ a_E]) − Q(s, a_E)] (DQfD, eq. 2)."""
        q = masked(self.q_values(self.network(batch.observation)), self.problem.allowed(batch.observation))
        taken = batch.action.unsqueeze(-1)
        expert = q.gather(-1, taken).squeeze(-1)
        # In units of the returns, so that rewards may have any scale.
        margin = (_MARGIN * batch.returns.square().mean().sqrt()).clamp(min=_LEAST_MARGIN)
        rival = (q + margin).scatter(-1, taken, expert.unsqueeze(-1)).amax(-1)
        return F.smooth_l1_loss(expert, batch.returns) + (rival - expert).mean()

    def loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[w · Huber(y − Q(s, a))]."""
        every = self.q_values(batch.outputs(self.network))
        q, target = batch.rows(every.gather(-1, batch.action.unsqueeze(-1)).squeeze(-1)), batch.rows(target)
        errors = F.smooth_l1_loss(q, target, reduction="none")
        return (errors * batch.weight).mean(), q, q.detach() - target

    def q_values(self, outputs: Any) -> torch.Tensor:
        """Q(s, ·) [B, k] from the network's outputs; dueling: V + A − mean A (arXiv:1511.06581, eq. 9)."""
        if not self.config.dueling:
            return outputs  # type: ignore[no-any-return]  # networks are not typed
        advantage, value = outputs
        return value + advantage - advantage.mean(-1, keepdim=True)  # type: ignore[no-any-return]


def value_policies(
    problem: Problem, algorithm: str, beside: tuple[str, int] | None = None
) -> tuple[Policies, Program, list[str]]:
    """The two policies, the program to train, and its outputs: a score for each choice.

    `beside` is the name and size of one more output, which is trained and does not travel with the policy.
    """
    if not isinstance(problem.action, DiscreteAction):
        others = "sac, td3 or ppo" if isinstance(problem.action, BoxAction) else "ppo"
        raise UnsuitableActions(
            f"{algorithm} needs one discrete choice per step; this environment wants {problem.action.kind} actions. "
            f"Use algorithm.name={others}, or an environment with discrete actions."
        )
    builder = ProgramBuilder(problem.observation)
    body = problem.actor_body(builder)
    scores = problem.actor_scores(builder, body)
    builder.tensor("epsilon", 1)
    acting = builder.program()
    explore = problem.choosing_head("epsilon_greedy", (scores,), ("epsilon",))
    exploit = problem.choosing_head("deterministic", (scores,))
    policies = Policies.over(problem.action, acting, explore, exploit)
    outputs = [scores] if beside is None else [scores, builder.linear(body, beside[1], beside[0])]
    return policies, builder.program(), outputs
