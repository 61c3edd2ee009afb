"""The Pull and Watch calls: versions on request, or as they are published."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from rl4sys.server.access.sessions import Session
from rl4sys.server.call_errors import draining
from rl4sys.weights import VersionGone
from rl4sys.wire import Failure, FailureReason, encode_patch
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2, weights_pb2
from rl4sys.wire.message_sizes import INLINE_PATCH_BYTES

_LOOK_SECONDS = 30.0


def pull(session: Session, request: training_pb2.PullRequest) -> Iterator[weights_pb2.PatchChunk]:
    """The chunks of a patch; none if the client has the newest version already."""
    learner = session.learner
    have = int(request.have) if request.HasField("have") else None
    want = int(request.want) if request.HasField("want") else None
    if want is None and have == learner.version:
        return
    try:
        patch = learner.patch(have, want)
    except VersionGone as error:
        raise CallFailed(
            Code.NOT_FOUND, f"{error} Pull without `want`.", Failure(FailureReason.VERSION_GONE)
        ) from error
    session.activity.version = patch.target
    yield from encode_patch(patch)


class VersionWatch:
    """New versions of one learner, until cancelled. Versions that were superseded meanwhile are skipped."""

    def __init__(
        self,
        session: Session,
        request: training_pb2.WatchRequest,
        is_draining: Callable[[], bool],
        left: Callable[[], None],
    ) -> None:
        self._session, self._is_draining, self._left = session, is_draining, left
        self._have = int(request.have) if request.HasField("have") else None
        if self._have is not None and self._have > session.learner.version:
            # This learner never published that number: the client's weights are of no use as a base.
            self._have = None
        self._sent = self._have
        self._max_patch_bytes = min(request.max_patch_bytes, INLINE_PATCH_BYTES)
        self._obeyed = 0 if request.control else None
        """The sequence of the last order in this stream; None if orders are not wanted."""
        self._cancelled = threading.Event()

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        try:
            while not self._cancelled.is_set():
                if (order := self.next_order()) is not None:
                    yield order
                elif self.has_news():
                    yield self.news()
                else:
                    self._session.learner.wait_for_change(self._is_over, _LOOK_SECONDS)
        finally:
            self.cancel()

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from another thread whenever `has_news` may have changed; call the result to stop that."""
        return self._session.learner.listen(changed)

    def next_order(self) -> training_pb2.NewVersion | None:
        """The order in force, if this stream has to send it. Never waits."""
        if not self._has_order():
            return None
        order = self._session.learner.orders.order
        self._obeyed = order.sequence
        return training_pb2.NewVersion(version=self._sent or 0, control=order.to_message())

    def _has_order(self) -> bool:
        return self._obeyed is not None and self._session.learner.orders.order.sequence > self._obeyed

    def has_news(self) -> bool:
        """Whether there is a version to send; raises if the stream has to end."""
        if self._is_draining():
            raise draining()
        learner = self._session.learner
        self._session.require_lineage()
        return self._sent is None or learner.version > self._sent

    def news(self) -> training_pb2.NewVersion:
        """The newest version, with its patch if that is small enough; packing it may take a while."""
        learner = self._session.learner
        if not self._max_patch_bytes:
            self._sent = learner.version
            return training_pb2.NewVersion(version=self._sent, record_share=learner.share_for_version)
        patch = learner.patch(self._have, None)
        self._sent = patch.target
        news = training_pb2.NewVersion(version=patch.target, record_share=learner.share_for_version)
        if len(patch.payload) <= self._max_patch_bytes:
            news.patch.CopyFrom(next(encode_patch(patch, max(1, len(patch.payload)))))
            self._have = self._session.activity.version = patch.target
        return news

    def cancel(self) -> None:
        """End the stream."""
        if not self._cancelled.is_set():
            self._cancelled.set()
            self._left()
            self._session.learner.wake_waiting()

    def _is_over(self) -> bool:
        learner = self._session.learner
        is_newer = self._sent is None or learner.version > self._sent
        has_ended = self._cancelled.is_set() or self._is_draining()
        return has_ended or is_newer or self._session.has_ended or self._has_order()
