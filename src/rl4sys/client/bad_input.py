"""What happens when an observation, or the policy's decision for it, cannot be used."""

from __future__ import annotations

import enum

from rl4sys.client.observation_reader import BadObservation
from rl4sys.policy import NoAllowedAction

BAD_INPUT = (BadObservation, NoAllowedAction)
"""The errors of an observation, or of a decision for it, that cannot be used."""


class BadInputChoice(enum.StrEnum):
    """The setting `on_bad_input`."""

    RAISE = "raise"
    """One clear exception, `BadObservation`; nothing is decided."""
    FALLBACK = "fallback"
    """The fallback decides."""
    HOLD = "hold"
    """The last action is taken again; before the first one, the fallback decides."""
