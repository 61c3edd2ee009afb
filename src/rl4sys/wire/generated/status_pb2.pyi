# ruff: noqa
# fmt: off
# mypy: ignore-errors
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ServerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SERVER_STATE_UNSPECIFIED: _ClassVar[ServerState]
    SERVER_STATE_STARTING: _ClassVar[ServerState]
    SERVER_STATE_SERVING: _ClassVar[ServerState]
    SERVER_STATE_STORAGE_FAILED: _ClassVar[ServerState]
    SERVER_STATE_DRAINING: _ClassVar[ServerState]

class LearnerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEARNER_STATE_UNSPECIFIED: _ClassVar[LearnerState]
    LEARNER_STATE_STARTING: _ClassVar[LearnerState]
    LEARNER_STATE_WAITING: _ClassVar[LearnerState]
    LEARNER_STATE_LEARNING: _ClassVar[LearnerState]
    LEARNER_STATE_FAILED: _ClassVar[LearnerState]
    LEARNER_STATE_STOPPED: _ClassVar[LearnerState]
    LEARNER_STATE_PAUSED: _ClassVar[LearnerState]
    LEARNER_STATE_SLEEPING: _ClassVar[LearnerState]
    LEARNER_STATE_HELD: _ClassVar[LearnerState]
SERVER_STATE_UNSPECIFIED: ServerState
SERVER_STATE_STARTING: ServerState
SERVER_STATE_SERVING: ServerState
SERVER_STATE_STORAGE_FAILED: ServerState
SERVER_STATE_DRAINING: ServerState
LEARNER_STATE_UNSPECIFIED: LearnerState
LEARNER_STATE_STARTING: LearnerState
LEARNER_STATE_WAITING: LearnerState
LEARNER_STATE_LEARNING: LearnerState
LEARNER_STATE_FAILED: LearnerState
LEARNER_STATE_STOPPED: LearnerState
LEARNER_STATE_PAUSED: LearnerState
LEARNER_STATE_SLEEPING: LearnerState
LEARNER_STATE_HELD: LearnerState

