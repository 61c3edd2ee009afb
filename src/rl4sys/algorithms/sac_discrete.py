"""Soft actor-critic for one discrete choice (arXiv:1910.07207): expectations are sums, nothing is sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from rl4sys.algorithms.critics import Critics, set_statistics
from rl4sys.algorithms.off_policy import Moments, SampledNoise, TensorMap
from rl4sys.algorithms.problem import Policies, Problem, Progress, Update, without_memory
from rl4sys.experience import Array, Transitions
from rl4sys.networks import EnsembleProgram, FlatAdam, Parameters, masked, uniform_fan_in
from rl4sys.policy import DiscreteAction, Head, PolicySpec, Program, ProgramBuilder, layout_of
from rl4sys.state import State, require

if TYPE_CHECKING:
    from rl4sys.algorithms.sac import SACConfig

_LAST = "actor.action"


class DiscreteSAC:
    """Learns the probabilities of choices; a mask takes part in every expectation."""

    def __init__(self, config: SACConfig, problem: Problem) -> None:
        self._config, self._problem = config, problem
        self._updates = 0
        self._warms_up = True
        self._noise = SampledNoise(problem)
        self.policies, program = _policies(problem)
        self._logits = self.policies.explore.head.inputs[0]
        self._layout = layout_of(program)
        self.parameters = Parameters(program.tensors, problem.device)
        self.parameters.freeze(*(n for n in self.parameters.views if n.endswith((".mean", ".scale"))))
        uniform_fan_in(self.parameters, problem.torch_generator("init"))
        self._actor = EnsembleProgram(program, self.parameters.views)
        self._adam = FlatAdam(self.parameters, lr=config.lr, epsilon=1e-8, max_norm=config.max_grad_norm)
        self.critics = Critics(problem, config, config.ensemble)
        self._temperature = config.build_temperature()
        self.advance(Progress())

    def advance(self, progress: Progress) -> None:
        """Take note of whether the policy still acts at random."""
        self._warms_up = progress.steps <= self._config.learning_starts

    def update(self, batch: Transitions) -> Update:
        """One step of critics, actor and temperature (eq. 10 to 12)."""
        config, alpha = self._config, self._temperature.value
        moments = Moments.of(batch, config.gamma, self._problem.device)
        with torch.no_grad():
            logits = self._actor(moments.next_observation)[self._logits]
            log_probs, allowed = self._log_probs(logits, moments.next_observation)
            next_values = config.pessimistic(self.critics.target(moments.next_observation), self._noise)
            next_value = expected(log_probs, next_values - alpha * log_probs, allowed)
            target = moments.reward + moments.bootstrap * next_value
        found = self.critics.regress(moments.observation, moments.action, target, moments.weight)
        facts = [found.loss, found.value]
        self._updates += 1
        improves = self._updates % config.policy_delay == 0
        if improves:
            facts += self._improve(moments.observation)
        self.critics.follow()
        return Update(
            self._temperature.metrics(torch.stack(facts).tolist(), adapts=improves), {"priority": found.priority()}
        )

    def _improve(self, observation: TensorMap) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """One step of the actor; returns its loss, the entropy, and how much of it is more than wanted."""
        with torch.no_grad():
            values, _ = self._config.believed(self.critics.judge_choices(observation))
        run = self._actor.forward(observation)
        logits = run.registers[self._logits].detach().requires_grad_()
        log_probs, allowed = self._log_probs(logits, observation)
        loss = expected(log_probs, self._temperature.value * log_probs - values, allowed).mean()
        (by_logits,) = torch.autograd.grad(loss, logits)
        self.parameters.gradient.zero_()
        run.backward({self._logits: by_logits})
        self._adam.descend()
        with torch.no_grad():
            entropy = -expected(log_probs, log_probs, allowed)
            choices = torch.full_like(entropy, values.shape[-1]) if allowed is None else allowed.sum(-1)
            wanted = self._config.entropy_fraction * choices.clamp(min=1).log()
        return loss.detach(), entropy.mean(), (entropy - wanted).mean()

    def _log_probs(self, logits: torch.Tensor, observation: TensorMap) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Logarithms of the probabilities of all choices [B, n], and the mask, if there is one."""
        mask = observation[self._problem.mask] if self._problem.mask else None
        return F.log_softmax(masked(logits, mask), dim=-1), mask

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, everywhere."""
        set_statistics(self.parameters, name, mean, scale)
        self.critics.standardize(name, mean, scale)

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

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {
            "updates": self._updates,
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "adam": self._adam.state(),
            "critics": self.critics.state(),
            "temperature": self._temperature.state(),
            "noise": self._noise.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "updates", "parameters", "adam", "critics", "temperature", "noise")
        self._updates = state["updates"]
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._adam.restore(state["adam"])
        self.critics.restore(state["critics"])
        self._temperature.restore(state["temperature"])
        self._noise.restore(state["noise"])


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
    features = builder.features(standardize=problem.standardize)
    body = problem.networks.actor.body(builder, features, "actor")
    logits = builder.linear(body, problem.action.n, _LAST)
    program = without_memory(builder.program())
    explore, exploit = (Head(kind, (logits,), mask=problem.mask) for kind in ("categorical", "deterministic"))
    return Policies(PolicySpec(problem.action, program, explore), PolicySpec(problem.action, program, exploit)), program
