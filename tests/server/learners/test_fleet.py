"""Admission: a fleet produces two hundred times what its shared learner can digest, and thins itself at the source."""

from __future__ import annotations

import random
from collections import deque

from rl4sys.client.thinning import Thinning, fleet_phase
from rl4sys.server.learners.record_share import LearnerLoad, RecordShare

_TICK = 0.02
_STEPS, _BATCH, _MAX_AGE = 200, 2_048, 4
_PERIOD, _REPORT_SECONDS = 10.0, 5.0
"""Each client has an episode, and a report, this often."""


class Fleet:
    """Clients that hear of the share in replies to pushes and reports, and an on-policy learner of a fixed speed."""

    def __init__(self, clients: int, digested_per_second: float, *, phased: bool = True) -> None:
        rng = random.Random(clients)
        names = [f"client-{number}" for number in range(clients)]
        self._episodes = _due(clients, _PERIOD, rng)
        self._reports = _due(clients, _REPORT_SECONDS, rng)
        self._thinning = [Thinning(fleet_phase(name) if phased else None) for name in names]
        self._share = [1.0] * clients
        self._control = RecordShare()
        self._update_seconds = _BATCH / _STEPS / digested_per_second
        self._queue: deque[int] = deque()
        self.recorded = self.thinned = self._version = self._held = self._folded = 0
        self.unused = 0
        self._now = self._free_at = 0.0
        self._asked = 1.0

    def run(self, seconds: float) -> tuple[float, float]:
        """Episodes recorded per second, and the part of them that was too old."""
        recorded, unused, end = self.recorded, self.unused, self._now + seconds
        while self._now < end:
            self._now += _TICK
            self._act()
            self._learn()
            waiting = len(self._queue) * _STEPS / _BATCH
            stored = self.recorded * _STEPS
            load = LearnerLoad(stored, self._folded * _STEPS, self.unused * _STEPS, self._version, waiting)
            self._asked = self._control.note(load, self._now)
        recorded = self.recorded - recorded
        return recorded / seconds, (self.unused - unused) / max(1, recorded)

    def _act(self) -> None:
        for client in _pop(self._episodes, self._now, _PERIOD):
            if self._thinning[client].keeps(self._share[client]):
                self.recorded += 1
                self._queue.append(self._version)
                self._share[client] = self._asked
            else:
                self.thinned += 1
        for client in _pop(self._reports, self._now, _REPORT_SECONDS):
            self._share[client] = self._asked

    def _learn(self) -> None:
        while self._queue and self._free_at <= self._now:
            self._folded += 1
            if self._version - self._queue.popleft() > _MAX_AGE:
                self.unused += 1
                continue
            self._held += _STEPS
            if self._held >= _BATCH:
                self._held -= _BATCH
                self._version, self._free_at = self._version + 1, self._now + self._update_seconds


def _due(clients: int, period: float, rng: random.Random) -> deque[tuple[float, int]]:
    return deque(sorted((rng.uniform(0.0, period), client) for client in range(clients)))


def _pop(due: deque[tuple[float, int]], now: float, period: float) -> list[int]:
    """The clients whose time has come; each is due again a period later."""
    found = []
    while due[0][0] <= now:
        time, client = due.popleft()
        due.append((time + period, client))
        found.append(client)
    return found


def test_a_fleet_records_what_its_learner_digests_and_little_of_it_is_too_old() -> None:
    fleet = Fleet(clients=20_000, digested_per_second=10.0)
    fleet.run(80.0)
    rate, too_old = fleet.run(80.0)
    assert 7.0 <= rate <= 12.0, "of 2,000 episodes per second"
    assert too_old <= 0.08
    assert fleet.recorded + fleet.thinned >= 0.99 * 20_000 * 160 / _PERIOD


def test_clients_that_all_begin_with_an_episode_would_record_in_waves() -> None:
    fleet = Fleet(clients=20_000, digested_per_second=10.0, phased=False)
    fleet.run(80.0)
    _, too_old = fleet.run(80.0)
    assert too_old >= 0.5
