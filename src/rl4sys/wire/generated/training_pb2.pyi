# ruff: noqa
# fmt: off
# mypy: ignore-errors
from rl4sys.wire.generated import arrays_pb2 as _arrays_pb2
from rl4sys.wire.generated import experience_pb2 as _experience_pb2
from rl4sys.wire.generated import policy_pb2 as _policy_pb2
from rl4sys.wire.generated import profile_pb2 as _profile_pb2
from rl4sys.wire.generated import status_pb2 as _status_pb2
from rl4sys.wire.generated import weights_pb2 as _weights_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FailureReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAILURE_REASON_UNSPECIFIED: _ClassVar[FailureReason]
    FAILURE_REASON_UNKNOWN_SESSION: _ClassVar[FailureReason]
    FAILURE_REASON_PROTOCOL: _ClassVar[FailureReason]
    FAILURE_REASON_MISSING_OPS: _ClassVar[FailureReason]
    FAILURE_REASON_OTHER_LEARNER: _ClassVar[FailureReason]
    FAILURE_REASON_LEARNER_FAILED: _ClassVar[FailureReason]
    FAILURE_REASON_INBOX_FULL: _ClassVar[FailureReason]
    FAILURE_REASON_QUOTA: _ClassVar[FailureReason]
    FAILURE_REASON_STORAGE: _ClassVar[FailureReason]
    FAILURE_REASON_DRAINING: _ClassVar[FailureReason]
    FAILURE_REASON_VERSION_GONE: _ClassVar[FailureReason]
    FAILURE_REASON_SCHEMA: _ClassVar[FailureReason]
    FAILURE_REASON_ALGORITHM_FORBIDDEN: _ClassVar[FailureReason]
    FAILURE_REASON_LIMIT: _ClassVar[FailureReason]

class ActingMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTING_MODE_UNSPECIFIED: _ClassVar[ActingMode]
    ACTING_MODE_EXPLORE: _ClassVar[ActingMode]
    ACTING_MODE_EXPLOIT: _ClassVar[ActingMode]
    ACTING_MODE_OBSERVE: _ClassVar[ActingMode]

class ControlMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTROL_MODE_UNSPECIFIED: _ClassVar[ControlMode]
    CONTROL_MODE_FOLLOW: _ClassVar[ControlMode]
    CONTROL_MODE_FROZEN: _ClassVar[ControlMode]
    CONTROL_MODE_OFF: _ClassVar[ControlMode]

class RefusalReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFUSAL_REASON_UNSPECIFIED: _ClassVar[RefusalReason]
    REFUSAL_REASON_SCHEMA: _ClassVar[RefusalReason]
    REFUSAL_REASON_MALFORMED: _ClassVar[RefusalReason]
    REFUSAL_REASON_TOO_LARGE: _ClassVar[RefusalReason]
    REFUSAL_REASON_NOT_FINITE: _ClassVar[RefusalReason]
    REFUSAL_REASON_OUT_OF_RANGE: _ClassVar[RefusalReason]
    REFUSAL_REASON_UNKNOWN_VERSION: _ClassVar[RefusalReason]
    REFUSAL_REASON_REWARD_BOUNDS: _ClassVar[RefusalReason]
