"""Soft actor-critic for one discrete choice (arXiv:1910.07207): expectations are sums, nothing is sampled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from rl4sys.algorithms.off_policy import TensorMap
from rl4sys.algorithms.problem import Policies, Problem, Progress, without_memory
from rl4sys.algorithms.soft import SoftLearner
from rl4sys.experience import Array
from rl4sys.networks import Rows, joined, masked, rows_of, rows_of_all
from rl4sys.policy import DiscreteAction, Head, PolicySpec, Program, ProgramBuilder, layout_of

if TYPE_CHECKING:
    from rl4sys.algorithms.sac import SACConfig

_LAST = "actor.action"


class DiscreteSAC(SoftLearner):
    """Learns the probabilities of choices; a mask takes part in every expectation."""

    def __init__(self, config: SACConfig, problem: Problem) -> None:
        self._warms_up = True
        policies, program = _policies(problem)
        self._logits = policies.explore.head.inputs[0]
        self._layout = layout_of(program)
        super().__init__(config, problem, policies, program)

    def advance(self, progress: Progress) -> None:
        """Take note of whether the policy still acts at random."""
        self._warms_up = progress.steps <= self._config.learning_starts

    def _next_value(self, observation: TensorMap) -> torch.Tensor:
        """Of all choices, each as likely as it is (eq. 3)."""
        log_probs, allowed = self._log_probs(self._actor(observation)[self._logits], observation)
        values = self._config.pessimistic(self.critics.target(observation), self._noise)
        return expected(log_probs, values - self._temperature.value * log_probs, allowed)

    def _improve(self, observation: TensorMap) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """One step of the actor; returns its loss, the entropy, and how much of it is more than wanted."""
        with torch.no_grad():
            values, _ = self._config.believed(self.critics.judge_choices(observation))
        parts = self._accumulation.gradient(
            self.parameters,
            len(values),
            lambda part: self._differentiate(rows_of_all(observation, part), rows_of(values, part), part, len(values)),
        )
        losses, entropy, surplus = joined(parts)
        self._adam.descend()
        return losses.sum(), entropy.mean(), surplus.mean()

    def _differentiate(
        self, observation: TensorMap, values: torch.Tensor, part: Rows, count: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Add to the actor's gradient what some rows of `count` have in it; returns loss, entropies and surpluses."""
        run = self._actor.forward(observation)
        logits = run.registers[self._logits].detach().requires_grad_()
        log_probs, allowed = self._log_probs(logits, observation)
        loss = expected(log_probs, self._temperature.value * log_probs - values, allowed).mean()
        if part is not None:
            loss = loss * (len(values) / count)
        (by_logits,) = torch.autograd.grad(loss, logits)
        run.backward({self._logits: by_logits})
        with torch.no_grad():
            entropy = -expected(log_probs, log_probs, allowed)
            surplus = entropy - self._wanted(values.shape[-1], allowed)
        return loss.detach()[None], entropy, surplus

    def _wanted(self, choices: int, allowed: torch.Tensor | None) -> torch.Tensor | float:
        """The entropy that the temperature keeps up: one number, or [B] where masks differ."""
        config = self._config
        if config.target_entropy is not None:
            return config.target_entropy
        if allowed is None:
            return config.entropy_fraction * math.log(choices)
        return config.entropy_fraction * allowed.sum(-1).clamp(min=1).log()

    def _log_probs(self, logits: torch.Tensor, observation: TensorMap) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Logarithms of the probabilities of all choices [B, n], and the mask, if there is one."""
        mask = observation[self._problem.mask] if self._problem.mask else None
        return F.log_softmax(masked(logits, mask), dim=-1), mask

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy; the critics stay here.

        Until learning starts the last layer travels as zeros: every allowed choice is then as likely as any other.
        """
        flat = self.parameters.flat.cpu().numpy()
        if self._warms_up:
            flat = flat.copy()
            views = self._layout.views(flat)
            for part in ("weight", "bias"):
                views[f"{_LAST}.{part}"].fill(0.0)
        return flat


def expected(log_probs: torch.Tensor, values: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    """Σ π · value [B] over the allowed choices; what is forbidden counts for nothing, however large its logarithm."""
    if allowed is not None:
        # Before the product: an infinite value would make its gradient 0 · ∞.
        values = torch.where(allowed, values, 0.0)
    return (log_probs.exp() * values).sum(-1)


def _policies(problem: Problem) -> tuple[Policies, Program]:
    """The two policies, and the program to train."""
    assert isinstance(problem.action, DiscreteAction)
    builder = ProgramBuilder(problem.observation)
    features = problem.networks.actor.features(builder, "actor", standardize=problem.standardize)
    body = problem.networks.actor.body(builder, features, "actor")
    logits = builder.linear(body, problem.action.n, _LAST)
    program = without_memory(builder.program())
    explore, exploit = (Head(kind, (logits,), mask=problem.mask) for kind in ("categorical", "deterministic"))
    return Policies(PolicySpec(problem.action, program, explore), PolicySpec(problem.action, program, exploit)), program
