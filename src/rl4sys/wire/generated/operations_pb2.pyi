# ruff: noqa
# fmt: off
# mypy: ignore-errors
from rl4sys.wire.generated import profile_pb2 as _profile_pb2
from rl4sys.wire.generated import training_pb2 as _training_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InstalledKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INSTALLED_KIND_UNSPECIFIED: _ClassVar[InstalledKind]
    INSTALLED_KIND_POLICY: _ClassVar[InstalledKind]
    INSTALLED_KIND_STATE: _ClassVar[InstalledKind]
    INSTALLED_KIND_EXPERIENCE: _ClassVar[InstalledKind]
INSTALLED_KIND_UNSPECIFIED: InstalledKind
INSTALLED_KIND_POLICY: InstalledKind
INSTALLED_KIND_STATE: InstalledKind
INSTALLED_KIND_EXPERIENCE: InstalledKind

class ControlRequest(_message.Message):
    __slots__ = ("learner", "mode", "reason", "operator_name")
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    learner: str
    mode: _training_pb2.ControlMode
    reason: str
    operator_name: str
    def __init__(self, learner: _Optional[str] = ..., mode: _Optional[_Union[_training_pb2.ControlMode, str]] = ..., reason: _Optional[str] = ..., operator_name: _Optional[str] = ...) -> None: ...

class ControlReply(_message.Message):
    __slots__ = ("control", "watching_clients")
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    WATCHING_CLIENTS_FIELD_NUMBER: _ClassVar[int]
    control: _training_pb2.Control
    watching_clients: int
    def __init__(self, control: _Optional[_Union[_training_pb2.Control, _Mapping]] = ..., watching_clients: _Optional[int] = ...) -> None: ...

class ManageRequest(_message.Message):
    __slots__ = ("learner", "reason", "operator_name", "pause", "resume", "restart", "reset", "delete", "fork", "set", "freeze", "unfreeze", "accept")
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    FORK_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    FREEZE_FIELD_NUMBER: _ClassVar[int]
    UNFREEZE_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    learner: str
    reason: str
    operator_name: str
    pause: Pause
    resume: Resume
    restart: Restart
    reset: Reset
    delete: Delete
    fork: Fork
    set: Set
    freeze: Freeze
    unfreeze: Unfreeze
    accept: Accept
    def __init__(self, learner: _Optional[str] = ..., reason: _Optional[str] = ..., operator_name: _Optional[str] = ..., pause: _Optional[_Union[Pause, _Mapping]] = ..., resume: _Optional[_Union[Resume, _Mapping]] = ..., restart: _Optional[_Union[Restart, _Mapping]] = ..., reset: _Optional[_Union[Reset, _Mapping]] = ..., delete: _Optional[_Union[Delete, _Mapping]] = ..., fork: _Optional[_Union[Fork, _Mapping]] = ..., set: _Optional[_Union[Set, _Mapping]] = ..., freeze: _Optional[_Union[Freeze, _Mapping]] = ..., unfreeze: _Optional[_Union[Unfreeze, _Mapping]] = ..., accept: _Optional[_Union[Accept, _Mapping]] = ...) -> None: ...

