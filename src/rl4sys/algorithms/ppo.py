"""Proximal Policy Optimization (arXiv:1707.06347), decoupled for data from older policies (arXiv:2110.00641)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from pydantic import Field

from rl4sys.algorithms.actor_and_critic import actor_and_critic
from rl4sys.algorithms.problem import Problem, Progress, Update
from rl4sys.algorithms.registry import AlgorithmConfig, register_algorithm
from rl4sys.algorithms.returns import explained_variance, generalized_advantage
from rl4sys.algorithms.rollouts import Rollout
from rl4sys.algorithms.surrogate import clipped_surrogate, squared_error
from rl4sys.experience import Array, Sequences
from rl4sys.networks import (
    Accumulation,
    Evaluation,
    FlatAdam,
    Parameters,
    TensorMap,
    TorchProgram,
    categorical,
    gaussian,
    multi_categorical,
    orthogonal,
    rows_of,
    rows_of_all,
)
from rl4sys.policy import BoxAction, DiscreteAction, MultiDiscreteAction, layout_of
from rl4sys.replay import OnceFresh
from rl4sys.state import State, generator_state, require, restore_generator

_FACTS = ("policy_loss", "entropy", "approx_kl", "clip_fraction")
_APPROX_KL = _FACTS.index("approx_kl")
Facts: TypeAlias = torch.Tensor | None
"""What is reported about a minibatch, where somebody looks."""


@register_algorithm("ppo")
class PPOConfig(AlgorithmConfig):
    """On-policy; discrete, multi-discrete and continuous actions."""

    lr: float = Field(3e-4, gt=0)
    """Step size of Adam. Higher learns faster and breaks sooner."""
    critic_lr: float | None = Field(None, gt=0)
    """Step size of the critic, if it is to differ; actor and critic then have an optimizer each."""
    anneal_lr: bool = True
    """Lower the step sizes linearly to zero over the run."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """Weight of long returns in advantages. Higher trusts rewards more than the critic."""
    clip_ratio: float = Field(0.2, gt=0, lt=1)
    """How far the new policy may move from the old one per batch before the gradient stops."""
    epochs: int = Field(10, ge=1)
    """Passes over each batch. More use the data better, up to where the clip holds everything back."""
    critic_epochs: int | None = Field(None, ge=1)
    """Passes of the critic, if they are to differ; actor and critic then have an optimizer each."""
    minibatch_size: int = Field(256, ge=1)
    """Steps per gradient step."""
    episodes_per_update: int | None = Field(None, ge=1)
    """If set, an update comes as soon as this many episodes have ended, and with a full buffer at the latest."""
    value_coef: float = Field(0.5, ge=0)
    """Weight of the critic's loss."""
    entropy_coef: float = Field(0.0, ge=0)
    """Reward for randomness. Higher explores longer."""
    clip_value: float | None = Field(None, gt=0)
    """If set, the critic may move no further than this from its earlier prediction per batch."""
    max_grad_norm: float = Field(0.5, gt=0)
    """Longer gradients are shortened to this length."""
    target_kl: float | None = Field(None, gt=0)
    """If set, the policy is left alone for the rest of a batch once it has moved 1.5 times this far."""
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
        """Each batch once, when the buffer is full or enough episodes have ended."""
        return OnceFresh(buffer_size, self.max_age, self.episodes_per_update)

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.minibatch_size

    def steps_between_updates(self, buffer_size: int) -> int:
        """One full buffer."""
        return buffer_size


_LossOf: TypeAlias = Callable[[Rollout, torch.Tensor], tuple[torch.Tensor, Facts]]
"""The loss over some rows with these advantages, and facts about it: means over the rows."""


