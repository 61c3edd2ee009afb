"""Detects forks, which an agent does not survive: threads, locks and connections stay in the parent."""

from __future__ import annotations

import os

_forks = 0


class ForkedAgent(RuntimeError):
    """An agent is used in a process that was forked after `connect`."""


def forks() -> int:
    """How many forks lie between this process and the one that imported this module."""
    return _forks


def _count() -> None:
    global _forks
    _forks += 1


def fork_error() -> ForkedAgent:
    """The error for an agent that belongs to the parent process."""
    return ForkedAgent(
        f"This agent was connected in the parent of process {os.getpid()}; its background threads and its connection "
        f"stayed there. Call rl4sys.connect after the fork, in each process, with a client_id of its own; or start "
        f"processes with multiprocessing's 'spawn'."
    )


os.register_at_fork(after_in_child=_count)
