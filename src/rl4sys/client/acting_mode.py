"""How a client acts: explore, exploit or observe."""

from __future__ import annotations

import enum


class ActingMode(enum.StrEnum):
    """How a client acts."""

    EXPLORE = "explore"
    """With the explore policy; its experience is recorded and sent."""
    EXPLOIT = "exploit"
    """With the exploit policy; nothing is recorded."""
    OBSERVE = "observe"
    """The fallback acts, and the exploit policy decides beside it, to be compared; nothing is recorded."""
