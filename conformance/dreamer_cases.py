"""Episodes of the policies that Dreamer itself makes, against the equations of arXiv:2301.04104 in float64.

The model is that of the size `pico` with a smaller state, which keeps the files small; ops and heads are the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from episode_cases import Decided, Registers, certain_draw, episode_case, scaled
from vectors import Case

from rl4sys.algorithms import DreamerConfig, Problem
from rl4sys.dynamics import RSSMConfig
from rl4sys.experience import ArraySpec
from rl4sys.networks import NetworksConfig
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction
from rl4sys.seeding import Seeds

GROUPS, CLASSES, BLOCKS = 8, 4, 8
MODEL = RSSMConfig(deter=32, hidden=16, groups=GROUPS, classes=CLASSES, blocks=BLOCKS, update_bias=-2.0)


def dreamer_cases() -> Iterator[Case]:
    """A vector of actions within bounds, and one choice. Latents and actions are drawn."""
    yield _dreamer_case("dreamer_box_episode", BoxAction((-0.5, 1.0), (1.5, 3.0)))
    yield _dreamer_case("dreamer_discrete_episode", DiscreteAction(3))


def _dreamer_case(name: str, action: ActionSpec) -> Case:
    observation = (ArraySpec("x", "float32", (3,)),)
    problem = Problem(observation, action, NetworksConfig(), torch.device("cpu"), Seeds(0))
    agent = DreamerConfig(size="pico", dynamics=MODEL).build(problem)

    def step(registers: Registers, weights: Registers, noise: torch.Tensor) -> Decided:
        x, deter, stoch = registers["x"], registers["rssm.deter"], registers["rssm.stoch"]
        embedding = _normed(_linear(x.sign() * x.abs().log1p(), weights, "encoder.0"), weights, "encoder.0")
        deter = _recurrence(deter, stoch, registers["rssm.previous_action"], weights)
        hidden = _linear(torch.cat([deter, embedding]), weights, "rssm.posterior.0")
        logits = _linear(_normed(hidden, weights, "rssm.posterior.0"), weights, "rssm.posterior.out")
        stoch = F.one_hot(_latents(logits.view(GROUPS, CLASSES), registers["rssm.chance"]), CLASSES).flatten().double()
        hidden = _normed(_linear(torch.cat([deter, stoch]), weights, "actor.0"), weights, "actor.0")
        decided = _acted(action, hidden, weights, registers, noise)
        decided.carry = {"rssm.deter": deter, "rssm.stoch": stoch, "rssm.previous_action": decided.seen}
        return decided

    return episode_case(name, agent.policies.explore, step)


def _recurrence(deter: torch.Tensor, stoch: torch.Tensor, action: torch.Tensor, weights: Registers) -> torch.Tensor:
    """h' = f(h, z, a): a gated unit, whose products with h and whose gates have a matrix for each block."""
    inputs = {"rssm.from_deter": deter, "rssm.from_stoch": stoch, "rssm.from_action": action}
    joined = torch.cat([_normed(_linear(x, weights, name), weights, name) for name, x in inputs.items()])
    diagonal = torch.block_diag(*weights["rssm.core.block_weight"])
    core = joined @ weights["rssm.core.weight"] + deter @ diagonal + weights["rssm.core.bias"]
    core = _normed(core, weights, "rssm.core")
    gates = core @ torch.block_diag(*weights["rssm.gates.weight"]) + weights["rssm.gates.bias"]
    states = []
    for part, held in zip(gates.chunk(BLOCKS), deter.chunk(BLOCKS), strict=True):
        reset, candidate, update = part.chunk(3)
        share = torch.sigmoid(update - 2.0)
        states.append(share * torch.tanh(torch.sigmoid(reset) * candidate) + (1.0 - share) * held)
    return torch.cat(states)


def _latents(logits: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    probability = 0.99 * logits.softmax(1) + 0.01 / CLASSES
    return torch.stack([certain_draw(p, u) for p, u in zip(probability, uniform, strict=True)])


def _acted(
    action: ActionSpec, hidden: torch.Tensor, weights: Registers, registers: Registers, noise: torch.Tensor
) -> Decided:
    """A draw from the actor's distribution: a clipped Gaussian, or a choice with 1 % of uniform."""
    if isinstance(action, BoxAction):
        mean = torch.tanh(_linear(hidden, weights, "actor.mean"))
        std = 0.9 * torch.sigmoid(_linear(hidden, weights, "actor.std") + 2.0) + 0.1
        unit = (mean + std * registers["actor.noise"]).clamp(-1.0, 1.0)
        low, high = torch.tensor(action.low).double(), torch.tensor(action.high).double()
        vector = low + (unit + 1.0) / 2.0 * (high - low)
        return Decided(vector, scaled(vector, action), None)
    assert isinstance(action, DiscreteAction)
    probability = 0.99 * _linear(hidden, weights, "actor.action").softmax(0) + 0.01 / action.n
    choice = certain_draw(probability, noise[0])
    return Decided(choice, F.one_hot(choice, action.n).double(), probability[choice].log())


def _linear(x: torch.Tensor, weights: Registers, name: str) -> torch.Tensor:
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _normed(x: torch.Tensor, weights: Registers, name: str) -> torch.Tensor:
    """RMS normalisation with a gain, then SiLU."""
    return F.silu(x / (x.square().mean() + 1e-4).sqrt() * weights[f"{name}.gain"])
