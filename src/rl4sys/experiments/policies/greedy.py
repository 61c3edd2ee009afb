"""The deterministic part of a policy: what its head reads, and its greedy action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rl4sys.experience import ArraySpec
from rl4sys.policy import Head, PolicySpec
from rl4sys.policy.policy_spec import Setting


class UnsupportedHead(ValueError):
    """A head whose best action is not a function of what its program computes."""


HEAD_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "categorical": ("logits",),
    "epsilon_greedy": ("values",),
    "deterministic": ("scores",),
    "gaussian": ("mean",),
    "tanh_gaussian": ("mean", "log_std"),
    "perturbed": ("mean",),
    "noise_conditioned": ("value",),
    "mixed": ("outputs",),
}
"""What the registers that each head reads mean, in their order; a memory for noise comes after them."""
_SQUASHED = ("tanh_gaussian", "perturbed", "noise_conditioned")


def is_supported(spec: PolicySpec) -> bool:
    """Whether the best action of a policy is a function of what its program computes."""
    return spec.head.kind in HEAD_PARAMETERS


def parameters(spec: PolicySpec) -> dict[str, str]:
    """The registers that the head reads, by what they mean: `logits`, `mean`, …"""
    if spec.model is not None:
        raise UnsupportedHead(
            "This policy plans every decision with its model, which is no function of the observation alone. Use "
            "--format rl4sys, which carries every policy."
        )
    if not is_supported(spec):
        raise UnsupportedHead(
            f"A head of kind '{spec.head.kind}' is not known here; expected {', '.join(HEAD_PARAMETERS)}. "
            f"Use --format rl4sys, which carries every policy."
        )
    return dict(zip(HEAD_PARAMETERS[spec.head.kind], spec.head.inputs, strict=False))


def greedy(spec: PolicySpec) -> PolicySpec:
    """The same policy doing its best: the likeliest choice, or the middle of its distribution.

    It draws nothing, so a memory that only noise has is gone. Chance that the program itself reads becomes one more
    observation: zeros for the best action, numbers of its distribution for others.
    """
    parameters(spec)
    head, program = spec.head, spec.program
    settings: dict[str, Setting] = {}
    if head.kind in _SQUASHED or "squash" in head.settings:
        settings["squash"] = head.settings.get("squash", "tanh")
    if head.action_register is not None:
        settings["action"] = head.action_register
    if head.count is not None:
        settings["count"] = head.count
    best = Head("deterministic", head.inputs[:1], mask=head.mask, settings=settings)
    carry = tuple(memory for memory in program.carry if memory.next not in set(head.outputs) - set(best.outputs))
    drawn = tuple(ArraySpec(chance.name, "float32", (chance.size,)) for chance in program.chance)
    drawn += () if head.chance is None else (head.chance,)
    return replace(spec, program=replace(program, inputs=(*program.inputs, *drawn), carry=carry, chance=()), head=best)
