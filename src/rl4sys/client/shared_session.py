"""The session with the server, shared by the courier and the watcher; either may reopen it."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.control_order import ControlOrder
from rl4sys.client.decision_place import DecisionPlace
from rl4sys.client.delivery import HASH_BYTES, DeliverySession
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import ArraySpec
from rl4sys.policy import CLIENT_HEADS, COMPILERS, MASK, ActionSpec, PolicySpec, action_array
from rl4sys.wire import (
    PROTOCOL,
    ContractViolation,
    Failure,
    FailureReason,
    SegmentFormat,
    choices_of,
    decode_action,
    decode_policy,
    encode_action,
    require_decides,
)
from rl4sys.wire.arrays import encode_array
from rl4sys.wire.calls import CallFailed, Code, Transport
from rl4sys.wire.generated import training_pb2
from rl4sys.wire.message_sizes import MESSAGE_BYTES, MESSAGE_OVERHEAD, MIN_MESSAGE_BYTES, SEGMENT_STEPS

_PER_ARRAY, _PER_ROW, _REWARD_BYTES = 16, 24, 4
_HEADS = [f"HEAD_KIND_{kind.upper()}" for kind in CLIENT_HEADS]


class SharedSession:
    """Joins when there is no session. One thread joins at a time; the other waits and uses the same session."""

    def __init__(
        self,
        transport: Transport,
        settings: ClientSettings,
        request: training_pb2.JoinRequest,
        known: Callable[[], Snapshot | None] = lambda: None,
        on_join: Callable[[OpenSession], None] = lambda opened: None,
    ) -> None:
        """`known` gives the policy that the client has; `on_join` is called with each session that was opened."""
        self._transport = transport
        self._request = request
        self._known = known
        self._on_join = on_join
        self._settings = settings
        self._timeout = settings.call_seconds
        self._joining = threading.Lock()
        self._opened: OpenSession | None = None

    @property
    def opened(self) -> OpenSession | None:
        """The session that was opened and not forgotten, if there is one."""
        return self._opened

    def open(self) -> OpenSession:
        """The session; joins if there is none. Raises `CallFailed`, or `ContractViolation` for an invalid reply."""
        with self._joining:
            if self._opened is None:
                opened = OpenSession(self._transport.join(self._present_request(), self._timeout), self._settings)
                _require_wanted(opened, self._settings)
                self._on_join(opened)
                self._opened = opened
            return self._opened

    def forget(self, session: DeliverySession) -> None:
        """Forget a session that the server no longer knows."""
        with self._joining:
            if self._opened is not None and self._opened.session is session:
                self._opened = None

    def _present_request(self) -> training_pb2.JoinRequest:
        """The request to join, with the policy that the client has."""
        request, known = self._request, self._known()
        if known is not None:
            request.lineage, request.have = known.lineage, known.version
        return request


class OpenSession:
    """A validated reply to Join: the session, and the policy to act with, unless that decides on the server."""

    def __init__(self, reply: training_pb2.JoinReply, settings: ClientSettings | None = None) -> None:
        """`settings`: those of the client, if it may decide on the server."""
        if reply.protocol != PROTOCOL:
            raise CallFailed(
                Code.FAILED_PRECONDITION,
                f"The server speaks protocol {reply.protocol}; this client speaks {PROTOCOL}. Upgrade the older one.",
                Failure(FailureReason.PROTOCOL),
            )
        asks = settings is not None and settings.decide is DecisionPlace.SERVER
        if not asks and not reply.HasField("explore"):
            raise CallFailed(
                Code.UNIMPLEMENTED,
                f"The policy of learner '{reply.learner}' decides only on the server: set decide: server, or choose an "
                f"algorithm whose policy runs in clients, such as PPO or DQN.",
            )
        self.session = DeliverySession(
            reply.session,
            reply.learner,
            min(MESSAGE_BYTES, max(MIN_MESSAGE_BYTES, reply.limits.max_message_bytes)),
            _most_segments(reply.limits),
            reply.accepts_zstd,
            reply.limits.max_pack_segments,
        )
        self._explore = None if asks else decode_policy(reply.explore)
        self.form = SegmentFormat.from_message(reply.schema)
        self.schema_hash = reply.schema_hash
        if settings is not None and self._explore is None:
            self.action = _asked_action(reply, settings)
            schema = replace(self.form.schema, action=action_array(self.action))
            expected = SegmentFormat(schema, choices_of(self.action))
        else:
            self.action = self.spec.action
            expected = SegmentFormat.of(self.spec)
        if self.form != expected or len(self.schema_hash) != HASH_BYTES:
            raise ContractViolation(
                f"The schema of learner '{reply.learner}' is not that of its policy. Compare the versions of client "
                f"and server, and report it."
            )
        self.decision_form = (
            SegmentFormat.from_message(reply.exploit_schema) if reply.HasField("exploit_schema") else self.form
        )
        """The arrays of decisions that the server takes."""
        self.version = reply.version
        self.exploit = decode_policy(reply.exploit) if reply.HasField("exploit") and not asks else None
        for spec in (self._explore, self.exploit):
            if spec is not None:
                require_decides(spec)
        self.can_exploit = self.exploit is not None or (asks and reply.HasField("exploit_schema"))
        self.lineage = reply.lineage
        self.replaced = frozenset(reply.replaced_lineages)
        self.order = ControlOrder.from_message(reply.control) if reply.HasField("control") else None
        self.report_seconds = reply.report_seconds
        self.record_share = share_of(reply.record_share)
        self.accepts_fallback = reply.accepts_fallback
        self.accepts_incumbent = reply.accepts_incumbent
        self.max_steps = min(reply.limits.max_segment_steps or SEGMENT_STEPS, self._steps_of_a_message())
        self.most_rows = min(reply.limits.max_act_rows or 1, self._rows_of_a_message())
        """Rows of one question."""

    @property
    def spec(self) -> PolicySpec:
        """The explore policy of a client that decides by itself."""
        if self._explore is None:
            raise RuntimeError("The server decides for this client, which has no policy of its own.")
        return self._explore

    def _steps_of_a_message(self) -> int:
        """How many steps of a segment fit into one message: few where observations are images."""
        schema = self.form.schema
        seen = sum(map(_row_bytes, schema.observation))
        step = seen + _row_bytes(schema.action) + _REWARD_BYTES + sum(map(_row_bytes, schema.extras))
        arrays = len(schema.observation) + len(schema.extras) + len(schema.carry)
        besides = seen + sum(map(_row_bytes, schema.carry)) + MESSAGE_OVERHEAD + _PER_ARRAY * arrays
        steps = (self.session.max_message_bytes - besides) // step
        if steps < 1:
            raise CallFailed(
                Code.INVALID_ARGUMENT,
                f"One step takes {step + besides} bytes with the observations before and after it; a message holds "
                f"{self.session.max_message_bytes}. Observe less, or in a smaller type such as uint8.",
            )
        return steps

    def _rows_of_a_message(self) -> int:
        """How many rows of a question, or of its answer, fit into one message."""
        schema = self.decision_form.schema
        arrays = (*schema.observation, schema.action, *schema.extras, *schema.carry)
        return max(1, (self.session.max_message_bytes - MESSAGE_OVERHEAD) // (sum(map(_row_bytes, arrays)) + _PER_ROW))

    def fits(self, snapshot: Snapshot) -> bool:
        """Whether the weights of a snapshot belong to this policy."""
        policies = snapshot.interface.policies
        same = policies.explore == self.spec and policies.exploit == self.exploit
        return same and snapshot.schema_hash == self.schema_hash

    def continues(self, snapshot: Snapshot) -> bool:
        """Whether the learner has the history of a snapshot, or an operator replaced that by the learner's.

        Where one side knows no lineages, versions are followed in any order.
        """
        ours = snapshot.lineage
        return not ours or not self.lineage or ours == self.lineage or ours in self.replaced

    def goes_back(self, version: int, snapshot: Snapshot | None) -> bool:
        """Whether a version is not newer than that of a snapshot of the same lineage."""
        if snapshot is None or not self.lineage or snapshot.lineage != self.lineage:
            return False
        return version <= snapshot.version


def share_of(record_share: float) -> float:
    """The share of episodes to record, from a message, in which 0 stands for all."""
    return record_share if 0.0 < record_share < 1.0 else 1.0


def _row_bytes(spec: ArraySpec) -> int:
    return np.dtype(spec.dtype).itemsize * math.prod(spec.shape)


def _require_wanted(opened: OpenSession, settings: ClientSettings) -> None:
    """Refuse a policy for other observations or actions, before it can act."""
    if settings.mode is not ActingMode.EXPLORE and not opened.can_exploit:
        raise CallFailed(
            Code.UNIMPLEMENTED,
            f"The server sent no exploit policy, with which `mode: {settings.mode}` acts. Upgrade the server, or use "
            f"`mode: explore`.",
        )
    if problem := unwanted(opened.form.schema.observation, opened.action, settings):
        raise ContractViolation(
            f"The learner '{opened.session.learner}' replied with another policy: {problem} Compare the versions of "
            f"client and server, and report it."
        )


def unwanted(observation: tuple[ArraySpec, ...], action: ActionSpec, settings: ClientSettings) -> str:
    """What is wrong with a policy for this client; empty if it fits. A mask may always be left out."""
    wanted, seen = ([one for one in group if one.name != MASK] for group in (settings.observation, observation))
    if (wanted and seen != wanted) or settings.action not in (None, action):
        return (
            f"It observes {', '.join(map(str, observation))} and acts with {action}, which is not what this client "
            f"asked for."
        )
    return ""


def _asked_action(reply: training_pb2.JoinReply, settings: ClientSettings) -> ActionSpec:
    """The action of a policy that is not sent."""
    if reply.HasField("action"):
        return decode_action(reply.action)
    if settings.action is None:
        raise CallFailed(
            Code.UNIMPLEMENTED,
            "The server does not say which actions the learner has. Upgrade it, or give `action` in the config.",
        )
    return settings.action


def _most_segments(limits: training_pb2.Limits) -> int:
    """Most segments of one request, the only one outstanding at a time; a limit of 0 is not set."""
    return min(limits.max_push_segments or 1, limits.max_outstanding_segments or limits.max_push_segments or 1)


def join_request(settings: ClientSettings, software: str, epoch: int = 0) -> training_pb2.JoinRequest:
    """The request to join: client, policy, algorithm, spaces, and what this client can run."""
    request = training_pb2.JoinRequest(
        protocol=PROTOCOL,
        client=settings.client_id,
        policy_id=settings.policy_id,
        observation=map(encode_array, settings.observation),
        action=None if settings.action is None else encode_action(settings.action),
        # Without ops the server sends no policy, whatever it is made of, and decides.
        ops=[] if settings.decide is DecisionPlace.SERVER else sorted(COMPILERS),
        heads=[] if settings.decide is DecisionPlace.SERVER else _HEADS,
        software=software,
        epoch=epoch,
        mode=f"ACTING_MODE_{settings.mode.name}",
    )
    if settings.algorithm:
        parameters = json.dumps(settings.parameters) if settings.parameters else ""
        request.algorithm.CopyFrom(training_pb2.Algorithm(name=settings.algorithm, parameters_json=parameters))
    elif settings.experiment:
        request.experiment = settings.experiment
    return request
