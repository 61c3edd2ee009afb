"""Receives new weights in a background thread."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import numpy as np

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.control_order import ControlOrder
from rl4sys.client.governor import Governor
from rl4sys.client.policy_cache import MakeInterface
from rl4sys.client.retries import REFUSED_SECONDS, Backoff, Remedy, asked_pause, remedy
from rl4sys.client.server_policy import ServerPolicy
from rl4sys.client.shared_session import OpenSession, SharedSession, share_of
from rl4sys.client.snapshot import Snapshot
from rl4sys.policy import layout_of
from rl4sys.weights import LayoutMismatch, PatchMismatch, apply_patch
from rl4sys.wire import ContractViolation, decode_patch
from rl4sys.wire.calls import CallFailed, Code, Transport, Watching
from rl4sys.wire.generated import training_pb2, weights_pb2
from rl4sys.wire.message_sizes import INLINE_PATCH_BYTES

_NAME = "watcher"
_UNUSABLE = (PatchMismatch, ContractViolation, LayoutMismatch)


class Watcher:
    """Publishes each new version; a version whose patch fails verification is pulled in full."""

    def __init__(
        self,
        shared_session: SharedSession,
        transport: Transport,
        governor: Governor,
        interface: MakeInterface,
        timeout: float,
        backoff: Backoff,
        clock: Callable[[], float],
        status: AgentStatus,
        on_publish: Callable[[Snapshot], None],
        server_policy: ServerPolicy | None = None,
    ) -> None:
        """`server_policy` decides with `decide: server`; then no weights are pulled."""
        self._server_policy = server_policy
        self._lost: OpenSession | None = None
        """A session that the server no longer knows."""
        self._shared_session = shared_session
        self._transport = transport
        self._governor = governor
        self._interface = interface
        self._timeout = timeout
        self._backoff = backoff
        self._clock = clock
        self._status = status
        self._on_publish = on_publish
        self._stopping = threading.Event()
        self._watching: Watching | None = None
        self._joined: OpenSession | None = None
        """The session that was last found open."""
        self._caught_up: OpenSession | None = None
        """The session whose policy the present snapshot is known to be."""

    def run(self) -> None:
        """Watch for new versions until `stop` is called."""
        while not self._stopping.is_set():
            opened: OpenSession | None = None
            lost, self._lost = self._lost, None
            if lost is not None:
                self._shared_session.forget(lost.session)
            try:
                opened = self._shared_session.open()
                self._catch_up(opened)
                self._watch(opened)
                pause = self._backoff.failed()
            except CallFailed as error:
                if self._stopping.is_set():
                    # Closing the connection cancelled this call.
                    return
                pause = self._backoff.failed(self._recover(error, opened))
            except _UNUSABLE as error:
                self._status.failed(error)
                pause = self._backoff.failed()
            self._stopping.wait(pause)

    def stop(self) -> None:
        """End `run` soon."""
        self._stopping.set()
        watching = self._watching
        if watching is not None:
            watching.cancel()

    def _recover(self, error: CallFailed, opened: OpenSession | None) -> float:
        """Report a failed call; returns the least seconds to wait."""
        what = remedy(error)
        # NOT_FOUND for a version is solved by pulling again; for an experiment the user has to act.
        is_refused = what is Remedy.REPAIR and (opened is None or error.code is not Code.NOT_FOUND)
        if (is_refused or what is Remedy.JOIN) and opened is not None:
            self._shared_session.forget(opened.session)
        if is_refused:
            self._status.refused(_NAME, error)
            self._governor.wake()
            return REFUSED_SECONDS
        self._status.failed(error)
        self._governor.wake()
        return asked_pause(error.failure.retry_after_ms)

    def renew(self) -> None:
        """Join and watch again: an operator may have accepted the lineage of the learner meanwhile."""
        joined, watching = self._joined, self._watching
        if joined is not None:
            self._shared_session.forget(joined.session)
        if watching is not None:
            watching.cancel()

    def lose(self, opened: OpenSession) -> None:
        """Join again soon, because the server does not know this session. Never waits: acting threads call it."""
        watching = self._watching
        if self._joined is opened and self._lost is not opened:
            self._lost = opened
            if watching is not None:
                watching.cancel()

    def _catch_up(self, opened: OpenSession) -> None:
        """After joining: pull if the present weights are old or belong to another learner."""
        governor = self._governor
        known = governor.known
        if opened is not self._joined:
            self._joined = opened
            self._status.succeeded(_NAME)
        if self._server_policy is not None:
            self._follow(opened, self._server_policy)
            return
        if governor.keeps_version:
            governor.use_cached(self._clock())
        if governor.lineage_problem is not None:
            return
        if opened is self._caught_up and known is not None:
            if self._status.connected:
                return
            # A silent watch does not show whether the server is back; this call does.
            self._pull(opened, known)
        elif governor.keeps_version:
            pass
        elif known is None or not opened.fits(known):
            self._pull(opened, None)
        elif not opened.goes_back(opened.version, known) and known.version != opened.version:
            self._pull(opened, known if known.version < opened.version else None)
        governor.use_cached(self._clock())
        self._caught_up = opened
        self._status.succeeded(_NAME)

    def _follow(self, opened: OpenSession, server_policy: ServerPolicy) -> None:
        """Let the server decide in this session."""
        if opened is not self._caught_up:
            self._governor.publish(server_policy.join(opened), self._clock())
            self._caught_up = opened
        elif not self._status.connected:
            # A silent watch does not show whether the server is back; this call does. What it sends is not needed.
            next(iter(self._transport.pull(self._pull_request(opened, self._governor.snapshot), self._timeout)), None)
        self._status.succeeded(_NAME)

    def _watch(self, opened: OpenSession) -> None:
        governor = self._governor
        snapshot = governor.snapshot
        if snapshot is None:
            return
        request = training_pb2.WatchRequest(session=opened.session.id, control=True)
        if governor.lineage_problem is None:
            request.have = snapshot.version
            request.max_patch_bytes = INLINE_PATCH_BYTES if self._server_policy is None else 0
        watching = self._transport.watch(request)
        self._watching = watching
        try:
            if self._stopping.is_set():
                return
            for news in watching:
                self._receive(opened, news)
        finally:
            self._watching = None
            watching.cancel()

    def _receive(self, opened: OpenSession, news: training_pb2.NewVersion) -> None:
        governor = self._governor
        self._backoff.succeeded()
        self._status.succeeded(_NAME)
        snapshot = governor.snapshot
        if news.HasField("control"):
            kept = governor.keeps_version
            governor.obey(ControlOrder.from_message(news.control))
            if kept and not governor.keeps_version and self._server_policy is None:
                self._pull(opened, snapshot)
            return
        if news.record_share:
            governor.ask_share(share_of(news.record_share))
        if snapshot is None or news.version == snapshot.version or governor.keeps_version:
            return
        if self._server_policy is not None:
            announced = self._server_policy.announced(opened, news.version)
            if announced is not None and announced.version > snapshot.version:
                governor.publish(announced, self._clock())
            return
        if opened.goes_back(news.version, snapshot):
            self._status.add("versions_not_taken")
            return
        if news.version < snapshot.version or not news.HasField("patch"):
            # An older version: either a pull was faster, or the present version is unknown to this learner, and the
            # server then sends its newest in full.
            self._pull(opened, snapshot)
            return
        if news.patch.header.HasField("base") and news.patch.header.base != snapshot.version:
            # Versions between were not taken, because an operator had frozen this one.
            self._pull(opened, snapshot)
            return
        try:
            self._apply(opened, snapshot, iter((news.patch,)), news.version)
        except _UNUSABLE:
            self._status.add("damaged_patches")
            self._pull(opened, None)

    def _pull(self, opened: OpenSession, have: Snapshot | None) -> None:
        """Pull the newest version: as a patch, or in full if the patch cannot be applied."""
        chunks = self._transport.pull(self._pull_request(opened, have), self._timeout)
        first = next(chunks, None)
        if first is None:
            if have is None:
                raise ContractViolation("The server sent no weights though the client has none. Report it.")
            return
        try:
            self._apply(opened, have, itertools.chain((first,), chunks))
        except _UNUSABLE:
            self._status.add("damaged_patches")
            if have is None:
                raise
            self._pull(opened, None)

    def _pull_request(self, opened: OpenSession, have: Snapshot | None) -> training_pb2.PullRequest:
        return training_pb2.PullRequest(session=opened.session.id, have=None if have is None else have.version)

    def _apply(
        self,
        opened: OpenSession,
        base: Snapshot | None,
        chunks: Iterator[weights_pb2.PatchChunk],
        target: int | None = None,
    ) -> None:
        known = self._governor.known
        if known is not None and opened.fits(known):
            interface = known.interface
        else:
            interface = self._interface(opened.spec, opened.exploit)
        size = layout_of(interface.policies.explore.program).size
        patch = decode_patch(chunks, size)
        if patch.base is not None and (base is None or patch.base != base.version):
            raise PatchMismatch(
                f"The patch starts from version {patch.base}, which this client does not have. Pull in full."
            )
        if target is not None and patch.target != target:
            raise PatchMismatch(f"The patch leads to version {patch.target}; {target} was announced. Pull in full.")
        weights = apply_patch(None if base is None else base.weights, patch, size)
        if not np.isfinite(weights).all():
            raise ContractViolation(
                f"Version {patch.target} has weights that are NaN or infinite. See the learner's log."
            )
        if opened.goes_back(patch.target, known) or self._governor.keeps_version:
            self._status.add("versions_not_taken")
            return
        learner = opened.session.learner
        snapshot = Snapshot(
            interface, opened.schema_hash, learner, patch.target, weights, opened.max_steps, opened.lineage
        )
        self._governor.publish(snapshot, self._clock())
        self._on_publish(snapshot)
