"""How much of the client works: the levels that a profile alternates, to tell what each part costs."""

from __future__ import annotations

import enum


class ClientLevel(enum.StrEnum):
    """Each level does what those before it do, and more."""

    OFF = "off"
    """The fallback decides; nothing else happens."""
    DECIDE = "decide"
    """The policy decides; nothing is recorded."""
    RECORD = "record"
    """Decisions are recorded and encoded, and then dropped."""
    FULL = "full"
    """Experience is sent and new versions are taken: the normal state."""

    @property
    def records(self) -> bool:
        """Whether decisions are recorded."""
        return self in (ClientLevel.RECORD, ClientLevel.FULL)