class PPO:
    """Improves a policy and a critic from batches of recent experience."""

    def __init__(self, config: PPOConfig, problem: Problem) -> None:
        self._config = config
        self._problem = problem
        self._progress = Progress()
        self._shuffle = problem.seeds.generator("shuffle")
        self.policies, actor, critic = actor_and_critic(problem)
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
        self._adam, self._critic_adam = self._optimizers()
        self._accumulation = Accumulation()

    def advance(self, progress: Progress) -> None:
        """Take note of how far the run has come."""
        self._progress = progress

    def _optimizers(self) -> tuple[FlatAdam, FlatAdam | None]:
        """One for all, which is faster; or one for the actor and one for the critic, where they differ."""
        config, whole = self._config, self.parameters
        if config.critic_lr is None and config.critic_epochs is None:
            return FlatAdam(whole, lr=config.lr, epsilon=1e-5, max_norm=config.max_grad_norm), None
        actor, critic = (whole.part(slice(*ends)) for ends in ((0, self._policy_size), (self._policy_size, None)))
        return (
            FlatAdam(actor, lr=config.lr, epsilon=1e-5, max_norm=config.max_grad_norm),
            FlatAdam(critic, lr=config.critic_lr or config.lr, epsilon=1e-5, max_norm=config.max_grad_norm),
        )

    def update(self, batch: Sequences) -> Update:
        """Several epochs of the clipped surrogate objective over one batch (eq. 7 and 9)."""
        rollout, metrics = self._prepare(batch)
        left = 1.0 - self._progress.fraction if self._config.anneal_lr else 1.0
        if self._critic_adam is None:
            metrics |= self._learn_together(rollout, left)
        else:
            metrics |= self._learn_apart(rollout, left, self._critic_adam)
        return Update(metrics | {"lr": self._config.lr * left}, {})

    def _learn_together(self, rollout: Rollout, left: float) -> dict[str, float]:
        """Actor and critic in one step of one optimizer; `left` is the share of the step size that annealing leaves."""
        config = self._config
        per_epoch = -(-len(rollout.action) // config.minibatch_size)
        facts: list[torch.Tensor] = []
        taken, norm = 0, torch.zeros(())
        for minibatch in self._minibatches(rollout, config.epochs):
            # Only the last epoch is reported, so that the others need not compute what nobody looks at.
            watched = config.target_kl is not None or taken >= (config.epochs - 1) * per_epoch
            loss, fact = self._gradient(self.parameters, minibatch, partial(self._joint_loss, watched=watched))
            if fact is not None:
                facts.append(fact)
                if self._is_too_far(fact):
                    break
            norm = self._adam.step_along(loss, config.lr * left)
            taken += 1
        means = torch.stack(facts[-per_epoch:]).mean(0).tolist()
        named = dict(zip((*_FACTS, "value_loss"), means, strict=True))
        return named | {"gradient_norm": float(norm), "epochs": taken / per_epoch}

    def _learn_apart(self, rollout: Rollout, left: float, critic_adam: FlatAdam) -> dict[str, float]:
        """First the actor, until it is through or too far from where it was; then the critic."""
        config = self._config
        per_epoch = -(-len(rollout.action) // config.minibatch_size)
        facts: list[torch.Tensor] = []
        taken, norm = 0, torch.zeros(())
        for minibatch in self._minibatches(rollout, config.epochs):
            loss, fact = self._gradient(self.parameters, minibatch, partial(self._policy_loss, watched=True))
            assert fact is not None
            facts.append(fact)
            if self._is_too_far(fact):
                break
            norm = self._adam.step_along(loss, config.lr * left)
            taken += 1
        errors: list[torch.Tensor] = []
        critic_lr = (config.critic_lr or config.lr) * left
        for minibatch in self._minibatches(rollout, config.critic_epochs or config.epochs):
            loss, error = self._gradient(self.parameters, minibatch, self._weighted_value_loss)
            assert error is not None
            errors.append(error)
            critic_adam.step_along(loss, critic_lr)
        named = dict(zip(_FACTS, torch.stack(facts[-per_epoch:]).mean(0).tolist(), strict=True))
        value_loss = float(torch.stack(errors[-per_epoch:]).mean())
        return named | {"value_loss": value_loss, "gradient_norm": float(norm), "epochs": taken / per_epoch}

    def _gradient(self, parameters: Parameters, rows: Rollout, loss_of: _LossOf) -> tuple[torch.Tensor, Facts]:
        """The gradient of a loss over a minibatch, in parts where memory is short; returns the loss and its facts."""
        count, advantage = len(rows.action), self._normalized(rows.columns[:, 2])

        def add(part: slice | None) -> tuple[torch.Tensor, Facts]:
            own = rows.rows(part)
            loss, fact = loss_of(own, advantage if part is None else advantage[part])
            share = len(own.action) / count
            if part is not None:
                loss, fact = loss * share, None if fact is None else fact * share
            loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            return loss.detach(), fact

        found = self._accumulation.gradient(parameters, count, add)
        if len(found) == 1:
            return found[0]
        known = [fact for _, fact in found if fact is not None]
        return torch.stack([loss for loss, _ in found]).sum(), torch.stack(known).sum(0) if known else None

    def _normalized(self, advantage: torch.Tensor) -> torch.Tensor:
        if not self._config.normalize_advantage or len(advantage) < 2:
            return advantage
        deviation, mean = torch.std_mean(advantage)
        return (advantage - mean) / (deviation + 1e-8)

    def _is_too_far(self, fact: torch.Tensor) -> bool:
        target = self._config.target_kl
        return target is not None and float(fact[_APPROX_KL]) > 1.5 * target

    def _minibatches(self, rollout: Rollout, epochs: int) -> Iterator[Rollout]:
        """Every row once per epoch, in an order drawn anew."""
        for _ in range(epochs):
            yield from rollout.shuffled(self._shuffle.permutation(len(rollout.action)), self._config.minibatch_size)

    def _prepare(self, batch: Sequences) -> tuple[Rollout, dict[str, float]]:
        """Values once for the whole batch, advantages, and the policy that the update must stay near."""
        device = self._problem.device
        shape = batch.acted.shape
        flat = {name: _rows(array, shape) for name, array in batch.observation.items()}
        seen = {name: torch.from_numpy(array).to(device) for name, array in flat.items()}
        with torch.no_grad():
            parts = self._accumulation.results(math.prod(shape), lambda part: self._value(rows_of_all(seen, part)))
        values = torch.cat(parts).cpu().numpy().reshape(shape)
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
        return Rollout(observation, action, torch.from_numpy(columns).to(device)), metrics

    def _proximal(
        self, observation: dict[str, torch.Tensor], action: torch.Tensor, behaviour: Array, age: Array
    ) -> tuple[Array, Array]:
        """Log-probabilities under the newest policy, and weights π_newest / π_behaviour, clipped from above."""
        if not age.any():
            return behaviour, np.ones_like(behaviour)
        with torch.no_grad():
            parts = self._accumulation.results(
                len(action), lambda part: self._evaluate(rows_of_all(observation, part), rows_of(action, part)).log_prob
            )
        newest = torch.cat(parts).cpu().numpy()
        proximal = np.where(age > 0, newest, behaviour)
        bound = np.float32(math.log(self._config.max_importance))
        return proximal, np.exp(np.minimum(proximal - behaviour, bound))

    def _joint_loss(self, rows: Rollout, advantage: torch.Tensor, watched: bool) -> tuple[torch.Tensor, Facts]:
        """The loss of actor and critic together, and, where somebody looks, the facts about it."""
        policy_loss, fact = self._policy_loss(rows, advantage, watched)
        value_loss = self._value_loss(rows)
        if fact is not None:
            fact = torch.cat([fact, value_loss.detach()[None]])
        return policy_loss + self._config.value_coef * value_loss, fact

    def _weighted_value_loss(self, rows: Rollout, advantage: torch.Tensor) -> tuple[torch.Tensor, Facts]:
        error = self._value_loss(rows)
        return self._config.value_coef * error, error.detach()

    def _policy_loss(self, rows: Rollout, advantage: torch.Tensor, watched: bool) -> tuple[torch.Tensor, Facts]:
        """The actor's loss over a minibatch, and, where somebody looks, the facts about it."""
        config = self._config
        proximal, weight = rows.columns[:, :2].unbind(1)
        log_prob, entropy = self._evaluate(rows.observation, rows.action)
        loss = surrogate = clipped_surrogate(log_prob - proximal, advantage, weight, config.clip_ratio)
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
            return loss, torch.stack([surrogate, mean_entropy, approx_kl, clipped])

    def _value_loss(self, rows: Rollout) -> torch.Tensor:
        outcome, old = rows.columns[:, 3:].unbind(1)
        return squared_error(self._value(rows.observation), outcome, old, self._config.clip_value)

    def _evaluate(self, observation: TensorMap, action: torch.Tensor) -> Evaluation:
        output = self._actor(observation)[self._actor_output]
        mask = observation[self._problem.mask] if self._problem.mask else None
        match self._problem.action:
            case DiscreteAction():
                return categorical(output, action, mask)
            case MultiDiscreteAction(sizes=sizes):
                return multi_categorical(output, action, mask, sizes)
            case BoxAction():
                return gaussian(output, self.parameters.views["log_std"], action)

    def _value(self, observation: TensorMap) -> torch.Tensor:
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
        state = {
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
            "shuffle": generator_state(self._shuffle),
        }
        return state if self._critic_adam is None else state | {"critic_adam": self._critic_adam.state()}

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "parameters", "adam", "shuffle", *(["critic_adam"] if self._critic_adam is not None else []))
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._adam.restore(state["adam"])
        if self._critic_adam is not None:
            self._critic_adam.restore(state["critic_adam"])
        restore_generator(self._shuffle, state["shuffle"])


def _rows(array: Array, shape: tuple[int, ...]) -> Array:
    """[B, L, …] as [B·L, …]."""
    return array.reshape(shape[0] * shape[1], *array.shape[2:])
