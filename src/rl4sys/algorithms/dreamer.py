"""DreamerV3 (arXiv:2301.04104): learns a model of the world, and a policy inside of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from pydantic import Field

from rl4sys.algorithms.world_model_config import WorldModelConfig
from rl4sys.algorithms.world_policies import require_suitable, world_forecast, world_policies, world_weights
from rl4sys.dynamics import Evidence, Forecast, NormedMlp, State, evidence
from rl4sys.dynamics.latents import drawn, probabilities
from rl4sys.engine import Problem, TrainState, Update, lambda_return, register_algorithm
from rl4sys.experience import ArraySpec, Sequences
from rl4sys.networks import truncated_normal
from rl4sys.networks.two_hot import BINS, TwoHot
from rl4sys.policy import ActionSpec, DiscreteAction, Program, output_size


@register_algorithm("dreamer")
class DreamerConfig(WorldModelConfig):
    """Model-based; one discrete choice or continuous actions with finite bounds; vectors, images or both."""

    gamma: float = Field(0.997, ge=0, le=1)
    """Discount per step. Nearer to 1 looks further ahead."""
    horizon: int = Field(15, ge=1)
    """Steps that are imagined from each state. More see later consequences, and more errors of the model."""
    imag_last: int | None = Field(None, ge=2)
    """Imagine from this many of the last rows of each sequence; from all of them if not given. Fewer are faster."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """Weight of long returns. Higher trusts imagined rewards more than the critic."""
    entropy_coef: float = Field(3e-4, ge=0)
    """Bonus for entropy. Higher explores longer."""
    replay_value_scale: float = Field(0.3, ge=0)
    """Weight of the critic's loss on recorded steps; it trains the model, too."""
    slow_critic_rate: float = Field(0.02, gt=0, le=1)
    """Share of the critic in its slow copy after each update, which keeps the critic steady."""

    schedulable = ("lr", "entropy_coef")

    def build(self, problem: Problem) -> Dreamer:
        """The algorithm for one problem."""
        return Dreamer(self, problem)

    def own_weights(self, observation: tuple[ArraySpec, ...], action: ActionSpec) -> int:
        """Weights of all networks, the slow critic included."""
        outputs = output_size(action) if isinstance(action, DiscreteAction) else 2 * output_size(action)
        two_hot = TwoHot(torch.device("cpu"))
        return world_weights(self.model_size, observation, action, two_hot, (outputs, BINS, BINS))