FAILURE_REASON_UNSPECIFIED: FailureReason
FAILURE_REASON_UNKNOWN_SESSION: FailureReason
FAILURE_REASON_PROTOCOL: FailureReason
FAILURE_REASON_MISSING_OPS: FailureReason
FAILURE_REASON_OTHER_LEARNER: FailureReason
FAILURE_REASON_LEARNER_FAILED: FailureReason
FAILURE_REASON_INBOX_FULL: FailureReason
FAILURE_REASON_QUOTA: FailureReason
FAILURE_REASON_STORAGE: FailureReason
FAILURE_REASON_DRAINING: FailureReason
FAILURE_REASON_VERSION_GONE: FailureReason
FAILURE_REASON_SCHEMA: FailureReason
FAILURE_REASON_ALGORITHM_FORBIDDEN: FailureReason
FAILURE_REASON_LIMIT: FailureReason
ACTING_MODE_UNSPECIFIED: ActingMode
ACTING_MODE_EXPLORE: ActingMode
ACTING_MODE_EXPLOIT: ActingMode
ACTING_MODE_OBSERVE: ActingMode
CONTROL_MODE_UNSPECIFIED: ControlMode
CONTROL_MODE_FOLLOW: ControlMode
CONTROL_MODE_FROZEN: ControlMode
CONTROL_MODE_OFF: ControlMode
REFUSAL_REASON_UNSPECIFIED: RefusalReason
REFUSAL_REASON_SCHEMA: RefusalReason
REFUSAL_REASON_MALFORMED: RefusalReason
REFUSAL_REASON_TOO_LARGE: RefusalReason
REFUSAL_REASON_NOT_FINITE: RefusalReason
REFUSAL_REASON_OUT_OF_RANGE: RefusalReason
REFUSAL_REASON_UNKNOWN_VERSION: RefusalReason
REFUSAL_REASON_REWARD_BOUNDS: RefusalReason

