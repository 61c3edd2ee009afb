"""A fake training service in memory that follows the contract, and breaks calls on request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np

from rl4sys.experience import Array, ArraySpec, Segment
from rl4sys.policy import (
    Decision,
    DiscreteAction,
    Head,
    PolicySpec,
    ProgramBuilder,
    kernel_set,
    layout_of,
    noise_of,
    run_policy,
)
from rl4sys.weights import ModelStore
from rl4sys.wire import (
    Failure,
    FailureReason,
    SegmentFormat,
    decode_question,
    decode_segment,
    encode_action,
    encode_decision,
    encode_patch,
    encode_policy,
    split_pack,
    to_ranges,
)
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2, weights_pb2

Fault = Callable[[], None]


def small_policy(
    *, masked: bool = False, recurrent: bool = False, hidden: int = 8, kind: str = "tanh", sees: int = 8
) -> PolicySpec:
    observation = (ArraySpec("observation", "float32", (sees,)),)
    mask = (ArraySpec("action_mask", "bool", (4,)),) if masked else ()
    builder = ProgramBuilder(observation + mask)
    register = builder.activation(builder.linear("observation", hidden, "actor.0"), kind)
    if recurrent:
        register = builder.gru(register, 4, "memory")
    else:
        register = builder.activation(builder.linear(register, hidden, "actor.1"), kind)
    logits = builder.linear(register, 4, "actor.action")
    head = Head("categorical", (logits,), mask="action_mask" if masked else None)
    return PolicySpec(DiscreteAction(4), builder.program(), head)


def some_weights(spec: PolicySpec, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return (0.3 * rng.standard_normal(layout_of(spec.program).size)).astype(np.float32)


class FakeServer:
    """A `Transport`. `fault` is called before each call by its name, and may raise or wait; `after` likewise."""

    def __init__(self, spec: PolicySpec | None = None, **limits: int) -> None:
        self.spec = spec or small_policy()
        self.form = SegmentFormat.of(self.spec)
        self.store = ModelStore(some_weights(self.spec))
        self.stored: dict[tuple[str, int, int], bytes] = {}
        self.pushes: list[training_pb2.PushRequest] = []
        self.joins: list[training_pb2.JoinRequest] = []
        self.refuse: Callable[[Segment], training_pb2.RefusalReason | None] = lambda segment: None
        self.before: Callable[[str], None] = lambda call: None
        self.after: Callable[[str], None] = lambda call: None
        self.tamper: Callable[[weights_pb2.PatchChunk], weights_pb2.PatchChunk] = lambda chunk: chunk
        self.limits = {"max_message_bytes": 4 << 20, "max_segment_steps": 1000, "max_push_segments": 64} | limits
        self.closed = threading.Event()
        self.reply = training_pb2.JoinReply()
        """What a reply to Join has besides: lineage, exploit policy, orders, shares, …."""
        self.order: training_pb2.Control | None = None
        self.reports: list[training_pb2.ReportRequest] = []
        self.asked: list[training_pb2.ActRequest] = []
        self.noise_seed = 0
        self.report_reply = training_pb2.ReportReply()
        self._sessions: dict[str, str] = {}
        self._count = 0
        self._lock = threading.Condition()

    def segments(self) -> list[Segment]:
        """Everything stored, decoded and checked, in the order of epoch and sequence."""
        return [
            decode_segment(self.form, data, client=client, sequence=sequence, max_steps=1 << 20)
            for (client, _, sequence), data in sorted(self.stored.items())
        ]

    def publish(self, weights: Array) -> int:
        with self._lock:
            version = self.store.publish(weights).number
            self._lock.notify_all()
        return version

    def give_order(self, mode: str, sequence: int, reason: str = "") -> None:
        """An order of an operator, for all who watch."""
        with self._lock:
            self.order = training_pb2.Control(mode=f"CONTROL_MODE_{mode.upper()}", sequence=sequence, reason=reason)
            self._lock.notify_all()

    def restart(self, other: FakeServer | None = None) -> None:
        """Lose all sessions and keep what is durable, or come back with the policies of another server."""
        with self._lock:
            if other is not None:
                self.store, self.reply = other.store, other.reply
            self._sessions.clear()
            self._lock.notify_all()

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        self.before("join")
        with self._lock:
            self.joins.append(request)
            self._count += 1
            session = f"session-{self._count}"
            self._sessions[session] = request.client
            reply = training_pb2.JoinReply(
                protocol=1,
                learner=request.policy_id or request.client,
                session=session,
                schema=self.form.to_message(),
                schema_hash=self.form.hash,
                explore=encode_policy(self.spec) if request.ops else None,
                action=None if request.ops else encode_action(self.spec.action),
                version=self.store.latest,
                limits=training_pb2.Limits(**self.limits),
            )
            reply.MergeFrom(self.reply)
            if self.order is not None:
                reply.control.CopyFrom(self.order)
        self.after("join")
        return reply

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        self.before("push")
        with self._lock:
            client = self._client(request.session)
            self.pushes.append(request)
            if len(request.segments) > self.limits["max_push_segments"]:
                raise CallFailed(Code.INVALID_ARGUMENT, "too many segments")
            reply = training_pb2.PushReply(version=self.store.latest, record_share=self.reply.record_share)
            taken = []
            for pushed in self._alone(request):
                if request.schema_hash != self.form.hash:
                    reply.refused.add(sequence=pushed.sequence, reason="REFUSAL_REASON_SCHEMA", message="other schema")
                    continue
                key = (client, request.epoch, pushed.sequence)
                if key in self.stored:
                    assert self.stored[key] == pushed.segment, "the same name must always have the same bytes"
                    reply.repeated_segments += 1
                segment = decode_segment(
                    self.form, pushed.segment, client=client, sequence=pushed.sequence, max_steps=1 << 20
                )
                reason = self.refuse(segment)
                if reason is not None:
                    reply.refused.add(sequence=pushed.sequence, reason=reason, message="refused by the test")
                    continue
                self.stored[key] = pushed.segment
                taken.append(pushed.sequence)
            reply.acknowledged.extend(to_ranges(taken))
        self.after("push")
        return reply

    def _alone(self, request: training_pb2.PushRequest) -> Iterator[training_pb2.PushedSegment]:
        """Each segment of a push as if it had been sent alone."""
        for pushed in request.segments:
            if pushed.count <= 1:
                yield pushed
                continue
            if pushed.count > self.limits.get("max_pack_segments", 0):
                raise CallFailed(Code.INVALID_ARGUMENT, "too large a pack")
            for number, data in enumerate(split_pack(pushed.segment, pushed.count)):
                yield training_pb2.PushedSegment(sequence=pushed.sequence + number, segment=data)

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        self.before("pull")
        with self._lock:
            self._client(request.session)
            have = request.have if request.HasField("have") else None
            if have == self.store.latest:
                return
            patch = self.store.patch(have, self.store.latest)
        for chunk in encode_patch(patch, 4096):
            yield self.tamper(chunk)

    def watch(self, request: training_pb2.WatchRequest) -> FakeWatching:
        self.before("watch")
        with self._lock:
            self._client(request.session)
        return FakeWatching(self, request)

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        self.before("act")
        with self._lock:
            client = self._client(request.session)
            self.asked.append(request)
            question = decode_question(self.form, request, 4096)
            policy = run_policy(self.spec, self.store.newest.blob, kernel_set())
            steps = question.steps or (question.step,) * question.rows
            noise = noise_of(self.noise_seed, question.streams(client), steps, policy.noise_size)
            with np.errstate(all="ignore"):
                decision, finite = policy.act_on_rows(question.observation, noise, question.carry)
            if not finite.all():
                raise CallFailed(Code.INVALID_ARGUMENT, "the policy overflows")
            rows = slice(question.rows)
            parts = ({name: array[rows] for name, array in part.items()} for part in decision[1:])
            reply = encode_decision(self.form, Decision(decision.action[rows], *parts), self.store.latest)
        self.after("act")
        return reply

    def report(self, request: training_pb2.ReportRequest, timeout: float) -> training_pb2.ReportReply:
        self.before("report")
        with self._lock:
            self._client(request.session)
            self.reports.append(request)
        self.after("report")
        return self.report_reply

    def status(self, request: object, timeout: float) -> object:
        raise CallFailed(Code.UNIMPLEMENTED, "the fake has no status")

    def close(self) -> None:
        self.closed.set()

    def _client(self, session: str) -> str:
        if session not in self._sessions:
            failure = Failure(FailureReason.UNKNOWN_SESSION)
            raise CallFailed(Code.FAILED_PRECONDITION, f"There is no session {session}.", failure)
        return self._sessions[session]


class FakeWatching:
    def __init__(self, server: FakeServer, request: training_pb2.WatchRequest) -> None:
        self._server = server
        self._session = request.session
        self._have = request.have
        self._most = request.max_patch_bytes
        self._wants_orders = request.control
        self._sequence = 0
        self._cancelled = False

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        server = self._server
        while True:
            with server._lock:
                server._client(self._session)
                while not (self._has_order() or self._has_version() or self._cancelled):
                    server._lock.wait()
                    server._client(self._session)
                if self._cancelled:
                    return
                news = self._order() if self._has_order() else self._version()
            server.before("news")
            yield news

    def _has_order(self) -> bool:
        order = self._server.order
        return self._wants_orders and order is not None and order.sequence > self._sequence

    def _has_version(self) -> bool:
        return self._server.store.latest != self._have

    def _order(self) -> training_pb2.NewVersion:
        order = self._server.order
        assert order is not None
        self._sequence = order.sequence
        return training_pb2.NewVersion(version=self._have, control=order)

    def _version(self) -> training_pb2.NewVersion:
        server = self._server
        latest = server.store.latest
        (chunk,) = encode_patch(server.store.patch(self._have, latest))
        self._have = latest
        news = training_pb2.NewVersion(version=latest)
        if len(chunk.payload) <= self._most:
            news.patch.CopyFrom(server.tamper(chunk))
        return news

    def cancel(self) -> None:
        with self._server._lock:
            self._cancelled = True
            self._server._lock.notify_all()
