"""An agent: a policy inside a live system, with everything that works behind it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rl4sys.client import background, farewell
from rl4sys.client.courier import Courier
from rl4sys.client.delivery import AnyOutbox, Delivery, Pace
from rl4sys.client.episode import Episode, Fallback, Workplace
from rl4sys.client.forks import explain, forks
from rl4sys.client.handoff import Handoff
from rl4sys.client.health import Health
from rl4sys.client.lanes import Lane, Lanes
from rl4sys.client.link import Link
from rl4sys.client.packer import Packer
from rl4sys.client.policy_cache import PolicyCache
from rl4sys.client.retries import Backoff
from rl4sys.client.section import SettingsError
from rl4sys.client.settings import ClientSettings
from rl4sys.client.snapshot import Newest, Snapshot, ThreadPolicies
from rl4sys.client.tally import Tally
from rl4sys.client.watcher import Watcher
from rl4sys.records import DiskOutbox, Outbox, OutboxLimits
from rl4sys.version import __version__
from rl4sys.wire.calls import Transport

_LONGEST_LINGER = 0.05
"""Seconds that a sealed segment may be in no outbox yet: what a killed client loses."""
_EAGER_BYTES = 32 << 10
"""What is worth a message at once, so that a fast system's experience is young and a slow one is seldom disturbed."""


@dataclass(frozen=True, slots=True)
class Start:
    """What differs from one start of a client to the next."""

    epoch: int
    """Never used before by this client: 63 random bits."""
    first_episode: int
    """Larger than every number of an earlier start, so that episodes of two starts are never taken for one."""
    seed: int
    clock: Callable[[], float]
    """Seconds that only go forward."""


