"""Proximal Policy Optimization (arXiv:1707.06347), decoupled for data from older policies (arXiv:2110.00641)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field

from rl4sys.algorithms.problem import Policies, Problem, Progress, Update, without_memory
from rl4sys.algorithms.registry import AlgorithmConfig, register_algorithm
from rl4sys.algorithms.returns import explained_variance, generalized_advantage
from rl4sys.experience import Array, Sequences
from rl4sys.networks import (
    Evaluation,
    FlatAdam,
    Parameters,
    TorchProgram,
    categorical,
    gaussian,
    multi_categorical,
    orthogonal,
)
from rl4sys.policy import (
    BoxAction,
    DiscreteAction,
    Head,
    MultiDiscreteAction,
    PolicySpec,
    Program,
    ProgramBuilder,
    layout_of,
)
from rl4sys.replay import OnceFresh
from rl4sys.state import State, generator_state, require, restore_generator

_FACTS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
_APPROX_KL = _FACTS.index("approx_kl")


@register_algorithm("ppo")
class PPOConfig(AlgorithmConfig):
    """On-policy; discrete, multi-discrete and continuous actions."""

    lr: float = Field(3e-4, gt=0)
    """Step size of Adam. Higher learns faster and breaks sooner."""
    anneal_lr: bool = True
    """Lower the step size linearly to zero over the run."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """Weight of long returns in advantages. Higher trusts rewards more than the critic."""
    clip_ratio: float = Field(0.2, gt=0, lt=1)
    """How far the new policy may move from the old one per batch before the gradient stops."""
    epochs: int = Field(10, ge=1)
    """Passes over each batch. More use the data better, up to where the clip holds everything back."""
    minibatch_size: int = Field(256, ge=1)
    """Steps per gradient step."""
    value_coef: float = Field(0.5, ge=0)
    """Weight of the critic's loss."""
    entropy_coef: float = Field(0.0, ge=0)
    """Reward for randomness. Higher explores longer."""
    clip_value: float | None = Field(None, gt=0)
    """If set, the critic may move no further than this from its earlier prediction per batch."""
    max_grad_norm: float = Field(0.5, gt=0)
    """Longer gradients are shortened to this length."""
    target_kl: float | None = Field(None, gt=0)
    """If set, a batch is left early once the policy has moved 1.5 times this far."""
    normalize_advantage: bool = True
    """Give the advantages of each minibatch zero mean and unit variance."""
    log_std_init: float = 0.0
    """First logarithm of the standard deviation of continuous actions."""
    max_age: int = Field(4, ge=0)
    """Experience from policies older than this many versions is counted and not used."""
    max_importance: float = Field(2.0, ge=1)
    """Upper clip of the weight that corrects for older policies. Higher has less bias and more variance."""

    buffers = ("trajectory",)

    def build(self, problem: Problem) -> PPO:
        """The algorithm for one problem."""
        return PPO(self, problem)

    def pace(self, buffer_size: int) -> OnceFresh:
        """Each batch once, when the buffer is full."""
        return OnceFresh(buffer_size, self.max_age)

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.minibatch_size

    def steps_between_updates(self, buffer_size: int) -> int:
        """One full buffer."""
        return buffer_size


@dataclass(frozen=True, slots=True)
class _Rollout:
    """The acted rows of a batch, flat: [N, …]."""

    observation: dict[str, torch.Tensor]
    action: torch.Tensor
    columns: torch.Tensor
    """[N, 5]: proximal log-probability, importance weight, advantage, return, earlier value."""

    def shuffled(self, order: Array, size: int) -> Iterator[_Rollout]:
        """Minibatches in this order. Gathering once and slicing is cheaper than gathering for each."""
        index = torch.from_numpy(order).to(self.action.device)
        observation = {name: array[index] for name, array in self.observation.items()}
        action, columns = self.action[index], self.columns[index]
        for start in range(0, len(order), size):
            part = slice(start, start + size)
            yield _Rollout({name: a[part] for name, a in observation.items()}, action[part], columns[part])


