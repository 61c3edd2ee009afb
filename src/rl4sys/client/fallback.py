"""The fallback: the system's own rule, which decides where the policy may not or cannot."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from rl4sys.client.action_adapter import BadAction, action_adapter
from rl4sys.client.candidate_rows import CandidateRows
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import ActionSpec, ActionStructure

Fallback = Callable[..., Any]
"""Chooses an action for an observation, as the system passed it.

One with a parameter `mask` gets the mask that `act` was given, or None: `def fallback(observation, mask=None)`."""


class FallbackFailed(RuntimeError):
    """The fallback raised, or returned something that is not an action."""


class PolicyOff(RuntimeError):
    """The policy may not decide at present, and there is no fallback."""


class FallbackDecider:
    """Calls the fallback and checks what it returns."""

    def __init__(
        self,
        fallback: Fallback,
        action: ActionSpec | None,
        structure: ActionStructure | None,
        observation: Sequence[ArraySpec] = (),
    ) -> None:
        """`action`, `observation`: what the settings say about them, for the time before the first policy."""
        self._fallback = fallback
        self._sees_mask = _takes_mask(fallback)
        self._candidates = CandidateRows.among(observation)
        self._actions = None if action is None else action_adapter(action, structure)

    def decide(self, observation: Any, mask: Any, interface: PolicyInterface | None) -> tuple[Any, Array | None]:
        """The action for the system, and the row that is recorded; None if nothing is known about actions."""
        try:
            value = self._fallback(observation, mask=mask) if self._sees_mask else self._fallback(observation)
        except Exception as error:
            raise FallbackFailed(
                f"The fallback raised {type(error).__name__}: {error}. It must decide for every observation, also for "
                f"one that the policy cannot use."
            ) from error
        adapter = self._actions if interface is None else interface.actions
        if adapter is None:
            return value, None
        try:
            row = adapter.read(value)
            candidates = self._candidates if interface is None else interface.reader.candidates
            if candidates is not None:
                candidates.require_choice(observation, int(row))
            return value, row
        except BadAction as error:
            raise FallbackFailed(
                f"The fallback returned something that is not an action of this system. {error}"
            ) from error


def _takes_mask(fallback: Fallback) -> bool:
    """Whether a function has a parameter `mask`; not, if its parameters cannot be known."""
    try:
        return "mask" in inspect.signature(fallback).parameters
    except (TypeError, ValueError):
        return False
