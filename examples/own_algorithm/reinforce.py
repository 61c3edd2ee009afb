"""REINFORCE with a learned baseline (Williams, Machine Learning 8, 1992): a whole algorithm in one file.

Name this file under `plugins:` in a config, and `algorithm: {name: reinforce}` works like the built-in ones.
"""

from __future__ import annotations

import torch
from pydantic import Field

from rl4sys.algorithms import (
    AlgorithmConfig,
    Policies,
    Problem,
    Progress,
    UnsuitableActions,
    Update,
    register_algorithm,
    without_memory,
)
from rl4sys.algorithms.returns import generalized_advantage
from rl4sys.experience import Array, Sequences
from rl4sys.networks import FlatAdam, Parameters, TorchProgram, categorical, orthogonal
from rl4sys.policy import DiscreteAction, Head, PolicySpec, ProgramBuilder, layout_of
from rl4sys.replay import OnceFresh
from rl4sys.state import State, require


@register_algorithm("reinforce")
class ReinforceConfig(AlgorithmConfig):
    """On-policy; one discrete choice per step."""

    lr: float = Field(5e-3, gt=0)
    """Step size of Adam. Higher learns faster and breaks sooner."""
    baseline_coef: float = Field(0.5, ge=0)
    """Weight of the baseline's loss. Higher fits returns sooner, at the policy's expense when gradients are clipped."""
    entropy_coef: float = Field(0.01, ge=0)
    """Reward for randomness. Higher explores longer."""
    max_grad_norm: float = Field(0.5, gt=0)
    """Longer gradients are shortened to this length."""

    buffers = ("trajectory",)

    def build(self, problem: Problem) -> Reinforce:
        """The algorithm for one problem."""
        return Reinforce(self, problem)

    def pace(self, buffer_size: int) -> OnceFresh:
        """Each batch once, and only from the newest policy: REINFORCE does not correct for age."""
        return OnceFresh(buffer_size, max_age=0)

    def steps_between_updates(self, buffer_size: int) -> int:
        """One full buffer."""
        return buffer_size

    def update_size(self) -> int:
        """A usual buffer; it only guides the choice of the number of threads."""
        return 256


class Reinforce:
    """Makes actions likelier by how much better than the baseline they turned out."""

    def __init__(self, config: ReinforceConfig, problem: Problem) -> None:
        if not isinstance(problem.action, DiscreteAction):
            raise UnsuitableActions(
                f"REINFORCE needs one discrete choice per step; this environment wants {problem.action.kind} actions. "
                f"Use algorithm.name=ppo, or an environment with discrete actions."
            )
        self._config, self._problem = config, problem
        builder = ProgramBuilder(problem.observation)
        actor, critic = problem.networks.actor, problem.networks.critic
        features = actor.features(builder, "actor", standardize=problem.standardize)
        body = actor.body(builder, features, "actor")
        self._logits = builder.linear(body, problem.action.n, "actor.action")
        acting = builder.program()
        # What is added from here on is trained, but does not travel with the policy.
        features = critic.features(builder, "critic", standardize=problem.standardize)
        self._value = builder.linear(critic.body(builder, features, "critic"), 1, "critic.value")
        trained = without_memory(builder.program())

        explore = Head("categorical", (self._logits,), mask=problem.mask)
        exploit = Head("deterministic", (self._logits,), mask=problem.mask)
        self.policies = Policies(
            PolicySpec(problem.action, acting, explore), PolicySpec(problem.action, acting, exploit)
        )
        self._policy_size = layout_of(acting).size
        self._parameters = Parameters(trained.tensors, problem.device)
        self._parameters.freeze(*(name for name in self._parameters.views if name.endswith((".mean", ".scale"))))
        gains = {"actor.action": 0.01, "critic.value": 1.0}
        orthogonal(self._parameters, gains, problem.torch_generator("init"))
        self._network = TorchProgram(trained, self._parameters)
        self._adam = FlatAdam(self._parameters, lr=config.lr, epsilon=1e-8, max_norm=config.max_grad_norm)

    def advance(self, progress: Progress) -> None:
        """Nothing here follows a schedule."""

    def update(self, batch: Sequences) -> Update:
        """One step along the gradient of E[log π(a|s) · (G − b(s))], and of the baseline's squared error."""
        rows, device = batch.acted.size, self._problem.device
        observation = {
            name: torch.from_numpy(array.reshape(rows, *array.shape[2:])).to(device)
            for name, array in batch.observation.items()
        }
        registers = self._network(observation)
        value = registers[self._value].squeeze(-1)

        # λ = 1: the whole return, with the baseline's guess only for what lies beyond the data.
        baseline = value.detach().cpu().numpy().reshape(batch.acted.shape)
        advantage = generalized_advantage(
            batch.reward, batch.discount, batch.acted, baseline, self._config.gamma, gae_lambda=1.0
        )
        acted, action, better = (
            torch.from_numpy(array.reshape(rows)).to(device) for array in (batch.acted, batch.action, advantage)
        )
        outcome = value.detach() + better

        mask = observation[self._problem.mask] if self._problem.mask else None
        log_prob, entropy = categorical(registers[self._logits], action, mask)
        policy_loss = -(log_prob * better)[acted].mean()
        baseline_loss = (value - outcome).square()[acted].mean()
        mean_entropy = entropy[acted].mean()
        loss = policy_loss + self._config.baseline_coef * baseline_loss - self._config.entropy_coef * mean_entropy
        norm = self._adam.step(loss)
        metrics = {
            "policy_loss": policy_loss.item(),
            "baseline_loss": baseline_loss.item(),
            "entropy": mean_entropy.item(),
            "gradient_norm": norm.item(),
        }
        return Update(metrics, {})

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on."""
        self._parameters.set(f"{name}.mean", torch.from_numpy(mean))
        self._parameters.set(f"{name}.scale", torch.from_numpy(scale))

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy; the baseline stays here."""
        return self._parameters.flat[: self._policy_size].cpu().numpy()

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {"parameters": self._parameters.flat.cpu().numpy().copy(), "adam": self._adam.state()}

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "parameters", "adam")
        self._parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self._adam.restore(state["adam"])