class PPO:
    """Improves a policy and a critic from batches of recent experience."""

    def __init__(self, config: PPOConfig, problem: Problem) -> None:
        self._config = config
        self._problem = problem
        self._progress = Progress()
        self._shuffle = problem.seeds.generator("shuffle")
        self.policies, actor, critic = _programs(problem)
        self.parameters = Parameters((*actor.tensors, *critic.tensors), problem.device)
        self._policy_size = layout_of(actor).size
        self.parameters.freeze(*(name for name in self.parameters.views if name.endswith((".mean", ".scale"))))
        orthogonal(self.parameters, {"actor.action": 0.01, "critic.value": 1.0}, problem.torch_generator("init"))
        if isinstance(problem.action, BoxAction):
            self.parameters.set("log_std", torch.full((problem.action.size,), config.log_std_init))
        self._actor = TorchProgram(actor, self.parameters)
        self._critic = TorchProgram(critic, self.parameters)
        self._actor_output = self.policies.explore.head.inputs[0]
        self._critic_output = critic.ops[-1].outputs[0]
        self._adam = FlatAdam(self.parameters, lr=config.lr, epsilon=1e-5, max_norm=config.max_grad_norm)

    def advance(self, progress: Progress) -> None:
        """Take note of how far the run has come."""
        self._progress = progress

    def update(self, batch: Sequences) -> Update:
        """Several epochs of the clipped surrogate objective over one batch (eq. 7 and 9)."""
        config = self._config
        rollout, metrics = self._prepare(batch)
        lr = config.lr * (1.0 - self._progress.fraction) if config.anneal_lr else config.lr
        per_epoch = -(-len(rollout.action) // config.minibatch_size)
        facts: list[torch.Tensor] = []
        taken, norm = 0, torch.zeros(())
        for minibatch in self._minibatches(rollout):
            # Only the last epoch is reported, so that the others need not compute what nobody looks at.
            watched = config.target_kl is not None or taken >= (config.epochs - 1) * per_epoch
            loss, fact = self._loss(minibatch, watched)
            if fact is not None:
                facts.append(fact)
                if config.target_kl is not None and float(fact[_APPROX_KL]) > 1.5 * config.target_kl:
                    break
            norm = self._adam.step(loss, lr)
            taken += 1
        means = torch.stack(facts[-per_epoch:]).mean(0).tolist()
        metrics |= dict(zip(_FACTS, means, strict=True))
        return Update(metrics | {"gradient_norm": float(norm), "epochs": taken / per_epoch, "lr": lr}, {})

    def _minibatches(self, rollout: _Rollout) -> Iterator[_Rollout]:
        """Every row once per epoch, in an order drawn anew."""
        for _ in range(self._config.epochs):
            yield from rollout.shuffled(self._shuffle.permutation(len(rollout.action)), self._config.minibatch_size)

    def _prepare(self, batch: Sequences) -> tuple[_Rollout, dict[str, float]]:
        """Values once for the whole batch, advantages, and the policy that the update must stay near."""
        device = self._problem.device
        shape = batch.acted.shape
        flat = {name: _rows(array, shape) for name, array in batch.observation.items()}
        with torch.no_grad():
            value = self._value({name: torch.from_numpy(a).to(device) for name, a in flat.items()})
        values = value.cpu().numpy().reshape(shape)
        advantage = generalized_advantage(
            batch.reward, batch.discount, batch.acted, values, self._config.gamma, self._config.gae_lambda
        )
        acted = np.flatnonzero(batch.acted)
        observation = {name: torch.from_numpy(array[acted]).to(device) for name, array in flat.items()}
        action = torch.from_numpy(_rows(batch.action, shape)[acted]).to(device)
        behaviour = _rows(batch.extras["log_prob"], shape)[acted]
        age = _rows(batch.age, shape)[acted]
        proximal, weight = self._proximal(observation, action, behaviour, age)
        advantages, old = _rows(advantage, shape)[acted], _rows(values, shape)[acted]
        columns = np.stack([proximal, weight, advantages, advantages + old, old], axis=1)
        metrics = {
            "explained_variance": explained_variance(old, advantages + old),
            "effective_sample_share": float(weight.sum() ** 2 / (len(weight) * np.square(weight).sum())),
            "mean_age": float(age.mean()),
        }
        return _Rollout(observation, action, torch.from_numpy(columns).to(device)), metrics

    def _proximal(
        self, observation: dict[str, torch.Tensor], action: torch.Tensor, behaviour: Array, age: Array
    ) -> tuple[Array, Array]:
        """Log-probabilities under the newest policy, and weights π_newest / π_behaviour, clipped from above."""
        if not age.any():
            return behaviour, np.ones_like(behaviour)
        with torch.no_grad():
            newest = self._evaluate(observation, action).log_prob.cpu().numpy()
        proximal = np.where(age > 0, newest, behaviour)
        bound = np.float32(math.log(self._config.max_importance))
        return proximal, np.exp(np.minimum(proximal - behaviour, bound))

    def _loss(self, rows: _Rollout, watched: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The loss of a minibatch, and, where somebody looks, what it was made of."""
        config = self._config
        proximal, weight, advantage, outcome, old = rows.columns.unbind(1)
        if config.normalize_advantage and len(advantage) > 1:
            deviation, mean = torch.std_mean(advantage)
            advantage = (advantage - mean) / (deviation + 1e-8)
        log_prob, entropy = self._evaluate(rows.observation, rows.action)
        value = self._value(rows.observation)
        policy_loss = clipped_surrogate(log_prob - proximal, advantage, weight, config.clip_ratio)
        value_loss = squared_error(value, outcome, old, config.clip_value)
        loss = policy_loss + config.value_coef * value_loss
        mean_entropy = entropy.mean()
        if config.entropy_coef:
            loss = loss - config.entropy_coef * mean_entropy
        if not watched:
            return loss, None
        with torch.no_grad():
            log_ratio = log_prob - proximal
            ratio = log_ratio.exp()
            approx_kl = (ratio - 1.0 - log_ratio).mean()
            clipped = ((ratio - 1.0).abs() > config.clip_ratio).float().mean()
            return loss, torch.stack([policy_loss, value_loss, mean_entropy, approx_kl, clipped])

    def _evaluate(self, observation: dict[str, torch.Tensor], action: torch.Tensor) -> Evaluation:
        output = self._actor(observation)[self._actor_output]
        mask = observation[self._problem.mask] if self._problem.mask else None
        match self._problem.action:
            case DiscreteAction():
                return categorical(output, action, mask)
            case MultiDiscreteAction(sizes=sizes):
                return multi_categorical(output, action, mask, sizes)
            case BoxAction():
                return gaussian(output, self.parameters.views["log_std"], action)

    def _value(self, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        return self._critic(observation)[self._critic_output].squeeze(-1)  # type: ignore[no-any-return]  # nn.Module

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on."""
        self.parameters.set(f"{name}.mean", torch.from_numpy(mean))
        self.parameters.set(f"{name}.scale", torch.from_numpy(scale))

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy; the critic stays here."""
        return self.parameters.flat[: self._policy_size].cpu().numpy()

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
            "shuffle": generator_state(self._shuffle),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "parameters", "adam", "shuffle")
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._adam.restore(state["adam"])
        restore_generator(self._shuffle, state["shuffle"])


def clipped_surrogate(
    log_ratio: torch.Tensor, advantage: torch.Tensor, weight: torch.Tensor, clip_ratio: float
) -> torch.Tensor:
    """−E[w · min(r·A, clip(r, 1 ± ε)·A)] (eq. 7), with w correcting for the age of the data."""
    ratio = torch.exp(log_ratio)
    clipped = torch.clamp(ratio, 1.0 - clip_ratio, 1.0 + clip_ratio)
    return -(weight * torch.minimum(ratio * advantage, clipped * advantage)).mean()


def squared_error(
    value: torch.Tensor, outcome: torch.Tensor, old: torch.Tensor, clip_value: float | None
) -> torch.Tensor:
    """Half the mean squared error; with a clip, the worse of the moved and the held-back prediction."""
    error = (value - outcome).square()
    if clip_value is not None:
        held_back = old + torch.clamp(value - old, -clip_value, clip_value)
        error = torch.maximum(error, (held_back - outcome).square())
    return 0.5 * error.mean()


def _programs(problem: Problem) -> tuple[Policies, Program, Program]:
    """The two policies over one actor program, that program, and the critic's."""
    builder = ProgramBuilder(problem.observation)
    features = builder.features(standardize=problem.standardize)
    body = problem.networks.actor.body(builder, features, "actor")
    match problem.action:
        case DiscreteAction(n=n):
            head = Head("categorical", (builder.linear(body, n, "actor.action"),), mask=problem.mask)
        case MultiDiscreteAction(sizes=sizes):
            head = Head("categorical", (builder.linear(body, sum(sizes), "actor.action"),), mask=problem.mask)
        case BoxAction(size=size):
            mean = builder.linear(body, size, "actor.action")
            head = Head("gaussian", (mean,), (builder.tensor("log_std", size),))
    actor = builder.program()
    greedy = Head("deterministic", head.inputs, mask=head.mask)
    policies = Policies(PolicySpec(problem.action, actor, head), PolicySpec(problem.action, actor, greedy))

    builder = ProgramBuilder(problem.observation)
    features = builder.features(standardize=problem.standardize)
    builder.linear(problem.networks.critic.body(builder, features, "critic"), 1, "critic.value")
    return policies, without_memory(actor), without_memory(builder.program())


def _rows(array: Array, shape: tuple[int, ...]) -> Array:
    """[B, L, …] as [B·L, …]."""
    return array.reshape(shape[0] * shape[1], *array.shape[2:])
