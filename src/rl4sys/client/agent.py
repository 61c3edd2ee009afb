"""An agent: a policy inside a live system, with everything that works behind it."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rl4sys.client import exit_hook
from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.courier import Courier
from rl4sys.client.delivery import AnyOutbox, Delivery, Pace
from rl4sys.client.episode import Episode, Fallback, SharedState
from rl4sys.client.forks import explain, forks
from rl4sys.client.health import Health
from rl4sys.client.lane import Lane, LaneAllocator
from rl4sys.client.policy_cache import PolicyCache
from rl4sys.client.retries import Backoff
from rl4sys.client.section import SettingsError
from rl4sys.client.segment_encoder import SegmentEncoder
from rl4sys.client.segment_queue import SegmentQueue
from rl4sys.client.settings import ClientSettings
from rl4sys.client.shared_session import SharedSession
from rl4sys.client.snapshot import Newest, Snapshot, ThreadPolicies
from rl4sys.client.watcher import Watcher
from rl4sys.records import DiskOutbox, Outbox, OutboxLimits
from rl4sys.version import __version__
from rl4sys.wire.calls import Transport

_log = logging.getLogger(__name__)
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
        self._status = AgentStatus()
        self._newest = Newest()
        self._lanes = LaneAllocator(settings.client_id, start.seed, start.first_episode)
        self._queue = SegmentQueue(
            settings.outbox_bytes // 4, settings.overflow, self._status, min(settings.send_interval, _LONGEST_LINGER)
        )
        self._outbox = _outbox(settings, start.epoch)
        rng = random.Random(start.epoch)
        pace = Pace(settings.send_interval, settings.send_frequency, min(_EAGER_BYTES, settings.outbox_bytes // 2))
        shared_session = SharedSession(transport, settings, f"rl4sys-python/{__version__}")
        delivery = Delivery(self._outbox, pace, rng)
        self._courier = Courier(delivery, shared_session, transport, settings.timeout, start.clock, self._status)
        name = settings.policy_id or settings.client_id
        self._cache = PolicyCache(settings.cache, name, start.clock) if settings.cache is not None else None
        keep = self._cache.keep if self._cache is not None else _forget
        backoff = Backoff(random.Random(start.epoch + 1))
        self._watcher = Watcher(
            shared_session, transport, self._newest, settings.timeout, backoff, start.clock, self._status, keep
        )
        self._shared = SharedState(
            newest=self._newest,
            policies=ThreadPolicies(),
            status=self._status,
            post=self._queue.post,
            release=self._release,
            longest=settings.max_segment_length,
            reward_window=settings.reward_window,
            fallback=fallback,
            forks=forks(),
        )
        self._episodes: dict[int, Episode] = {}
        self._closing = threading.Lock()
        self._closed = False
        encoder = SegmentEncoder(self._queue, self._courier, self._status)
        work = {"encoder": encoder.run, "courier": self._courier.run, "watcher": self._watcher.run}
        self._threads = [_start_thread(name, run, self._status) for name, run in work.items()]
        exit_hook.remember(self)

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
        episode = Episode(self._shared, lane)
        self._episodes[lane.stream.lane] = episode
        return episode

    def health(self) -> Health:
        """The state of things now."""
        status, outbox, snapshot = self._status, self._outbox, self._newest.snapshot
        drops = status.with_prefix("drops")
        for reason, count in dict(outbox.drops).items():
            drops[reason] = drops.get(reason, 0) + count
        return Health(
            connected=status.connected,
            learner=None if snapshot is None else snapshot.learner,
            version=None if snapshot is None else snapshot.version,
            age=None if snapshot is None else self._clock() - self._newest.since,
            decisions=self._lanes.decisions,
            fallback_decisions=status.count("fallback_decisions"),
            open_episodes=self._lanes.open,
            backlog=self._queue.waiting + outbox.backlog,
            backlog_bytes=outbox.backlog_bytes,
            acknowledged=self._courier.delivery.acknowledged,
            drops=drops,
            late_rewards=status.count("late_rewards"),
            damaged_patches=status.count("damaged_patches"),
            last_error=status.last_error,
            stopped=None if status.stopped is None else str(status.stopped),
        )

    def flush(self, timeout: float = 10.0) -> bool:
        """Send what is sealed, and wait until the server has it; false if it did not in time."""
        deadline = self._clock() + timeout
        return self._queue.drained(timeout) and self._courier.flush(deadline)

    def wait_for_policy(self, timeout: float) -> BaseException | None:
        """Wait until there is a policy; returns why there will be none, if that is known."""
        deadline = self._clock() + timeout
        while self._newest.snapshot is None and self._status.stopped is None:
            left = deadline - self._clock()
            if left <= 0:
                break
            self._newest.wait(left)
        return self._status.stopped

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
        return self._shared.forks == forks()

    @property
    def problem(self) -> Exception | None:
        """What the last call that failed met with; None if none did."""
        return self._status.problem

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
        exit_hook.forget(self)
        deadline = self._clock() + timeout
        for episode in list(self._episodes.values()):
            episode.__exit__(None, None, None)
        self._queue.close()
        if self._queue.drained(timeout):
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
            self._status.add("drops:unsent_at_close", lost)

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


def _start_thread(name: str, work: Callable[[], None], status: AgentStatus) -> threading.Thread:
    """Run `work` in a daemon thread. An error ends the thread and is reported by `agent.health()`, nothing more."""

    def guarded() -> None:
        try:
            work()
        # Nothing above could handle it, and the live system must keep running.
        except Exception as error:
            status.died(name, error)
            _log.exception("The background thread %s died; decisions continue without it.", name)

    thread = threading.Thread(target=guarded, name=f"rl4sys-{name}", daemon=True)
    thread.start()
    return thread
