"""Errors of record files."""

from __future__ import annotations

import errno

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a write that end once there is free space again."""


class RecordsDamaged(Exception):
    """Acknowledged records are unreadable or missing. Reading stops there instead of skipping them."""


class RecordsGone(Exception):
    """A reader asks for records that were pruned, or that lie beyond the end of the log."""


class LogInUse(Exception):
    """Another writer has the log open; two would overwrite each other's records."""


class LogFull(Exception):
    """There is no space for these records. Nothing was appended; a later append may succeed without reopening."""


class LogBroken(Exception):
    """A write or a sync failed, so the contents of the disk are unknown. Reopen the log to append again."""


class LogClosed(Exception):
    """The log was closed; open it again to append."""


class Backlogged(Exception):
    """Too many bytes wait for the disk. Nothing of this append was accepted; try again later."""