class Dreamer:
    """Trains the world model on recorded sequences, and actor and critic on imagined ones."""

    def __init__(self, config: DreamerConfig, problem: Problem) -> None:
        require_suitable(problem, "Dreamer")
        self.config, self.problem = config, problem
        size, self.two_hot = config.model_size, TwoHot(problem.device)
        self.model = model = config.world_model(problem, config.gamma, self.two_hot)
        self.is_discrete = isinstance(problem.action, DiscreteAction)
        self.actor = NormedMlp("actor", model.rssm.feature, size.units, size.layers)
        self.critic = NormedMlp("critic", model.rssm.feature, size.units, size.layers, BINS)
        self.policies = world_policies(problem, model, self.actor)
        self.train_state = state = TrainState(problem, self.policies, config.gamma, memory=True)
        programs = self.policies.explore.program, Program((), (), (*model.tensors(), *self.critic.tensors()))
        generator, gains = problem.torch_generator("init"), {"reward.out": 0.0, "critic.out": 0.0}
        gains |= dict.fromkeys(("actor.action", "actor.mean", "actor.std"), 0.01)
        self.optimizer = state.optimizer(
            "dreamer",
            programs,
            config.optimizer_settings(),
            initialize=lambda parameters: truncated_normal(parameters, gains, generator),
        )
        self.views = self.optimizer.parameters.views
        self.slow_critic = state.target_copy("critic", self.optimizer.parameters, self.critic.tensors())
        self.scale = state.running("return_scale", 3)

    def update(self, batch: Sequences) -> Update:
        """One step on the losses of model, actor and critic together."""
        config, state = self.config, self.train_state
        data = evidence(batch, self.problem.action, config.context, self.problem.device)
        uniform = state.random(len(data), config.sequence_length, self.model.rssm.groups)
        loss, returns, *found = self.optimizer.minimize(self.loss, data, uniform)
        update_scale(self.scale, returns)
        self.slow_critic.polyak_update(config.slow_critic_rate)
        metrics = dict(zip(self.metric_names, found, strict=True))
        return Update({"loss": loss, **metrics, "return_scale": return_scale(self.scale)}, {})

    def forecast(self, sequences: Sequences, context: int) -> Forecast:
        """What follows the first `context` rows, given the actions."""
        return world_forecast(self.model, self.views, self.problem, sequences, context)

    def loss(self, data: Evidence, uniform: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The sum of all losses; then the imagined returns and the metrics."""
        config = self.config
        understood = self.model.understand(self.views, data, uniform)
        start = State(*(part[:, -(config.imag_last or config.sequence_length) :] for part in understood.state))
        dream = self.imagine(start.rows())
        actor_loss, entropy = self.actor_loss(dream)
        critic_loss = self.value_loss(dream.feature, dream.log_values[:-1].flatten(0, 1), dream.returns.flatten())
        critic_loss = (dream.weight.flatten() * critic_loss).mean()
        replay_loss = self.replay_value_loss(data, start.feature(), dream.returns[0].view(start.deter.shape[:2]))
        total = understood.loss + actor_loss + critic_loss + config.replay_value_scale * replay_loss
        metrics = understood.metrics | {
            "actor_loss": actor_loss,
            "critic_loss": critic_loss,
            "replay_value_loss": replay_loss,
            "entropy": entropy,
            "imagined_return": dream.returns.mean(),
            "imagined_reward": dream.reward[1:].mean(),
            "value": dream.value.mean(),
        }
        self.metric_names = list(metrics)
        # Rows along the last axis, as the optimizer joins them.
        return total, dream.returns.flatten(), *metrics.values()

    def imagine(self, state: State) -> Dream:
        """Act inside of the model from each state [N, …], and compute λ-returns (eq. 7)."""
        config, views, model, rows = self.config, self.views, self.model, len(state.deter)
        features, actions = [state.feature()], []
        with torch.no_grad():
            for _ in range(config.horizon):
                action = self.sampled(self.actor(views, features[-1]))
                uniform = self.train_state.random(rows, model.rssm.groups)
                state = model.rssm.imagine(views, state, action.clamp(-1.0, 1.0), uniform)
                actions.append(action)
                features.append(state.feature())
            feature = torch.cat(features)
            reward = self.two_hot.predict(model.reward(views, feature)).view(-1, rows)
            live = torch.sigmoid(model.continues(views, feature)).view(-1, rows)
        log_values = F.log_softmax(self.critic(views, feature), -1).view(-1, rows, BINS)
        with torch.no_grad():
            value = self.two_hot.mean(log_values.exp())
            returns = lambda_return(reward, live, value, config.gae_lambda)
        # A state counts as much as it is likely to be reached; the discount of its own first step does not count.
        weight = (live.cumprod(0) / config.gamma)[:-1]
        return Dream(feature[:-rows], torch.cat(actions), reward, value, log_values, returns, weight)

    def actor_loss(self, dream: Dream) -> tuple[torch.Tensor, torch.Tensor]:
        """−E[w (log π(a | s) · A / max(1, S) + η H(π))] (eq. 11), for both kinds of actions; and the entropy."""
        advantage = (dream.returns - dream.value[:-1]) / return_scale(self.scale)
        log_prob, entropy = self.likelihood(self.actor(self.views, dream.feature), dream.action)
        entropy_coef = self.train_state.scheduled("entropy_coef", self.config.entropy_coef)
        objective = log_prob * advantage.flatten() + entropy_coef * entropy
        return -(dream.weight.flatten() * objective).mean(), entropy.mean()

    def value_loss(self, feature: torch.Tensor, log_values: torch.Tensor, returns: torch.Tensor) -> torch.Tensor:
        """Two-hot cross-entropies [N] to the λ-returns, and to the values of the slow critic (eq. 8)."""
        with torch.no_grad():
            slow = self.two_hot.predict(self.critic(self.slow_critic.views, feature))
        return self.two_hot.loss(log_values, returns, slow)

    def replay_value_loss(self, data: Evidence, feature: torch.Tensor, imagined: torch.Tensor) -> torch.Tensor:
        """The same on recorded steps [B, K], whose λ-returns end in those that were imagined from there."""
        config, used = self.config, slice(-feature.shape[1], None)
        reward, live, last, weight = (
            column[:, used] for column in (data.reward, data.continues * config.gamma, data.is_last, data.weight)
        )
        blend = (~last).to(torch.float32) * config.gae_lambda
        returns = lambda_return(reward.T, live.T, imagined.T, blend.T).T
        flat = feature[:, :-1].flatten(0, 1)
        losses = self.value_loss(flat, F.log_softmax(self.critic(self.views, flat), -1), returns.flatten())
        counts = (weight * ~last)[:, :-1].flatten()
        return (losses * counts).sum() / counts.sum().clamp(min=1.0)

    def sampled(self, hidden: torch.Tensor) -> torch.Tensor:
        """Actions [N, a] as networks see them, before they are clipped."""
        if self.is_discrete:
            return drawn(self._choices(hidden), self.train_state.random(len(hidden), 1))
        mean, std = self._gaussian(hidden)
        return mean + std * self.train_state.normal(*mean.shape)

    def likelihood(self, hidden: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probability [N] of actions, and the entropy [N] of the policy."""
        if self.is_discrete:
            chances = self._choices(hidden).squeeze(1)
            log_chances = chances.log()
            return (log_chances * action).sum(-1), -(chances * log_chances).sum(-1)
        mean, std = self._gaussian(hidden)
        log_std = std.log()
        log_prob = -0.5 * ((action - mean) / std).square() - log_std - _HALF_LOG_TWO_PI
        return log_prob.sum(-1), (log_std + 0.5 + _HALF_LOG_TWO_PI).sum(-1)

    def _choices(self, hidden: torch.Tensor) -> torch.Tensor:
        """Probabilities [N, 1, n]."""
        logits = torch.addmm(self.views["actor.action.bias"], hidden, self.views["actor.action.weight"])
        return probabilities(logits, logits.shape[-1])

    def _gaussian(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean within [−1, 1] and standard deviation within [0.1, 1]."""
        mean, std = (
            torch.addmm(self.views[f"actor.{part}.bias"], hidden, self.views[f"actor.{part}.weight"])
            for part in ("mean", "std")
        )
        return torch.tanh(mean), 0.9 * torch.sigmoid(std + 2.0) + 0.1


class Dream(NamedTuple):
    """Imagined steps, time first: T steps from each of N states."""

    feature: torch.Tensor
    """[T · N, f]: where an action was chosen."""
    action: torch.Tensor
    """[T · N, a]"""
    reward: torch.Tensor
    """[T + 1, N]"""
    value: torch.Tensor
    """[T + 1, N]"""
    log_values: torch.Tensor
    """[T + 1, N, bins]: the critic's prediction, to be trained."""
    returns: torch.Tensor
    """[T, N]"""
    weight: torch.Tensor
    """[T, N]: the probability to get there."""


_RATE, _LOW, _HIGH = 0.01, 0.05, 0.95
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def update_scale(scale: torch.Tensor, returns: torch.Tensor) -> None:
    """Average the 5th and 95th percentile of the returns into (low, high, weight so far), in place (eq. 12)."""
    ends = torch.quantile(returns[:: max(1, len(returns) // 100_000)], returns.new_tensor([_LOW, _HIGH]))
    scale.lerp_(torch.cat([ends, ends.new_ones(1)]), _RATE)


def return_scale(scale: torch.Tensor) -> torch.Tensor:
    """max(1, S): advantages are divided by the range of returns, but small ones are not blown up."""
    low, high, weight = scale.unbind()
    return ((high - low) / weight.clamp(min=1e-8)).clamp(min=1.0)
