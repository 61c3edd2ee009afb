"""Thins episodes at the source, when the server cannot use all of them."""

from __future__ import annotations

import threading
from zlib import crc32

SPAN = 1024
"""Decisions after which a long episode is asked about again: it is thinned by spans."""


class Thinning:
    """Keeps a share of episodes, evenly spread: the error of each choice is carried over to the next one."""

    def __init__(self, phase: float | None = None) -> None:
        """`phase`, from 0 to 1, is where in its turn one of many clients begins; without it, with an episode kept."""
        self._credit = phase
        self._lock = threading.Lock()

    def keeps(self, share: float) -> bool:
        """Whether to record the next episode or span."""
        if share >= 1.0:
            return True
        with self._lock:
            credit = 1.0 if self._credit is None else self._credit + share
            keep = credit >= 1.0
            self._credit = credit - 1.0 if keep else credit
            return keep


def fleet_phase(client: str) -> float:
    """Where a client begins that shares its learner: clients that began alike would all record at the same time."""
    return crc32(client.encode()) / 2**32