class Pause(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Resume(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Restart(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Reset(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Delete(_message.Message):
    __slots__ = ("purge",)
    PURGE_FIELD_NUMBER: _ClassVar[int]
    purge: bool
    def __init__(self, purge: bool = ...) -> None: ...

class Fork(_message.Message):
    __slots__ = ("name", "changes", "refold")
    class ChangesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REFOLD_FIELD_NUMBER: _ClassVar[int]
    name: str
    changes: _containers.ScalarMap[str, str]
    refold: bool
    def __init__(self, name: _Optional[str] = ..., changes: _Optional[_Mapping[str, str]] = ..., refold: bool = ...) -> None: ...

class Set(_message.Message):
    __slots__ = ("changes",)
    class ChangesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.ScalarMap[str, str]
    def __init__(self, changes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Freeze(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Unfreeze(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Accept(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ManageReply(_message.Message):
    __slots__ = ("message", "version", "lineage")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    version: int
    lineage: str
    def __init__(self, message: _Optional[str] = ..., version: _Optional[int] = ..., lineage: _Optional[str] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("learner", "operator_name")
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    learner: str
    operator_name: str
    def __init__(self, learner: _Optional[str] = ..., operator_name: _Optional[str] = ...) -> None: ...

class FileChunk(_message.Message):
    __slots__ = ("data", "sha256")
    DATA_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    sha256: bytes
    def __init__(self, data: _Optional[bytes] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class RecordedExperience(_message.Message):
    __slots__ = ("segments",)
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[RecordedSegment]
    def __init__(self, segments: _Optional[_Iterable[_Union[RecordedSegment, _Mapping]]] = ...) -> None: ...

class RecordedSegment(_message.Message):
    __slots__ = ("origin", "epoch", "sequence", "segment")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    origin: str
    epoch: int
    sequence: int
    segment: bytes
    def __init__(self, origin: _Optional[str] = ..., epoch: _Optional[int] = ..., sequence: _Optional[int] = ..., segment: _Optional[bytes] = ...) -> None: ...

class InstallRequest(_message.Message):
    __slots__ = ("learner", "reason", "operator_name", "kind", "source", "sha256", "data")
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    learner: str
    reason: str
    operator_name: str
    kind: InstalledKind
    source: str
    sha256: bytes
    data: bytes
    def __init__(self, learner: _Optional[str] = ..., reason: _Optional[str] = ..., operator_name: _Optional[str] = ..., kind: _Optional[_Union[InstalledKind, str]] = ..., source: _Optional[str] = ..., sha256: _Optional[bytes] = ..., data: _Optional[bytes] = ...) -> None: ...

class ProfileRequest(_message.Message):
    __slots__ = ("client", "learner", "operator_name", "begin", "read", "end")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    client: str
    learner: str
    operator_name: str
    begin: _profile_pb2.ProfileOrder
    read: ReadProfile
    end: EndProfile
    def __init__(self, client: _Optional[str] = ..., learner: _Optional[str] = ..., operator_name: _Optional[str] = ..., begin: _Optional[_Union[_profile_pb2.ProfileOrder, _Mapping]] = ..., read: _Optional[_Union[ReadProfile, _Mapping]] = ..., end: _Optional[_Union[EndProfile, _Mapping]] = ...) -> None: ...

class ReadProfile(_message.Message):
    __slots__ = ("sequence", "have_blocks")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HAVE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    have_blocks: int
    def __init__(self, sequence: _Optional[int] = ..., have_blocks: _Optional[int] = ...) -> None: ...

class EndProfile(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class ProfileReply(_message.Message):
    __slots__ = ("has_begun", "progress", "report_seconds", "software")
    HAS_BEGUN_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REPORT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    has_begun: bool
    progress: _profile_pb2.ProfileProgress
    report_seconds: float
    software: str
    def __init__(self, has_begun: bool = ..., progress: _Optional[_Union[_profile_pb2.ProfileProgress, _Mapping]] = ..., report_seconds: _Optional[float] = ..., software: _Optional[str] = ...) -> None: ...

class AuditRequest(_message.Message):
    __slots__ = ("learner", "most")
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    learner: str
    most: int
    def __init__(self, learner: _Optional[str] = ..., most: _Optional[int] = ...) -> None: ...

class AuditReply(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("time", "who", "operator_name", "peer", "role", "learner", "command", "arguments_json", "reason", "result", "message")
    TIME_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    LEARNER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    time: float
    who: str
    operator_name: str
    peer: str
    role: str
    learner: str
    command: str
    arguments_json: str
    reason: str
    result: str
    message: str
    def __init__(self, time: _Optional[float] = ..., who: _Optional[str] = ..., operator_name: _Optional[str] = ..., peer: _Optional[str] = ..., role: _Optional[str] = ..., learner: _Optional[str] = ..., command: _Optional[str] = ..., arguments_json: _Optional[str] = ..., reason: _Optional[str] = ..., result: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
