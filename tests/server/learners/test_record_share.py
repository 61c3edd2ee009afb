"""The share of episodes to record: found for learners of any speed, and left alone where everything is used."""

from __future__ import annotations

from collections import deque

import pytest

from rl4sys.server.learners.record_share import LearnerLoad, RecordShare

_TICK = 0.01
_EPISODE = 200


class Simulation:
    """Clients that record a share of their steps, and a learner that takes a while for each batch."""

    def __init__(
        self, rate: float, batch: int, update_seconds: float, lag: float = 0.05, episode: int = _EPISODE
    ) -> None:
        self._episode = episode
        self._rate, self._batch, self._update_seconds, self._lag = rate, batch, update_seconds, lag
        self.share = RecordShare()
        self.used = self.unused = 0
        self._asked = 1.0
        self._now = self._recorded = self._busy = 0.0
        self._version = self._held = self._stored = 0
        self._seen = deque([(0.0, 0, 1.0)])
        self._underway: deque[tuple[float, int]] = deque()
        self._queue: deque[int] = deque()

    def run(self, seconds: float) -> float:
        """The fraction of the steps learned meanwhile that was not too old."""
        used, unused = self.used, self.unused
        self.run_until(self._now + seconds)
        used, unused = self.used - used, self.unused - unused
        return used / (used + unused)

    def run_until(self, end: float) -> None:
        while self._now < end:
            self._now += _TICK
            self._act()
            self._learn()
            folded = self.used + self.unused
            waiting = len(self._queue) * self._episode / self._batch
            self._asked = self.share.note(
                LearnerLoad(self._stored, folded, self.unused, self._version, waiting), self._now
            )

    def _act(self) -> None:
        self._seen.append((self._now + self._lag, self._version, self._asked))
        while self._seen[0][0] < self._now:
            self._seen.popleft()
        _, version, share = self._seen[0]
        self._recorded += self._rate * share * _TICK
        while self._recorded >= self._episode:
            self._recorded -= self._episode
            self._underway.append((self._now + self._lag, version))
        while self._underway and self._underway[0][0] <= self._now:
            self._queue.append(self._underway.popleft()[1])
            self._stored += self._episode

    def _learn(self) -> None:
        self._busy -= _TICK
        while self._queue and self._busy <= 0:
            if self._version - self._queue.popleft() > 4:
                self.unused += self._episode
                continue
            self.used, self._held = self.used + self._episode, self._held + self._episode
            if self._held >= self._batch:
                self._held -= self._batch
                self._version, self._busy = self._version + 1, self._update_seconds


@pytest.mark.parametrize(("batch", "update_seconds"), [(2_048, 0.3), (2_048, 1.0), (512, 0.1)])
@pytest.mark.parametrize("rate", [4_000, 20_000, 100_000])
def test_nearly_everything_that_fast_clients_send_is_used_and_the_learner_stays_busy(
    rate: float, batch: int, update_seconds: float
) -> None:
    simulation = Simulation(rate, batch, update_seconds)
    simulation.run(20.0)
    before = simulation.used
    assert simulation.run(20.0) >= 0.95
    possible = min(rate, batch / update_seconds)
    assert (simulation.used - before) / 20.0 >= 0.5 * possible


@pytest.mark.parametrize("episode", [20, 1_024])
@pytest.mark.parametrize("rate", [20_000, 100_000])
def test_so_it_is_with_slow_connections_and_with_short_and_long_episodes(rate: float, episode: int) -> None:
    simulation = Simulation(rate, 2_048, 0.5, lag=0.3, episode=episode)
    simulation.run(20.0)
    before = simulation.used
    assert simulation.run(40.0) >= 0.95
    assert (simulation.used - before) / 40.0 >= 0.5 * 2_048 / 0.5


def test_without_a_share_most_of_it_would_be_too_old() -> None:
    simulation = Simulation(20_000, 2_048, 1.0)
    simulation.share = _Everything()
    simulation.run(20.0)
    assert simulation.run(20.0) < 0.5


def test_a_slow_client_records_everything() -> None:
    simulation = Simulation(1_000, 2_048, 0.3)
    assert simulation.run(30.0) == 1.0
    assert simulation.share.value == 1.0


def test_the_share_grows_again_when_clients_become_slower() -> None:
    simulation = Simulation(50_000, 2_048, 0.3)
    simulation.run(20.0)
    low = simulation.share.value
    simulation._rate = 2_000
    simulation.run(90.0)
    assert low < 0.3
    assert simulation.share.value == 1.0


def test_a_worker_that_folds_its_log_again_changes_nothing() -> None:
    share = RecordShare()
    share.note(LearnerLoad(10_000, 10_000, 0, 5), 0.0)
    share.note(LearnerLoad(10_000, 100, 90, 1), 10.0)
    assert share.value == 1.0


def test_the_share_grows_again_while_nothing_arrives() -> None:
    share = RecordShare()
    share.value = 0.01
    for second in range(0, 100, 5):
        share.note(LearnerLoad(), float(second))
    assert share.value == 1.0


def test_clients_of_a_learner_that_is_paused_record_next_to_nothing_when_enough_waits() -> None:
    simulation = Simulation(20_000, 2_048, 0.3)
    simulation._busy = 1e9
    simulation.run_until(60.0)
    assert len(simulation._queue) * _EPISODE < 3 * 2_048


def test_a_learner_that_learns_again_after_a_pause_asks_for_everything_again() -> None:
    simulation = Simulation(1_000, 2_048, 0.3)
    simulation._busy = 60.0
    simulation.run_until(150.0)
    assert simulation.share.value == 1.0


class _Everything(RecordShare):
    """Always 1."""

    def note(self, load: LearnerLoad, now: float) -> float:
        return 1.0


def test_a_learner_that_was_idle_for_months_has_a_share() -> None:
    share = RecordShare()
    share.note(LearnerLoad(), 0.0)
    assert share.note(LearnerLoad(stored=64, folded=32, version=1, waiting=0.125), 1e7) == 1.0
