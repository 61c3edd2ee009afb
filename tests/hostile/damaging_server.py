"""A fake training server that damages its replies on purpose."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from tests.client.fake_server import FakeServer, FakeWatching, some_weights
from tests.hostile.mutations import mutated

from rl4sys.wire import FAILURE_METADATA, Failure
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2, weights_pb2

M = TypeVar("M", bound=Message)
_CODES = [code for code in Code if code is not Code.UNAUTHENTICATED]


class DamagingServer(FakeServer):
    """Damages every reply of one kind: "join", "push", "pull", "news" or "failure". Each new watch has news."""

    def __init__(self, kind: str, seed: int, **changes: Any) -> None:
        super().__init__(**changes)
        self._kind, self._seed = kind, seed
        self.lies: Counter[str] = Counter()
        self.digests = {self.store.newest.sha256}
        """Digests of all published versions: no other weights may be used."""

    def learn(self) -> None:
        """Publish another version."""
        self.publish(some_weights(self.spec, self.store.latest + 1))
        self.digests.add(self.store.newest.sha256)

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        return self._damaged("join", super().join(request, timeout))

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        return self._damaged("push", super().push(request, timeout))

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        for chunk in super().pull(request, timeout):
            yield self._damaged("pull", chunk)

    def watch(self, request: training_pb2.WatchRequest) -> Any:
        self.learn()
        return _DamagedNews(self, super().watch(request))

    def honest(self) -> None:
        """Damage nothing from now on."""
        self._kind = "nothing"

    def _damaged(self, kind: str, message: M) -> M:
        """What arrives instead of a message; bytes that cannot be parsed fail as in gRPC."""
        if self._kind == "failure" and kind != "join":
            self._fail()
        if kind != self._kind:
            return message
        chance = self._chance(kind)
        whole = message.SerializeToString()
        try:
            return type(message).FromString(mutated(whole, [whole], chance))
        except DecodeError as error:
            raise CallFailed(Code.INTERNAL, f"Exception deserializing response: {error}") from error

    def _fail(self) -> None:
        chance = self._chance("failure")
        whole = training_pb2.Failure(reason=1 + chance.randrange(12), retry_after_ms=1).SerializeToString()
        metadata = ((FAILURE_METADATA, mutated(whole, [whole], chance)),)
        raise CallFailed(chance.choice(_CODES), "said the server", Failure.from_metadata(metadata))

    def _chance(self, kind: str) -> random.Random:
        self.lies[kind] += 1
        return random.Random(f"{kind}/{self._seed}/{self.lies[kind]}")


class _DamagedNews:
    def __init__(self, server: DamagingServer, news: FakeWatching) -> None:
        self._server, self._news = server, news

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        for news in self._news:
            if self._server._kind == "pull":
                # As if it were too large to be included.
                news.ClearField("patch")
            yield self._server._damaged("news", news)
            self._server.learn()

    def cancel(self) -> None:
        self._news.cancel()


def digest(weights: Any) -> bytes:
    return hashlib.sha256(weights.tobytes()).digest()
