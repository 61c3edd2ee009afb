"""The policy of a learner that decides on the server: asks with Act, and makes snapshots to record under."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.answer_wait import AnswerWait
from rl4sys.client.lane import Lane
from rl4sys.client.observation_reader import BadObservation
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.client.retries import Remedy, asked_pause, remedy
from rl4sys.client.segment_buffer import SegmentBuffer
from rl4sys.client.shared_session import OpenSession
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Array, Arrays
from rl4sys.policy import ActionSpec, Decision
from rl4sys.wire import ContractViolation, Question, SegmentFormat, decode_decision, encode_question
from rl4sys.wire.calls import CallFailed, Code, Transport

_NAME = "decisions"
_NO_WEIGHTS = np.zeros(0, np.float32)
_KEPT_VERSIONS = 8
"""Snapshots that are kept: threads may get answers of two versions in turn while one replaces the other."""

MakeServerInterface = Callable[[SegmentFormat, ActionSpec], PolicyInterface]
"""Makes the interface of a policy that decides on the server."""


class NoAnswer(Exception):
    """The server did not decide in time, or was not asked because it had not answered just before."""


class AskedRow(NamedTuple):
    """One decision to ask for: the present row of a buffer, and the policy's memory before it."""

    lane: Lane
    buffer: SegmentBuffer
    carry: Arrays


class ServerDecision(NamedTuple):
    """Decisions for the asked rows, and the version that took them."""

    snapshot: Snapshot
    decision: Decision


class _Joined:
    """A session to ask in, with the snapshots of the versions that answered."""

    def __init__(self, opened: OpenSession, interface: PolicyInterface) -> None:
        self.opened, self.interface = opened, interface
        self._snapshots: dict[int, Snapshot] = {}

    def snapshot(self, version: int) -> Snapshot:
        """The snapshot of a version: the same object each time, so that it does not cut segments."""
        found = self._snapshots.get(version)
        if found is None:
            opened = self.opened
            # Without a lineage: a client that holds no weights follows whatever the server has.
            made = Snapshot(
                self.interface, opened.schema_hash, opened.session.learner, version, _NO_WEIGHTS, opened.max_steps
            )
            found = self._snapshots.setdefault(version, made)
            for old in sorted(self._snapshots)[:-_KEPT_VERSIONS]:
                self._snapshots.pop(old, None)
        return found


class ServerPolicy:
    """Decides by asking. Thread-safe: no lock is held during a call."""

    def __init__(
        self,
        transport: Transport,
        interface: MakeServerInterface,
        wait: AnswerWait,
        status: AgentStatus,
        timeout: float,
        on_version: Callable[[Snapshot], None],
        on_lost_session: Callable[[OpenSession], None],
    ) -> None:
        """`timeout`: most seconds of one question. `on_version` is called with the snapshot of each other version,
        `on_lost_session` with a session that the server does not know."""
        self._transport = transport
        self._interface = interface
        self._wait = wait
        self._status = status
        self.timeout = timeout
        self._on_version, self._on_lost_session = on_version, on_lost_session
        self._joined: _Joined | None = None
        self._newest: Snapshot | None = None

    def join(self, opened: OpenSession) -> Snapshot:
        """Ask in this session from now on; returns the snapshot of its version."""
        joined = self._joined
        if joined is None or joined.opened is not opened:
            interface = None if joined is None else joined.interface
            if interface is None or interface.form != opened.decision_form or interface.action != opened.action:
                interface = self._interface(opened.decision_form, opened.action)
            joined = self._joined = _Joined(opened, interface)
            self._wait.answered()
        self._newest = joined.snapshot(opened.version)
        return self._newest

    def announced(self, opened: OpenSession, version: int) -> Snapshot | None:
        """The snapshot of a version that the server announced; None if it is not the session to ask in."""
        joined = self._joined
        return joined.snapshot(version) if joined is not None and joined.opened is opened else None

    def most_rows(self) -> int:
        """How many rows one question may have."""
        joined = self._joined
        return 1 if joined is None else joined.opened.most_rows

    def decide(self, rows: Sequence[AskedRow], timeout: float | None = None) -> ServerDecision:
        """Decide for rows that have one interface. Raises `NoAnswer`, or `BadObservation` if the policy cannot."""
        joined = self._joined
        if joined is None or joined.interface is not rows[0].buffer.snapshot.interface:
            raise NoAnswer("There is no session to ask in.")
        if not self._wait.may_ask():
            raise NoAnswer("The server did not answer just before.")
        form, opened = joined.interface.form, joined.opened
        message = encode_question(form, _question(rows), opened.session.id, opened.schema_hash)
        try:
            reply = self._transport.act(message, self.timeout if timeout is None else timeout)
            version, decision = decode_decision(form, reply, len(rows))
        except CallFailed as error:
            if error.code is Code.INVALID_ARGUMENT:
                self._wait.answered()
                raise BadObservation(f"The policy cannot decide on this observation: {error}") from error
            self._failed(joined, error)
            raise NoAnswer(str(error)) from error
        except ContractViolation as error:
            self._wait.failed(str(error))
            raise NoAnswer(str(error)) from error
        self._wait.answered()
        self._status.succeeded(_NAME)
        snapshot = joined.snapshot(version)
        if snapshot is not self._newest:
            self._newest = snapshot
            self._on_version(snapshot)
        return ServerDecision(snapshot, decision)

    def _failed(self, joined: _Joined, error: CallFailed) -> None:
        self._status.last_error = str(error)
        self._wait.failed(str(error), asked_pause(error.failure.retry_after_ms))
        if remedy(error) is Remedy.JOIN:
            self._on_lost_session(joined.opened)


def _question(rows: Sequence[AskedRow]) -> Question:
    """The question about the present rows of several buffers."""
    streams = [row.lane.stream for row in rows]
    lanes, steps = tuple(stream.lane for stream in streams), tuple(row.lane.step for row in rows)
    is_consecutive = lanes == tuple(range(lanes[0], lanes[0] + len(rows)))
    columns = [(row.buffer.observation, row.buffer.count) for row in rows]
    observation = {name: _stacked([arrays[name][row] for arrays, row in columns]) for name in columns[0][0]}
    carry = {name: np.concatenate([row.carry[name] for row in rows]) for name in rows[0].carry}
    return Question(
        agent=streams[0].agent,
        lane=lanes[0],
        step=steps[0],
        observation=observation,
        carry=carry or None,
        rows=len(rows),
        lanes=() if is_consecutive else lanes,
        steps=() if len(set(steps)) == 1 else steps,
    )


def _stacked(rows: list[Array]) -> Array:
    return np.stack(rows) if len(rows) > 1 else np.asarray(rows[0])[None]
