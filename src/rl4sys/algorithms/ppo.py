"""Proximal Policy Optimization (arXiv:1707.06347), decoupled for data from older policies (arXiv:2110.00641)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator

from rl4sys.engine import (
    AdvantageBatch,
    AlgorithmConfig,
    Horizon,
    ImitationConfig,
    Policies,
    Problem,
    TrainState,
    Update,
    UpdateWork,
    advantage_batch,
    advantage_streams,
    explained_variance,
    horizon_seconds,
    learning_rate,
    register_algorithm,
)
from rl4sys.experience import Sequences
from rl4sys.networks import (
    ActionLikelihood,
    Loss,
    Network,
    OptimizerSettings,
    action_likelihood,
    imitation_log_prob,
    lowest_log_std,
    orthogonal,
)
from rl4sys.policy import BoxAction, Head, MixedAction, Program, ProgramBuilder
from rl4sys.replay import OnceFresh


@register_algorithm("ppo")
class PPOConfig(AlgorithmConfig):
    """On-policy; discrete, multi-discrete, continuous and mixed actions."""

    lr: float = Field(3e-4, gt=0)
    """Learning rate. Higher learns faster and is less stable."""
    critic_lr: float | None = Field(None, gt=0)
    """Learning rate of the critic, if it is to differ; actor and critic then have an optimizer each."""
    anneal_lr: bool = True
    """Lower the learning rates linearly to zero over the run."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """Weight of long returns in advantages. Higher trusts rewards more than the critic."""
    clip_ratio: float = Field(0.2, gt=0, lt=1)
    """How far the new policy may move from the old one per batch before the gradient stops."""
    epochs: int = Field(10, ge=1)
    """Passes over each batch. More use the data better, until most of it is clipped."""
    critic_epochs: int | None = Field(None, ge=1)
    """Passes of the critic, if they are to differ; actor and critic then have an optimizer each."""
    minibatch_size: int = Field(256, ge=1)
    """Steps per gradient step. With memory: whole streams that together have about this many steps."""
    episodes_per_update: int | None = Field(None, ge=1)
    """If set, an update comes as soon as this many episodes have ended, and with a full buffer at the latest."""
    value_coef: float = Field(0.5, ge=0)
    """Weight of the critic's loss."""
    entropy_coef: float = Field(0.0, ge=0)
    """Bonus for entropy. Higher explores longer."""
    clip_value: float | None = Field(None, gt=0)
    """If set, the critic may move no further than this from its earlier prediction per batch."""
    max_grad_norm: float | None = Field(0.5, gt=0)
    """Longer gradients are scaled down to this norm; null leaves them as they are."""
    target_kl: float | None = Field(None, gt=0)
    """If set, training on a batch stops once the policy has moved by 1.5 times this divergence."""
    normalize_advantage: bool = True
    """Give the advantages of each minibatch zero mean and unit variance."""
    log_std_init: float = 0.0
    """Initial logarithm of the standard deviation of continuous actions."""
    max_age: int = Field(4, ge=0)
    """Experience from policies older than this many versions is counted and not used."""
    max_importance: float = Field(2.0, ge=1)
    """Upper clip of the weight that corrects for older policies. Higher has less bias and more variance."""

    shared_trunk: bool = False
    """Let the critic share all layers of the actor but the last: fewer weights, and features that both shape, the
    critic by `value_coef`. The section `network.critic` is then not used."""

    horizon: Horizon = None
    """Discount by elapsed time instead of by `gamma`, such as `30s`: what follows dt seconds later is worth
    exp(−dt / horizon). A longer one looks further ahead. Clients pass `now` to `act`, environments to `info`."""

    buffers = ("trajectory",)
    imitates = True
    schedulable: ClassVar[tuple[str, ...]] = ("lr", "critic_lr", "clip_ratio", "clip_value", "entropy_coef")

    @model_validator(mode="after")
    def _check_trunk(self) -> PPOConfig:
        if self.shared_trunk and (self.critic_lr is not None or self.critic_epochs is not None):
            raise ValueError("shared_trunk trains actor and critic together; leave out critic_lr and critic_epochs")
        return self

    @property
    def horizon_seconds(self) -> float | None:
        """That of `horizon`."""
        return horizon_seconds(self.horizon)

    def build(self, problem: Problem) -> PPO:
        """The algorithm for one problem."""
        return PPO(self, problem)

    def pace(self, buffer_size: int) -> OnceFresh:
        """Each batch once, when the buffer is full or enough episodes have ended."""
        return OnceFresh(buffer_size, self.max_age, self.episodes_per_update)

    def work(self, buffer_size: int) -> UpdateWork:
        """All passes over a batch, of the actor and of the critic."""
        passes = max(self.epochs, self.critic_epochs or 0)
        return UpdateWork(passes * math.ceil(buffer_size / self.minibatch_size) / buffer_size, passes)

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.minibatch_size