class Agent:
    """Hands out episodes; three threads behind it pack, send and fetch. Made by `rl4sys.connect`.

    Any thread may use it. Memory: `outbox_bytes` for what waits, a fourth of that for what is about to be packed, and
    for each open episode the columns of `max_segment_length` steps, a few times over when weights change often.
    """

    def __init__(
        self,
        settings: ClientSettings,
        transport: Transport,
        start: Start,
        fallback: Fallback | None = None,
        *,
        owns_transport: bool = False,
    ) -> None:
        self.settings = settings
        self._transport = transport if owns_transport else None
        self._clock = start.clock
        self._tally = Tally()
        self._newest = Newest()
        self._lanes = Lanes(settings.client_id, start.seed, start.first_episode)
        self._handoff = Handoff(
            settings.outbox_bytes // 4, settings.overflow, self._tally, min(settings.send_interval, _LONGEST_LINGER)
        )
        self._outbox = _outbox(settings, start.epoch)
        rng = random.Random(start.epoch)
        pace = Pace(settings.send_interval, settings.send_frequency, min(_EAGER_BYTES, settings.outbox_bytes // 2))
        link = Link(transport, settings, f"rl4sys-python/{__version__}")
        delivery = Delivery(self._outbox, pace, rng)
        self._courier = Courier(delivery, link, transport, settings.timeout, start.clock, self._tally)
        name = settings.policy_id or settings.client_id
        self._cache = PolicyCache(settings.cache, name, start.clock) if settings.cache is not None else None
        keep = self._cache.keep if self._cache is not None else _forget
        backoff = Backoff(random.Random(start.epoch + 1))
        self._watcher = Watcher(
            link, transport, self._newest, settings.timeout, backoff, start.clock, self._tally, keep
        )
        self._workplace = Workplace(
            newest=self._newest,
            policies=ThreadPolicies(),
            tally=self._tally,
            post=self._handoff.post,
            release=self._release,
            longest=settings.max_segment_length,
            reward_window=settings.reward_window,
            fallback=fallback,
            forks=forks(),
        )
        self._episodes: dict[int, Episode] = {}
        self._closing = threading.Lock()
        self._closed = False
        packer = Packer(self._handoff, self._courier, self._tally)
        work = {"packer": packer.run, "courier": self._courier.run, "watcher": self._watcher.run}
        self._threads = [background.start(name, run, self._tally) for name, run in work.items()]
        farewell.remember(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def episode(self) -> Episode:
        """A new episode, in a lane of its own. Use it with `with`, or call its `end`."""
        if not self.is_ours:
            raise explain()
        if self._closed:
            raise RuntimeError("This agent is closed; call rl4sys.connect for another one.")
        lane = self._lanes.take()
        episode = Episode(self._workplace, lane)
        self._episodes[lane.stream.lane] = episode
        return episode

    def health(self) -> Health:
        """The state of things now."""
        tally, outbox, snapshot = self._tally, self._outbox, self._newest.snapshot
        drops = tally.with_prefix("drops")
        for reason, count in dict(outbox.drops).items():
            drops[reason] = drops.get(reason, 0) + count
        return Health(
            connected=tally.connected,
            learner=None if snapshot is None else snapshot.learner,
            version=None if snapshot is None else snapshot.version,
            age=None if snapshot is None else self._clock() - self._newest.since,
            decisions=self._lanes.decisions,
            fallback_decisions=tally.count("fallback_decisions"),
            open_episodes=self._lanes.open,
            backlog=self._handoff.waiting + outbox.backlog,
            backlog_bytes=outbox.backlog_bytes,
            acknowledged=self._courier.delivery.acknowledged,
            drops=drops,
            late_rewards=tally.count("late_rewards"),
            damaged_patches=tally.count("damaged_patches"),
            last_error=tally.last_error,
            stopped=None if tally.stopped is None else str(tally.stopped),
        )

    def flush(self, timeout: float = 10.0) -> bool:
        """Send what is sealed, and wait until the server has it; false if it did not in time."""
        deadline = self._clock() + timeout
        return self._handoff.drained(timeout) and self._courier.flush(deadline)

    def wait_for_policy(self, timeout: float) -> BaseException | None:
        """Wait until there is a policy; returns why there will be none, if that is known."""
        deadline = self._clock() + timeout
        while self._newest.snapshot is None and self._tally.stopped is None:
            left = deadline - self._clock()
            if left <= 0:
                break
            self._newest.wait(left)
        return self._tally.stopped

    def use_cached_policy(self) -> bool:
        """Act with what the cache has, until the server sends something newer."""
        snapshot = None if self._cache is None else self._cache.load()
        if snapshot is None or self._newest.snapshot is not None:
            return self._newest.snapshot is not None
        self._newest.publish(snapshot, self._clock())
        return True

    @property
    def is_ours(self) -> bool:
        """Whether this process connected it, and not one that it was forked from."""
        return self._workplace.forks == forks()

    @property
    def problem(self) -> Exception | None:
        """What the last call that failed met with; None if none did."""
        return self._tally.problem

    @property
    def has_policy(self) -> bool:
        """Whether decisions are the policy's, not the fallback's."""
        return self._newest.snapshot is not None

    def close(self, timeout: float = 10.0) -> None:
        """End what is open as truncated, send what there is for up to `timeout` seconds, and stop.

        What could not be sent stays in an outbox on disk for the next start; in memory it is lost, and counted.
        """
        if not self.is_ours:
            raise explain()
        with self._closing:
            if self._closed:
                return
            self._closed = True
        farewell.forget(self)
        deadline = self._clock() + timeout
        for episode in list(self._episodes.values()):
            episode.__exit__(None, None, None)
        self._handoff.close()
        if self._handoff.drained(timeout):
            self._courier.flush(deadline)
        self._courier.stop()
        self._watcher.stop()
        if self._transport is not None:
            self._transport.close()
        for thread in self._threads:
            thread.join(max(0.2, deadline - self._clock()))
        if self._cache is not None:
            self._cache.save()
        if lost := self._courier.close():
            self._tally.add("drops:unsent_at_close", lost)

    def _release(self, lane: Lane) -> None:
        self._episodes.pop(lane.stream.lane, None)
        self._lanes.release(lane)


def _outbox(settings: ClientSettings, epoch: int) -> AnyOutbox:
    limits = OutboxLimits(settings.outbox_bytes, settings.overflow)
    if settings.outbox is None:
        return Outbox(epoch, limits)
    try:
        return DiskOutbox(settings.outbox, epoch, limits)
    except OSError as error:
        raise SettingsError(f"outbox: {settings.outbox} cannot be used: {error.strerror or error}.") from error


def _forget(snapshot: Snapshot) -> None:
    """Without a cache nothing is kept."""