class StatusRequest(_message.Message):
    __slots__ = ("learner",)
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    learner: str
    def __init__(self, learner: _Optional[str] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("server", "learners", "clients")
    SERVER_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    server: ServerStatus
    learners: _containers.RepeatedCompositeFieldContainer[LearnerStatus]
    clients: _containers.RepeatedCompositeFieldContainer[ClientStatus]
    def __init__(self, server: _Optional[_Union[ServerStatus, _Mapping]] = ..., learners: _Optional[_Iterable[_Union[LearnerStatus, _Mapping]]] = ..., clients: _Optional[_Iterable[_Union[ClientStatus, _Mapping]]] = ...) -> None: ...

class ServerStatus(_message.Message):
    __slots__ = ("software", "protocol", "state", "problem", "uptime_seconds", "durability", "cpu", "memory_bytes", "data_bytes", "disk_free_bytes", "connected_clients", "failed_calls", "cpu_seconds", "calls", "unlisted_clients", "warnings", "alerts")
    class FailedCallsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_CLIENTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_CALLS_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    UNLISTED_CLIENTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    ALERTS_FIELD_NUMBER: _ClassVar[int]
    software: str
    protocol: int
    state: ServerState
    problem: str
    uptime_seconds: float
    durability: str
    cpu: float
    memory_bytes: int
    data_bytes: int
    disk_free_bytes: int
    connected_clients: int
    failed_calls: _containers.ScalarMap[str, int]
    cpu_seconds: float
    calls: _containers.RepeatedCompositeFieldContainer[CallCount]
    unlisted_clients: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    alerts: _containers.RepeatedCompositeFieldContainer[FiringAlert]
    def __init__(self, software: _Optional[str] = ..., protocol: _Optional[int] = ..., state: _Optional[_Union[ServerState, str]] = ..., problem: _Optional[str] = ..., uptime_seconds: _Optional[float] = ..., durability: _Optional[str] = ..., cpu: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., data_bytes: _Optional[int] = ..., disk_free_bytes: _Optional[int] = ..., connected_clients: _Optional[int] = ..., failed_calls: _Optional[_Mapping[str, int]] = ..., cpu_seconds: _Optional[float] = ..., calls: _Optional[_Iterable[_Union[CallCount, _Mapping]]] = ..., unlisted_clients: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ..., alerts: _Optional[_Iterable[_Union[FiringAlert, _Mapping]]] = ...) -> None: ...

class FiringAlert(_message.Message):
    __slots__ = ("name", "learner", "text", "seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    learner: str
    text: str
    seconds: float
    def __init__(self, name: _Optional[str] = ..., learner: _Optional[str] = ..., text: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class CallCount(_message.Message):
    __slots__ = ("method", "code", "count")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    method: str
    code: str
    count: int
    def __init__(self, method: _Optional[str] = ..., code: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class OtherLineage(_message.Message):
    __slots__ = ("lineage", "version", "clients")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    lineage: str
    version: int
    clients: int
    def __init__(self, lineage: _Optional[str] = ..., version: _Optional[int] = ..., clients: _Optional[int] = ...) -> None: ...

class VersionOutcome(_message.Message):
    __slots__ = ("version", "episodes", "mean_return")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    MEAN_RETURN_FIELD_NUMBER: _ClassVar[int]
    version: int
    episodes: int
    mean_return: float
    def __init__(self, version: _Optional[int] = ..., episodes: _Optional[int] = ..., mean_return: _Optional[float] = ...) -> None: ...

class CheckpointStatus(_message.Message):
    __slots__ = ("position", "written", "bytes")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    position: int
    written: float
    bytes: int
    def __init__(self, position: _Optional[int] = ..., written: _Optional[float] = ..., bytes: _Optional[int] = ...) -> None: ...

class LearnerStatus(_message.Message):
    __slots__ = ("learner", "algorithm", "state", "problem", "restarts", "version", "clients", "queued_segments", "queued_bytes", "stored_segments", "stored_steps", "learned_steps", "unused_steps", "episodes", "updates", "segments_per_second", "mean_return", "cpu", "memory_bytes", "log_bytes", "checkpoint_age_seconds", "metrics", "stored_bytes", "cpu_seconds", "device", "lineage", "refolded_version", "frozen", "record_share", "weights", "other_lineages", "control", "control_reason", "obeying_clients", "notice", "control_sequence", "outcomes", "checkpoints", "log_end")
    class UnusedStepsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STORED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    STORED_STEPS_FIELD_NUMBER: _ClassVar[int]
    LEARNED_STEPS_FIELD_NUMBER: _ClassVar[int]
    UNUSED_STEPS_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MEAN_RETURN_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    REFOLDED_VERSION_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    RECORD_SHARE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    OTHER_LINEAGES_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    CONTROL_REASON_FIELD_NUMBER: _ClassVar[int]
    OBEYING_CLIENTS_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    CONTROL_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    learner: str
    algorithm: str
    state: LearnerState
    problem: str
    restarts: int
    version: int
    clients: int
    queued_segments: int
    queued_bytes: int
    stored_segments: int
    stored_steps: int
    learned_steps: int
    unused_steps: _containers.ScalarMap[str, int]
    episodes: int
    updates: int
    segments_per_second: float
    mean_return: float
    cpu: float
    memory_bytes: int
    log_bytes: int
    checkpoint_age_seconds: float
    metrics: _containers.ScalarMap[str, float]
    stored_bytes: int
    cpu_seconds: float
    device: str
    lineage: str
    refolded_version: int
    frozen: bool
    record_share: float
    weights: int
    other_lineages: _containers.RepeatedCompositeFieldContainer[OtherLineage]
    control: str
    control_reason: str
    obeying_clients: int
    notice: str
    control_sequence: int
    outcomes: _containers.RepeatedCompositeFieldContainer[VersionOutcome]
    checkpoints: _containers.RepeatedCompositeFieldContainer[CheckpointStatus]
    log_end: int
    def __init__(self, learner: _Optional[str] = ..., algorithm: _Optional[str] = ..., state: _Optional[_Union[LearnerState, str]] = ..., problem: _Optional[str] = ..., restarts: _Optional[int] = ..., version: _Optional[int] = ..., clients: _Optional[int] = ..., queued_segments: _Optional[int] = ..., queued_bytes: _Optional[int] = ..., stored_segments: _Optional[int] = ..., stored_steps: _Optional[int] = ..., learned_steps: _Optional[int] = ..., unused_steps: _Optional[_Mapping[str, int]] = ..., episodes: _Optional[int] = ..., updates: _Optional[int] = ..., segments_per_second: _Optional[float] = ..., mean_return: _Optional[float] = ..., cpu: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., log_bytes: _Optional[int] = ..., checkpoint_age_seconds: _Optional[float] = ..., metrics: _Optional[_Mapping[str, float]] = ..., stored_bytes: _Optional[int] = ..., cpu_seconds: _Optional[float] = ..., device: _Optional[str] = ..., lineage: _Optional[str] = ..., refolded_version: _Optional[int] = ..., frozen: bool = ..., record_share: _Optional[float] = ..., weights: _Optional[int] = ..., other_lineages: _Optional[_Iterable[_Union[OtherLineage, _Mapping]]] = ..., control: _Optional[str] = ..., control_reason: _Optional[str] = ..., obeying_clients: _Optional[int] = ..., notice: _Optional[str] = ..., control_sequence: _Optional[int] = ..., outcomes: _Optional[_Iterable[_Union[VersionOutcome, _Mapping]]] = ..., checkpoints: _Optional[_Iterable[_Union[CheckpointStatus, _Mapping]]] = ..., log_end: _Optional[int] = ...) -> None: ...

class ClientReport(_message.Message):
    __slots__ = ("version", "lineage", "mode", "control_sequence", "off", "decisions", "fallback_decisions", "bad_inputs", "thinned_episodes", "open_episodes", "backlog_segments", "backlog_bytes", "drops", "late_rewards", "decision_time", "last_error", "uptime_seconds", "unanswered_decisions")
    class DropsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CONTROL_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OFF_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_DECISIONS_FIELD_NUMBER: _ClassVar[int]
    BAD_INPUTS_FIELD_NUMBER: _ClassVar[int]
    THINNED_EPISODES_FIELD_NUMBER: _ClassVar[int]
    OPEN_EPISODES_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    DROPS_FIELD_NUMBER: _ClassVar[int]
    LATE_REWARDS_FIELD_NUMBER: _ClassVar[int]
    DECISION_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_DECISIONS_FIELD_NUMBER: _ClassVar[int]
    version: int
    lineage: str
    mode: str
    control_sequence: int
    off: str
    decisions: int
    fallback_decisions: int
    bad_inputs: int
    thinned_episodes: int
    open_episodes: int
    backlog_segments: int
    backlog_bytes: int
    drops: _containers.ScalarMap[str, int]
    late_rewards: int
    decision_time: _containers.RepeatedScalarFieldContainer[int]
    last_error: str
    uptime_seconds: float
    unanswered_decisions: int
    def __init__(self, version: _Optional[int] = ..., lineage: _Optional[str] = ..., mode: _Optional[str] = ..., control_sequence: _Optional[int] = ..., off: _Optional[str] = ..., decisions: _Optional[int] = ..., fallback_decisions: _Optional[int] = ..., bad_inputs: _Optional[int] = ..., thinned_episodes: _Optional[int] = ..., open_episodes: _Optional[int] = ..., backlog_segments: _Optional[int] = ..., backlog_bytes: _Optional[int] = ..., drops: _Optional[_Mapping[str, int]] = ..., late_rewards: _Optional[int] = ..., decision_time: _Optional[_Iterable[int]] = ..., last_error: _Optional[str] = ..., uptime_seconds: _Optional[float] = ..., unanswered_decisions: _Optional[int] = ...) -> None: ...

class ClientStatus(_message.Message):
    __slots__ = ("client", "learner", "software", "peer", "silent_seconds", "version", "stored_segments", "stored_steps", "repeated_segments", "refused_segments", "delayed_pushes", "received_bytes", "segments_per_second", "stored_bytes", "connected", "report", "report_age_seconds", "warning", "server_decisions", "disconnected_seconds")
    class RefusedSegmentsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    SILENT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STORED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    STORED_STEPS_FIELD_NUMBER: _ClassVar[int]
    REPEATED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    DELAYED_PUSHES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    REPORT_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    SERVER_DECISIONS_FIELD_NUMBER: _ClassVar[int]
    DISCONNECTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    client: str
    learner: str
    software: str
    peer: str
    silent_seconds: float
    version: int
    stored_segments: int
    stored_steps: int
    repeated_segments: int
    refused_segments: _containers.ScalarMap[str, int]
    delayed_pushes: int
    received_bytes: int
    segments_per_second: float
    stored_bytes: int
    connected: bool
    report: ClientReport
    report_age_seconds: float
    warning: str
    server_decisions: int
    disconnected_seconds: float
    def __init__(self, client: _Optional[str] = ..., learner: _Optional[str] = ..., software: _Optional[str] = ..., peer: _Optional[str] = ..., silent_seconds: _Optional[float] = ..., version: _Optional[int] = ..., stored_segments: _Optional[int] = ..., stored_steps: _Optional[int] = ..., repeated_segments: _Optional[int] = ..., refused_segments: _Optional[_Mapping[str, int]] = ..., delayed_pushes: _Optional[int] = ..., received_bytes: _Optional[int] = ..., segments_per_second: _Optional[float] = ..., stored_bytes: _Optional[int] = ..., connected: bool = ..., report: _Optional[_Union[ClientReport, _Mapping]] = ..., report_age_seconds: _Optional[float] = ..., warning: _Optional[str] = ..., server_decisions: _Optional[int] = ..., disconnected_seconds: _Optional[float] = ...) -> None: ...