class PPO:
    """Improves a policy and a critic from batches of recent experience."""

    def __init__(self, config: PPOConfig, problem: Problem) -> None:
        self.config, self.problem, self.action = config, problem, problem.action
        self.is_masked = problem.mask is not None or problem.count is not None
        self.gamma = config.step_gamma
        self.policies, actor, (critic, value) = _policies(problem, shared_trunk=config.shared_trunk)
        self.train_state = state = TrainState(problem, self.policies, memory=True)
        self.shuffle = state.generator("shuffle")
        generator, gains = problem.torch_generator("init"), {"actor.action": 0.01, "critic.value": 1.0}
        # One optimizer for both networks is faster; they have one each where their settings differ.
        groups = {"actor_and_critic": ([actor, critic], config.lr, "lr")}
        if config.critic_lr is not None or config.critic_epochs is not None:
            groups = {
                "actor": ([actor], config.lr, "lr"),
                "critic": ([critic], config.critic_lr or config.lr, "critic_lr"),
            }
        optimizers = [
            state.optimizer(
                name,
                programs,
                OptimizerSettings(lr, 1e-5, config.max_grad_norm, config.anneal_lr, lr_setting=setting),
                initialize=lambda parameters: orthogonal(parameters, gains, generator),
            )
            for name, (programs, lr, setting) in groups.items()
        ]
        self.actor = Network(actor, self.policies.explore.head.inputs, optimizers[0])
        self.critic = Network(critic, [value], optimizers[-1], squeeze=True)
        has_memory = self.actor.has_memory or self.critic.has_memory
        self.with_advantages: Callable[..., AdvantageBatch] = advantage_batch
        if has_memory:
            self.with_advantages = partial(advantage_streams, action=problem.remembered_action)
        if isinstance(problem.action, BoxAction | MixedAction):
            optimizers[0].parameters.set("log_std", torch.full((len(problem.action.low),), config.log_std_init))

    def update(self, batch: Sequences) -> Update:
        """Several epochs of the clipped surrogate objective over one batch (eq. 7 and 9)."""
        config, optimizer = self.config, self.actor.optimizer
        rows = self.with_advantages(batch, self.critic, self.gamma, config.gae_lambda)
        metrics: dict[str, torch.Tensor | float] = {"explained_variance": explained_variance(rows.value, rows.returns)}
        metrics["mean_age"] = rows.age.float().mean()
        rows = self.proximal(rows)
        metrics["effective_sample_share"] = rows.weight.mean().square() / rows.weight.square().mean()
        if self.critic.optimizer is optimizer:
            metrics |= self.train_policy(rows, self.joint_loss)
        else:
            metrics |= self.train_policy(rows, self.policy_loss)
            batches = self.minibatches(rows, config.critic_epochs or config.epochs)
            losses = [self.critic.minimize(self.value_loss, minibatch)[1] for minibatch in batches]
            metrics["value_loss"] = torch.stack(losses[-rows.minibatch_count(config.minibatch_size) :]).mean()
        return Update(metrics | {"lr": optimizer.lr, "gradient_norm": optimizer.gradient_norm}, {})

    def imitate(self, batch: Sequences, plan: ImitationConfig) -> Update:
        """Fit the actor to decisions of the incumbent, and the critic to the λ-returns that followed them."""
        config, actor, critic = self.config, self.actor.optimizer, self.critic.optimizer
        losses: list[torch.Tensor] = []
        with learning_rate(plan.lr, *{id(each): each for each in (actor, critic)}.values()):
            for _ in range(plan.epochs):
                # The critic's targets follow the critic, which is all that is known after the last decision.
                rows = self.with_advantages(batch, self.critic, self.gamma, config.gae_lambda)
                for minibatch in rows.minibatches(plan.minibatch_size, self.shuffle):
                    losses.append(actor.minimize(lambda rows: self.imitation_loss(rows, plan.floor), minibatch)[1])
                    if critic is not actor:
                        self.critic.minimize(self.value_loss, minibatch)
        if isinstance(self.action, BoxAction | MixedAction):
            lowest = lowest_log_std(self.action, plan.floor).to(actor.parameters.flat.device)
            actor.parameters.set("log_std", torch.maximum(actor.parameters.views["log_std"].detach(), lowest))
        last = losses[-rows.minibatch_count(plan.minibatch_size) :]
        explained = explained_variance(rows.value, rows.returns)
        return Update({"imitation_loss": torch.stack(last).mean(), "explained_variance": explained}, {})

    def imitation_loss(self, batch: AdvantageBatch, floor: float) -> tuple[torch.Tensor, ...]:
        """−E[log π(a)] with a floor under exploration, plus the critic's loss if it has the same optimizer."""
        allowed = self.problem.allowed(batch.observation) if self.is_masked else None
        log_std = self.actor.optimizer.parameters.views.get("log_std")
        log_prob = imitation_log_prob(self.action, batch.outputs(self.actor), batch.action, allowed, log_std, floor)
        loss = -log_prob.mean()
        return (loss + self.value_loss(batch)[0] if self.critic.optimizer is self.actor.optimizer else loss), loss

    def proximal(self, rows: AdvantageBatch) -> AdvantageBatch:
        """The batch as if the newest policy had acted, with weights π_newest / π_behaviour, clipped from above."""
        if not rows.age.any():
            return rows
        with torch.no_grad():
            newest = self.likelihood(rows).log_prob
        proximal = torch.where(rows.age > 0, newest, rows.log_prob)
        weight = (proximal - rows.log_prob).clamp(max=math.log(self.config.max_importance)).exp()
        return replace(rows, log_prob=proximal, weight=weight)

    def train_policy(self, rows: AdvantageBatch, loss: Loss[tuple[torch.Tensor, ...]]) -> dict[str, Any]:
        """Epochs over the batch, until the policy has moved too far; returns metrics of the last epoch."""
        config, optimizer = self.config, self.actor.optimizer
        per_epoch = rows.minibatch_count(config.minibatch_size)
        found: list[tuple[torch.Tensor, ...]] = []
        steps = 0
        for minibatch in self.minibatches(rows, config.epochs):
            found.append(optimizer.differentiate(loss, minibatch)[1:])
            if config.target_kl is not None and _approx_kl(found[-1][2]) > 1.5 * config.target_kl:
                break
            optimizer.step()
            steps += 1
        clip = self.train_state.scheduled("clip_ratio", config.clip_ratio)
        surrogate, entropy, log_ratios, *value_loss = zip(*found[-per_epoch:], strict=True)
        means = {"policy_loss": surrogate, "entropy": entropy, "approx_kl": [_approx_kl(r) for r in log_ratios]}
        means["clip_fraction"] = [((r.exp() - 1.0).abs() > clip).float().mean() for r in log_ratios]
        means |= {"value_loss": value_loss[0]} if value_loss else {}
        return {name: torch.stack(list(each)).mean() for name, each in means.items()} | {"epochs": steps / per_epoch}

    def joint_loss(self, batch: AdvantageBatch) -> tuple[torch.Tensor, ...]:
        """The losses of actor and critic, for one optimizer (eq. 9)."""
        policy_loss, *policy = self.policy_loss(batch)
        weighted, value_loss = self.value_loss(batch)
        return policy_loss + weighted, *policy, value_loss

    def policy_loss(self, batch: AdvantageBatch) -> tuple[torch.Tensor, ...]:
        """−E[w · min(r A, clip(r, 1 ± ε) A)] (eq. 7) minus the entropy bonus; then its parts and log r."""
        state, config = self.train_state, self.config
        clip = state.scheduled("clip_ratio", config.clip_ratio)
        entropy_coef = state.scheduled("entropy_coef", config.entropy_coef)
        log_prob, entropy = self.likelihood(batch)
        log_ratio = log_prob - batch.log_prob
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
        surrogate = -(batch.weight * torch.minimum(ratio * batch.advantage, clipped * batch.advantage)).mean()
        mean_entropy = entropy.mean()
        loss = surrogate - entropy_coef * mean_entropy if entropy_coef else surrogate
        return loss, surrogate, mean_entropy, log_ratio

    def value_loss(self, batch: AdvantageBatch) -> tuple[torch.Tensor, ...]:
        """c · E[½ (V(s) − R)²], and without c; with a clip, the larger of the errors of V and of V clipped."""
        value, clip = batch.outputs(self.critic), self.config.clip_value
        error = (value - batch.returns).square()
        if clip is not None:
            clip = self.train_state.scheduled("clip_value", clip)
            near = batch.value + (value - batch.value).clamp(-clip, clip)
            error = torch.maximum(error, (near - batch.returns).square())
        loss = 0.5 * error.mean()
        return self.config.value_coef * loss, loss

    def likelihood(self, batch: AdvantageBatch) -> ActionLikelihood:
        """Log-probability of the actions under the present policy, and its entropy."""
        allowed = self.problem.allowed(batch.observation) if self.is_masked else None
        log_std = self.actor.optimizer.parameters.views.get("log_std")
        return action_likelihood(self.action, batch.outputs(self.actor), batch.action, allowed, log_std)

    def minibatches(self, rows: AdvantageBatch, epochs: int) -> Iterator[AdvantageBatch]:
        """Every step once per epoch, in random order, with advantages normalised per minibatch."""
        for _ in range(epochs):
            for minibatch in rows.minibatches(self.config.minibatch_size, self.shuffle):
                if self.config.normalize_advantage and len(minibatch.advantage) > 1:
                    deviation, mean = torch.std_mean(minibatch.advantage)
                    minibatch = replace(minibatch, advantage=(minibatch.advantage - mean) / (deviation + 1e-8))
                yield minibatch


