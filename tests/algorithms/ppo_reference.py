"""The loss of PPO in float64 numpy, from the equations of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rl4sys.algorithms import PPO, PPOConfig
from rl4sys.experience import Array, Sequences
from rl4sys.policy import MASK, ActionSpec, BoxAction, MultiDiscreteAction

from .networks_of import acting, flat_of
from .reference import Weights, log_softmax, named, network


def distribution(weights: Weights, action: ActionSpec, rows: dict[str, Array], chosen: Array) -> tuple[Array, Array]:
    """Log-probability of each chosen action, and entropy: [N] each."""
    output = network(weights, "actor", "actor.action", rows["observation"])
    if isinstance(action, BoxAction):
        deviation = np.exp(weights["log_std"])
        density = np.exp(-0.5 * ((chosen - output) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
        entropy = 0.5 * np.log(2.0 * np.pi * np.e * deviation**2).sum()
        return np.log(density).sum(axis=1), np.full(len(chosen), entropy)
    scores = np.where(rows[MASK], output, -np.inf) if MASK in rows else output
    sizes = action.sizes if isinstance(action, MultiDiscreteAction) else (action.n,)
    parts = np.split(scores, np.cumsum(sizes)[:-1], axis=1)
    log_prob, entropy = np.zeros(len(chosen)), np.zeros(len(chosen))
    for part, choice in zip(parts, chosen.reshape(len(chosen), -1).T, strict=True):
        logs = log_softmax(part)
        probability = np.exp(logs)
        log_prob += logs[np.arange(len(choice)), choice]
        entropy -= np.where(probability > 0, probability * np.where(np.isfinite(logs), logs, 0.0), 0.0).sum(axis=1)
    return log_prob, entropy


def advantages(batch: Sequences, value: Array, config: PPOConfig) -> Array:
    """By recursion over each stream, from its end [B, L]."""
    found = np.zeros(batch.reward.shape)
    for row in range(len(found)):
        following = 0.0
        for t in reversed(range(found.shape[1])):
            if not batch.acted[row, t]:
                following = 0.0
                continue
            next_value = config.gamma * batch.discount[row, t] * value[row, t + 1]
            error = batch.reward[row, t] + next_value - value[row, t]
            following = found[row, t] = error + config.gamma * config.gae_lambda * following
    return found


@dataclass(frozen=True)
class Expected:
    """The loss of one minibatch that holds the whole batch; what is constant in it is taken from first weights."""

    config: PPOConfig
    action: ActionSpec
    rows: dict[str, Array]
    chosen: Array
    proximal: Array
    weight: Array
    advantage: Array
    outcome: Array
    old: Array

    @classmethod
    def of(cls, algorithm: PPO, action: ActionSpec, config: PPOConfig, batch: Sequences) -> Expected:
        weights = named(acting(algorithm).layout, flat_of(algorithm))
        acted = batch.acted
        rows = {name: array[acted] for name, array in batch.observation.items()}
        value = network(weights, "critic", "critic.value", batch.observation["observation"])[..., 0]
        advantage, old = advantages(batch, value, config)[acted], value[acted]
        behaviour, age = batch.extras["log_prob"][acted].astype(np.float64), batch.age[acted]
        newest, _ = distribution(weights, action, rows, batch.action[acted])
        proximal = np.where(age > 0, newest, behaviour)
        weight = np.minimum(np.exp(proximal - behaviour), config.max_importance)
        return cls(config, action, rows, batch.action[acted], proximal, weight, advantage, advantage + old, old)

    def loss(self, weights: Weights) -> float:
        """Eq. 9 of arXiv:1707.06347 with the weights of arXiv:2110.00641."""
        config, advantage = self.config, self.advantage
        if config.normalize_advantage:
            advantage = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-8)
        log_prob, entropy = distribution(weights, self.action, self.rows, self.chosen)
        ratio, bound = np.exp(log_prob - self.proximal), config.clip_ratio
        clipped = np.clip(ratio, 1.0 - bound, 1.0 + bound)
        policy = -(self.weight * np.minimum(ratio * advantage, clipped * advantage)).mean()
        value = network(weights, "critic", "critic.value", self.rows["observation"])[:, 0]
        squares: Any = (value - self.outcome) ** 2
        if config.clip_value is not None:
            held_back = self.old + np.clip(value - self.old, -config.clip_value, config.clip_value)
            squares = np.maximum(squares, (held_back - self.outcome) ** 2)
        return float(policy + config.value_coef * 0.5 * squares.mean() - config.entropy_coef * entropy.mean())
