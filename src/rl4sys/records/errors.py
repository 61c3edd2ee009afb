"""What can go wrong with record files, each with what to do next."""

from __future__ import annotations

import errno

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Failures of a write that pass by themselves once somebody makes room."""


class RecordsDamaged(Exception):
    """Records that were acknowledged are unreadable or missing. Nothing after them is read as if they never were."""


class RecordsGone(Exception):
    """A reader asks for records that were pruned, or that the log no longer reaches."""


class LogInUse(Exception):
    """Another writer has the log open; two would write over each other."""


class LogFull(Exception):
    """There is no space for these records. They were taken back; the next append may succeed without reopening."""


class LogBroken(Exception):
    """A write or a sync failed, so what is on the disk is unknown. Nothing is accepted until the log is reopened."""


class LogClosed(Exception):
    """The log was closed; open it again to append."""


class Backlogged(Exception):
    """More bytes wait for the disk than are allowed to. Nothing of this append was taken; try again later."""