def _approx_kl(log_ratio: torch.Tensor) -> torch.Tensor:
    """E[r − 1 − log r]: an unbiased estimate of the divergence with little variance."""
    return (log_ratio.exp() - 1.0 - log_ratio).mean()


def _policies(problem: Problem, *, shared_trunk: bool) -> tuple[Policies, Program, tuple[Program, str]]:
    """The two policies over one actor program, that program, and the critic's with the register of its value."""
    builder = ProgramBuilder(problem.observation)
    body = problem.actor_body(builder)
    output = problem.actor_scores(builder, body)
    if isinstance(problem.action, BoxAction):
        explore = Head("gaussian", (output,), (builder.tensor("log_std", problem.action.size),))
    elif isinstance(problem.action, MixedAction):
        log_std = builder.tensor("log_std", len(problem.action.low))
        explore = Head("mixed", (output,), (log_std,), mask=problem.mask)
    else:
        explore = problem.choosing_head("categorical", (output,))
    exploit = replace(explore, kind="deterministic", tensors=())
    program = builder.program()
    policies = Policies.over(problem.action, program, explore, exploit)
    if not shared_trunk:
        return policies, program, problem.value_program()
    # Tensors of one name are one tensor, so the critic's layers are those of the actor.
    value = builder.linear(problem.networks.actor.summary(builder, body, "critic"), 1, "critic.value")
    return policies, program, (builder.program(), value)
