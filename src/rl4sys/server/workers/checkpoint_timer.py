"""When a learner is saved because of time: what it has learned is never much older than its checkpoint."""

from __future__ import annotations


class CheckpointTimer:
    """Measures how long progress has not been saved. When a checkpoint is written changes nothing that is learned."""

    def __init__(self, seconds: float | None) -> None:
        """None for no checkpoints by time."""
        self._seconds = seconds
        self._since: float | None = None
        """When there was progress without a checkpoint for the first time, or when saving it was last due."""

    def is_due(self, now: float, *, has_unsaved: bool) -> bool:
        """Whether to save now. If that fails, it is due again only after the same time."""
        if self._seconds is None or not has_unsaved:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        is_due = now - self._since >= self._seconds
        if is_due:
            self._since = now
        return is_due
