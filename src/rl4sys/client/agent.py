"""The agent: acts inside a live system, sends experience and receives new weights in the background."""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from rl4sys.client import exit_hook
from rl4sys.client.agent_parts import (
    bad_input_choice,
    client_kernels,
    decider_for,
    fitting_policy,
    local_interface,
    native_acting,
    outbox_for,
    server_interface,
)
from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.answer_wait import AnswerWait
from rl4sys.client.background_thread import start_thread
from rl4sys.client.client_level import ClientLevel
from rl4sys.client.client_report import client_report
from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.control_order import ControlFile
from rl4sys.client.courier import Courier
from rl4sys.client.decision_batch import act_many
from rl4sys.client.decision_place import DecisionPlace
from rl4sys.client.decision_times import DecisionTimes
from rl4sys.client.delivery import Delivery, Pace
from rl4sys.client.episode import Episode
from rl4sys.client.fallback import Fallback
from rl4sys.client.forks import fork_error, forks
from rl4sys.client.governor import Governor
from rl4sys.client.guard import Guard
from rl4sys.client.health import Health
from rl4sys.client.health_reporter import HealthReporter
from rl4sys.client.lane import Lane
from rl4sys.client.lane_allocator import LaneAllocator
from rl4sys.client.ordered_profile import OrderedProfile
from rl4sys.client.policy_cache import PolicyCache
from rl4sys.client.retries import Backoff, is_unreachable
from rl4sys.client.segment_buffer import SegmentBufferPool
from rl4sys.client.segment_encoder import SegmentEncoder
from rl4sys.client.segment_queue import SegmentQueue
from rl4sys.client.server_policy import ServerPolicy
from rl4sys.client.shared_session import SharedSession, join_request
from rl4sys.client.shared_state import SharedState
from rl4sys.client.snapshot import Snapshot, ThreadPolicies
from rl4sys.client.thinning import Thinning, fleet_phase
from rl4sys.client.traffic import Traffic
from rl4sys.client.watcher import Watcher
from rl4sys.version import __version__
from rl4sys.wire.calls import Transport

_LONGEST_LINGER = 0.05
"""Seconds that a sealed segment may wait before it is in the outbox: the most that a killed client loses."""
_EAGER_BYTES = 32 << 10
"""A backlog of this size is sent at once, so that the experience of a fast system stays recent."""
_STEP_BITS = 15
"""Random steps to begin with have 48 bits, which leaves room for as many decisions."""


@dataclass(frozen=True, slots=True)
class Start:
    """What differs from one start of a client to the next."""

    epoch: int
    """63 random bits, different at every start of the client."""
    first_episode: int
    """Larger than any episode number of an earlier start, so that episodes of two starts are never confused."""
    seed: int
    clock: Callable[[], float]
    """A monotonic clock in seconds."""