class Failure(_message.Message):
    __slots__ = ("reason", "retry_after_ms")
    REASON_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    reason: FailureReason
    retry_after_ms: int
    def __init__(self, reason: _Optional[_Union[FailureReason, str]] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("protocol", "client", "policy_id", "algorithm", "experiment", "observation", "action", "ops", "heads", "software", "epoch", "lineage", "have", "mode")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    client: str
    policy_id: str
    algorithm: Algorithm
    experiment: str
    observation: _containers.RepeatedCompositeFieldContainer[_arrays_pb2.ArraySpec]
    action: _policy_pb2.ActionSpec
    ops: _containers.RepeatedScalarFieldContainer[str]
    heads: _containers.RepeatedScalarFieldContainer[_policy_pb2.HeadKind]
    software: str
    epoch: int
    lineage: str
    have: int
    mode: ActingMode
    def __init__(self, protocol: _Optional[int] = ..., client: _Optional[str] = ..., policy_id: _Optional[str] = ..., algorithm: _Optional[_Union[Algorithm, _Mapping]] = ..., experiment: _Optional[str] = ..., observation: _Optional[_Iterable[_Union[_arrays_pb2.ArraySpec, _Mapping]]] = ..., action: _Optional[_Union[_policy_pb2.ActionSpec, _Mapping]] = ..., ops: _Optional[_Iterable[str]] = ..., heads: _Optional[_Iterable[_Union[_policy_pb2.HeadKind, str]]] = ..., software: _Optional[str] = ..., epoch: _Optional[int] = ..., lineage: _Optional[str] = ..., have: _Optional[int] = ..., mode: _Optional[_Union[ActingMode, str]] = ...) -> None: ...

class Algorithm(_message.Message):
    __slots__ = ("name", "parameters_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    parameters_json: str
    def __init__(self, name: _Optional[str] = ..., parameters_json: _Optional[str] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("protocol", "learner", "session", "schema", "schema_hash", "explore", "version", "limits", "lineage", "replaced_lineages", "exploit", "control", "report_seconds", "record_share", "accepts_fallback", "action", "exploit_schema", "accepts_zstd", "accepts_incumbent")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_HASH_FIELD_NUMBER: _ClassVar[int]
    EXPLORE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    REPLACED_LINEAGES_FIELD_NUMBER: _ClassVar[int]
    EXPLOIT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    REPORT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RECORD_SHARE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTS_FALLBACK_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    EXPLOIT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    ACCEPTS_ZSTD_FIELD_NUMBER: _ClassVar[int]
    ACCEPTS_INCUMBENT_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    learner: str
    session: str
    schema: _experience_pb2.SegmentSchema
    schema_hash: bytes
    explore: _policy_pb2.PolicySpec
    version: int
    limits: Limits
    lineage: str
    replaced_lineages: _containers.RepeatedScalarFieldContainer[str]
    exploit: _policy_pb2.PolicySpec
    control: Control
    report_seconds: float
    record_share: float
    accepts_fallback: bool
    action: _policy_pb2.ActionSpec
    exploit_schema: _experience_pb2.SegmentSchema
    accepts_zstd: bool
    accepts_incumbent: bool
    def __init__(self, protocol: _Optional[int] = ..., learner: _Optional[str] = ..., session: _Optional[str] = ..., schema: _Optional[_Union[_experience_pb2.SegmentSchema, _Mapping]] = ..., schema_hash: _Optional[bytes] = ..., explore: _Optional[_Union[_policy_pb2.PolicySpec, _Mapping]] = ..., version: _Optional[int] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., lineage: _Optional[str] = ..., replaced_lineages: _Optional[_Iterable[str]] = ..., exploit: _Optional[_Union[_policy_pb2.PolicySpec, _Mapping]] = ..., control: _Optional[_Union[Control, _Mapping]] = ..., report_seconds: _Optional[float] = ..., record_share: _Optional[float] = ..., accepts_fallback: bool = ..., action: _Optional[_Union[_policy_pb2.ActionSpec, _Mapping]] = ..., exploit_schema: _Optional[_Union[_experience_pb2.SegmentSchema, _Mapping]] = ..., accepts_zstd: bool = ..., accepts_incumbent: bool = ...) -> None: ...

class Control(_message.Message):
    __slots__ = ("mode", "sequence", "reason", "ordered_by")
    MODE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ORDERED_BY_FIELD_NUMBER: _ClassVar[int]
    mode: ControlMode
    sequence: int
    reason: str
    ordered_by: str
    def __init__(self, mode: _Optional[_Union[ControlMode, str]] = ..., sequence: _Optional[int] = ..., reason: _Optional[str] = ..., ordered_by: _Optional[str] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_message_bytes", "max_segment_steps", "max_push_segments", "max_outstanding_segments", "max_act_rows", "max_pack_segments")
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_SEGMENT_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_PUSH_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTSTANDING_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_ACT_ROWS_FIELD_NUMBER: _ClassVar[int]
    MAX_PACK_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    max_message_bytes: int
    max_segment_steps: int
    max_push_segments: int
    max_outstanding_segments: int
    max_act_rows: int
    max_pack_segments: int
    def __init__(self, max_message_bytes: _Optional[int] = ..., max_segment_steps: _Optional[int] = ..., max_push_segments: _Optional[int] = ..., max_outstanding_segments: _Optional[int] = ..., max_act_rows: _Optional[int] = ..., max_pack_segments: _Optional[int] = ...) -> None: ...

class PushRequest(_message.Message):
    __slots__ = ("session", "epoch", "schema_hash", "segments")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_HASH_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    session: str
    epoch: int
    schema_hash: bytes
    segments: _containers.RepeatedCompositeFieldContainer[PushedSegment]
    def __init__(self, session: _Optional[str] = ..., epoch: _Optional[int] = ..., schema_hash: _Optional[bytes] = ..., segments: _Optional[_Iterable[_Union[PushedSegment, _Mapping]]] = ...) -> None: ...

class PushedSegment(_message.Message):
    __slots__ = ("sequence", "segment", "uncompressed_bytes", "count")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    UNCOMPRESSED_BYTES_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    segment: bytes
    uncompressed_bytes: int
    count: int
    def __init__(self, sequence: _Optional[int] = ..., segment: _Optional[bytes] = ..., uncompressed_bytes: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class SequenceRange(_message.Message):
    __slots__ = ("first", "last")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("sequence", "reason", "message", "count")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    reason: RefusalReason
    message: str
    count: int
    def __init__(self, sequence: _Optional[int] = ..., reason: _Optional[_Union[RefusalReason, str]] = ..., message: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class PushReply(_message.Message):
    __slots__ = ("acknowledged", "refused", "repeated_segments", "retry_after_ms", "version", "record_share")
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    REPEATED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RECORD_SHARE_FIELD_NUMBER: _ClassVar[int]
    acknowledged: _containers.RepeatedCompositeFieldContainer[SequenceRange]
    refused: _containers.RepeatedCompositeFieldContainer[Refusal]
    repeated_segments: int
    retry_after_ms: int
    version: int
    record_share: float
    def __init__(self, acknowledged: _Optional[_Iterable[_Union[SequenceRange, _Mapping]]] = ..., refused: _Optional[_Iterable[_Union[Refusal, _Mapping]]] = ..., repeated_segments: _Optional[int] = ..., retry_after_ms: _Optional[int] = ..., version: _Optional[int] = ..., record_share: _Optional[float] = ...) -> None: ...

class PullRequest(_message.Message):
    __slots__ = ("session", "have", "want")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    WANT_FIELD_NUMBER: _ClassVar[int]
    session: str
    have: int
    want: int
    def __init__(self, session: _Optional[str] = ..., have: _Optional[int] = ..., want: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("session", "have", "max_patch_bytes", "control")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    MAX_PATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    session: str
    have: int
    max_patch_bytes: int
    control: bool
    def __init__(self, session: _Optional[str] = ..., have: _Optional[int] = ..., max_patch_bytes: _Optional[int] = ..., control: bool = ...) -> None: ...

class NewVersion(_message.Message):
    __slots__ = ("version", "patch", "control", "record_share")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    RECORD_SHARE_FIELD_NUMBER: _ClassVar[int]
    version: int
    patch: _weights_pb2.PatchChunk
    control: Control
    record_share: float
    def __init__(self, version: _Optional[int] = ..., patch: _Optional[_Union[_weights_pb2.PatchChunk, _Mapping]] = ..., control: _Optional[_Union[Control, _Mapping]] = ..., record_share: _Optional[float] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("session", "epoch", "report", "profile")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    session: str
    epoch: int
    report: _status_pb2.ClientReport
    profile: _profile_pb2.ProfileProgress
    def __init__(self, session: _Optional[str] = ..., epoch: _Optional[int] = ..., report: _Optional[_Union[_status_pb2.ClientReport, _Mapping]] = ..., profile: _Optional[_Union[_profile_pb2.ProfileProgress, _Mapping]] = ...) -> None: ...

class ReportReply(_message.Message):
    __slots__ = ("control", "record_share", "warning", "version", "profile")
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    RECORD_SHARE_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    control: Control
    record_share: float
    warning: str
    version: int
    profile: _profile_pb2.ProfileOrder
    def __init__(self, control: _Optional[_Union[Control, _Mapping]] = ..., record_share: _Optional[float] = ..., warning: _Optional[str] = ..., version: _Optional[int] = ..., profile: _Optional[_Union[_profile_pb2.ProfileOrder, _Mapping]] = ...) -> None: ...

class ActRequest(_message.Message):
    __slots__ = ("session", "schema_hash", "rows", "agent", "lane", "step", "observation", "carry", "lanes", "steps")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_HASH_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    CARRY_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    session: str
    schema_hash: bytes
    rows: int
    agent: str
    lane: int
    step: int
    observation: _containers.RepeatedScalarFieldContainer[bytes]
    carry: _containers.RepeatedScalarFieldContainer[bytes]
    lanes: _containers.RepeatedScalarFieldContainer[int]
    steps: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session: _Optional[str] = ..., schema_hash: _Optional[bytes] = ..., rows: _Optional[int] = ..., agent: _Optional[str] = ..., lane: _Optional[int] = ..., step: _Optional[int] = ..., observation: _Optional[_Iterable[bytes]] = ..., carry: _Optional[_Iterable[bytes]] = ..., lanes: _Optional[_Iterable[int]] = ..., steps: _Optional[_Iterable[int]] = ...) -> None: ...

class ActReply(_message.Message):
    __slots__ = ("version", "action", "extras", "carry")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    EXTRAS_FIELD_NUMBER: _ClassVar[int]
    CARRY_FIELD_NUMBER: _ClassVar[int]
    version: int
    action: bytes
    extras: _containers.RepeatedScalarFieldContainer[bytes]
    carry: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, version: _Optional[int] = ..., action: _Optional[bytes] = ..., extras: _Optional[_Iterable[bytes]] = ..., carry: _Optional[_Iterable[bytes]] = ...) -> None: ...
