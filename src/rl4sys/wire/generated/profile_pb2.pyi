# ruff: noqa
# fmt: off
# mypy: ignore-errors
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProfileOrder(_message.Message):
    __slots__ = ("sequence", "seconds", "seed")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    seconds: float
    seed: int
    def __init__(self, sequence: _Optional[int] = ..., seconds: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class ProfileBlock(_message.Message):
    __slots__ = ("round", "level", "seconds", "decisions", "cpu_seconds", "background_cpu_seconds", "memory_bytes", "waits", "preemptions", "sent_messages", "sent_bytes", "received_messages", "received_bytes", "backlog_segments", "backlog_bytes", "version_age_seconds", "longest_nanoseconds", "times")
    class TimesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    ROUND_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONS_FIELD_NUMBER: _ClassVar[int]
    SENT_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    VERSION_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    round: int
    level: str
    seconds: float
    decisions: int
    cpu_seconds: float
    background_cpu_seconds: float
    memory_bytes: int
    waits: int
    preemptions: int
    sent_messages: int
    sent_bytes: int
    received_messages: int
    received_bytes: int
    backlog_segments: int
    backlog_bytes: int
    version_age_seconds: float
    longest_nanoseconds: int
    times: _containers.ScalarMap[int, int]
    def __init__(self, round: _Optional[int] = ..., level: _Optional[str] = ..., seconds: _Optional[float] = ..., decisions: _Optional[int] = ..., cpu_seconds: _Optional[float] = ..., background_cpu_seconds: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., waits: _Optional[int] = ..., preemptions: _Optional[int] = ..., sent_messages: _Optional[int] = ..., sent_bytes: _Optional[int] = ..., received_messages: _Optional[int] = ..., received_bytes: _Optional[int] = ..., backlog_segments: _Optional[int] = ..., backlog_bytes: _Optional[int] = ..., version_age_seconds: _Optional[float] = ..., longest_nanoseconds: _Optional[int] = ..., times: _Optional[_Mapping[int, int]] = ...) -> None: ...

class ProfileProgress(_message.Message):
    __slots__ = ("sequence", "first_block", "blocks", "is_complete", "problem", "floor_nanoseconds")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FIRST_BLOCK_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    FLOOR_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    first_block: int
    blocks: _containers.RepeatedCompositeFieldContainer[ProfileBlock]
    is_complete: bool
    problem: str
    floor_nanoseconds: int
    def __init__(self, sequence: _Optional[int] = ..., first_block: _Optional[int] = ..., blocks: _Optional[_Iterable[_Union[ProfileBlock, _Mapping]]] = ..., is_complete: bool = ..., problem: _Optional[str] = ..., floor_nanoseconds: _Optional[int] = ...) -> None: ...