class Agent:
    """Starts episodes; three background threads encode, send and receive. Created by `rl4sys.connect`.

    It is thread-safe. Memory is bounded: `outbox_bytes` for unsent experience, a quarter of that for segments that are
    not encoded yet, and for each open episode buffers of `max_segment_length` steps, of which there are a few when
    weights change often.
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
        self._traffic: Traffic = getattr(transport, "traffic", None) or Traffic()
        self._clock = start.clock
        self._started_at = start.clock()
        self._status = AgentStatus()
        asks = settings.decide is DecisionPlace.SERVER
        first_step = start.epoch >> _STEP_BITS if settings.seed is None else 0
        self._lanes = LaneAllocator(settings.client_id, start.seed, start.first_episode, first_step)
        self._queue = SegmentQueue(
            settings.outbox_bytes // 4, settings.overflow, self._status, min(settings.send_interval, _LONGEST_LINGER)
        )
        self._outbox = outbox_for(settings, start.epoch)
        rng = random.Random(start.epoch)
        pace = Pace(settings.send_interval, settings.send_frequency, min(_EAGER_BYTES, settings.outbox_bytes // 2))
        interface = local_interface(settings, self._status)
        name = settings.policy_id or settings.client_id
        # With `decide: server` there is no policy to keep.
        directory = None if asks else settings.cache
        self._cache = None if directory is None else PolicyCache(directory, name, start.clock, interface)
        keep = self._cache.keep if self._cache is not None else _forget
        control = None if settings.cache is None else ControlFile(settings.cache, name)
        self._governor = (
            Governor(settings.mode, asks=asks)
            if control is None
            else Governor(settings.mode, control.load(), control.save, asks=asks)
        )
        self._governor.cached = None if self._cache is None else fitting_policy(self._cache.load(), settings)
        kernels, times = client_kernels(settings), DecisionTimes()
        request = join_request(settings, f"rl4sys-python/{__version__} ({kernels})", start.epoch)
        shared_session = SharedSession(
            transport, settings, request, lambda: self._governor.known, self._governor.joined
        )
        delivery = Delivery(self._outbox, pace, rng)
        self._courier = Courier(
            *(delivery, shared_session, transport, settings.call_seconds, start.clock, self._status),
            is_foreign=lambda: self._governor.lineage_problem is not None,
            on_share=self._governor.ask_share,
        )
        server_policy = ServerPolicy(
            transport,
            server_interface(settings, self._status),
            AnswerWait(Backoff(random.Random(start.epoch + 2)), start.clock, settings.decide_timeout),
            self._status,
            settings.decide_timeout,
            on_version=lambda snapshot: self._governor.publish(snapshot, start.clock()),
            on_lost_session=lambda opened: self._watcher.lose(opened),
        )
        self._watcher = Watcher(
            shared_session,
            transport,
            self._governor,
            interface,
            timeout=settings.call_seconds,
            backoff=Backoff(random.Random(start.epoch + 1)),
            clock=start.clock,
            status=self._status,
            on_publish=keep,
            server_policy=server_policy if asks else None,
        )
        self._shared = SharedState(
            governor=self._governor,
            policies=ThreadPolicies(kernels),
            server_policy=server_policy,
            status=self._status,
            pool=SegmentBufferPool(),
            thinning=Thinning(fleet_phase(settings.client_id) if settings.policy_id else None),
            times=times,
            post=self._queue.post,
            release=self._release,
            longest=settings.max_segment_length,
            reward_window=settings.reward_window,
            clock=start.clock,
            fallback=decider_for(settings, fallback),
            on_bad_input=bad_input_choice(settings, fallback),
            forks=forks(),
            native=native_acting(kernels, self._governor, times),
        )
        self.episode_type: type[Episode] = Episode
        """The class of later episodes."""
        self._episodes: dict[int, Episode] = {}
        self._closing = threading.Lock()
        self._closed = False
        encoder = SegmentEncoder(
            self._queue, self._courier, self._status, lambda: self._governor.level is not ClientLevel.RECORD
        )
        self._guard = Guard(self._governor, self._status, start.clock, settings.kill_file, settings.lease)
        self._reporter = HealthReporter(
            *(shared_session, transport, self._governor, self._status, start.clock),
            epoch=start.epoch,
            timeout=min(settings.call_seconds, math.inf if settings.lease is None else settings.lease / 3),
            lease=settings.lease,
            report=lambda: client_report(self.health(), start.clock() - self._started_at),
            profile=OrderedProfile(self, lambda: self._reporter.wake()),
            renew=self._watcher.renew,
        )
        work = {"encoder": encoder.run, "courier": self._courier.run, "watcher": self._watcher.run}
        work["reporter"] = self._reporter.run
        if self._guard.is_needed:
            work["guard"] = self._guard.run
        self._threads = [start_thread(name, run, self._status) for name, run in work.items()]
        exit_hook.remember(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # In another thread: closing sends the backlog, which may take seconds.
        await asyncio.to_thread(self.close)

    def episode(self) -> Episode:
        """Start an episode. Use it in a `with` statement, or call its `end`."""
        if not self.is_ours:
            raise fork_error()
        if self._closed:
            raise RuntimeError("This agent is closed; call rl4sys.connect for another one.")
        lane = self._lanes.take()
        episode = self.episode_type(self._shared, lane)
        self._episodes[lane.stream.lane] = episode
        return episode

    def act_many(
        self, episodes: Sequence[Episode], observations: Any, masks: Any = None, now: float | None = None
    ) -> list[Any]:
        """Choose an action for each of several open episodes of this agent, with one run of the policy.

        `observations` and `masks` have one row for each episode: a sequence, an array [N, …], or named arrays [N, …].
        The choices, and what is recorded, are those of `episode.act` for each. An observation that the policy cannot
        use goes to the fallback alone; where it is to raise, nothing is decided for any episode. `now` is that of all.
        """
        if not self.is_ours:
            raise fork_error()
        return act_many(self._shared, episodes, observations, masks, now)

    def health(self) -> Health:
        """The present state of this agent."""
        self._require_ours()
        status, outbox, snapshot = self._status, self._outbox, self._governor.snapshot
        drops = status.with_prefix("drops")
        for reason, count in dict(outbox.drops).items():
            drops[reason] = drops.get(reason, 0) + count
        return Health(
            connected=status.connected,
            learner=None if snapshot is None else snapshot.learner,
            version=None if snapshot is None else snapshot.version,
            age=None if snapshot is None else self._clock() - self._governor.since,
            decisions=self._lanes.decisions,
            fallback_decisions=status.count("fallback_decisions"),
            incumbent_decisions=status.count("incumbent_decisions"),
            open_episodes=self._lanes.open,
            backlog=self._queue.waiting + outbox.backlog_segments,
            backlog_bytes=outbox.backlog_bytes,
            acknowledged=self._courier.delivery.acknowledged,
            mode=self.settings.mode,
            off=self._governor.plan.off,
            control=str(self._governor.order),
            control_sequence=self._governor.order.sequence,
            record_share=self._governor.record_share,
            observed_decisions=status.count("observed_decisions"),
            agreed_decisions=status.count("agreed_decisions"),
            decision_time=tuple(self._shared.times.counts),
            warning=status.warning,
            drops=drops,
            late_rewards=status.count("late_rewards"),
            damaged_patches=status.count("damaged_patches"),
            lineage=None if snapshot is None else snapshot.lineage,
            lineage_problem=self._governor.lineage_problem,
            versions_not_taken=status.count("versions_not_taken"),
            bad_inputs=status.count("bad_inputs"),
            unanswered_decisions=status.count("unanswered_decisions"),
            defaulted_inputs=status.count("defaulted_inputs"),
            thinned_episodes=status.count("thinned_episodes"),
            unrecorded_decisions=status.count("unrecorded_decisions"),
            runtime=self._shared.policies.kernels,
            last_error=status.last_error,
            stopped=None if status.stopped is None else str(status.stopped),
        )

    def flush(self, timeout: float = 10.0) -> bool:
        """Send all sealed segments and wait until the server acknowledged them; false after `timeout` seconds."""
        self._require_ours()
        deadline = self._clock() + timeout
        return self._queue.drained(timeout) and self._courier.flush(deadline)

    def _require_ours(self) -> None:
        """Raise in a forked child, where a lock may be held by a thread that does not exist."""
        if not self.is_ours:
            raise fork_error()

    def wait_for_policy(self, timeout: float, *, until_unreachable: bool = False) -> BaseException | None:
        """Wait for a policy; returns the error that prevents one, if there is one.

        With a cached policy, or if `until_unreachable`, only as long as the server may answer.
        """
        status = self._status
        gives_up = until_unreachable or self._governor.cached is not None
        self._governor.wait(
            timeout, lambda: status.stopped is not None or (gives_up and is_unreachable(status.problem))
        )
        return self._status.stopped

    def use_cached_policy(self) -> bool:
        """Act with the cached policy until the server sends a newer one."""
        return self._governor.use_cached(self._clock())

    @property
    def level(self) -> ClientLevel:
        """How much of this agent works: `off`, `decide`, `record` or `full`. Set it to find what each part costs."""
        return self._governor.level

    @level.setter
    def level(self, level: str) -> None:
        if level == ClientLevel.OFF and self._shared.fallback is None:
            raise ValueError("The level 'off' needs a fallback, which decides then. Pass `fallback=` to connect.")
        self._governor.level = ClientLevel(level)

    @property
    def is_profiled(self) -> bool:
        """Whether a profile of this agent is being made."""
        return self._shared.times.is_profiled

    @property
    def status(self) -> AgentStatus:
        """Counters and problems, which the background threads note."""
        return self._status

    @property
    def traffic(self) -> Traffic:
        """What went over the connection so far; nothing within one process."""
        return self._traffic

    @property
    def open_episodes(self) -> Sequence[Episode]:
        """The episodes that have not ended."""
        return list(self._episodes.values())

    @property
    def shared(self) -> SharedState:
        """What all episodes of this agent share."""
        return self._shared

    @property
    def is_ours(self) -> bool:
        """Whether this process connected the agent, and not a process that it was forked from."""
        return self._shared.forks == forks()

    @property
    def problem(self) -> Exception | None:
        """The error of the last call that failed; None if none did."""
        return self._status.problem

    @property
    def has_policy(self) -> bool:
        """Whether the policy decides, not the fallback."""
        return self._governor.snapshot is not None

    def close(self, timeout: float | None = None) -> None:
        """Truncate open episodes, send the backlog for up to `timeout` seconds (else `close_timeout`), and stop.

        Gives up at once when the server cannot be reached. Unsent segments stay in an outbox on disk for the next
        start; those in memory are lost and counted as drops.
        """
        if not self.is_ours:
            raise fork_error()
        with self._closing:
            if self._closed:
                return
            self._closed = True
        exit_hook.forget(self)
        timeout = self.settings.close_timeout if timeout is None else timeout
        deadline = self._clock() + timeout
        for episode in self.open_episodes:
            episode.__exit__(None, None, None)
        self._queue.close()
        if self._queue.drained(timeout):
            self._courier.flush(deadline, until_unreachable=True)
        self._courier.stop()
        self._watcher.stop()
        self._reporter.stop()
        self._guard.stop()
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


def __getattr__(name: str) -> Any:
    """The agent in the original style under its original path, `rl4sys.client.agent.RL4SysAgent`."""
    if name != "RL4SysAgent":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module("rl4sys.client.original_agent"), name)


def _forget(snapshot: Snapshot) -> None:
    """Do nothing: there is no cache."""
