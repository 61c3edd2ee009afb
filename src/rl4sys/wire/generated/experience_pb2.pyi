# ruff: noqa
# fmt: off
# mypy: ignore-errors
from rl4sys.wire.generated import arrays_pb2 as _arrays_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Ending(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENDING_UNSPECIFIED: _ClassVar[Ending]
    ENDING_CONTINUES: _ClassVar[Ending]
    ENDING_TERMINATED: _ClassVar[Ending]
    ENDING_TRUNCATED: _ClassVar[Ending]

class DecidedBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECIDED_BY_UNSPECIFIED: _ClassVar[DecidedBy]
    DECIDED_BY_FALLBACK: _ClassVar[DecidedBy]
    DECIDED_BY_INCUMBENT: _ClassVar[DecidedBy]
ENDING_UNSPECIFIED: Ending
ENDING_CONTINUES: Ending
ENDING_TERMINATED: Ending
ENDING_TRUNCATED: Ending
DECIDED_BY_UNSPECIFIED: DecidedBy
DECIDED_BY_FALLBACK: DecidedBy
DECIDED_BY_INCUMBENT: DecidedBy

class SegmentSchema(_message.Message):
    __slots__ = ("observation", "action", "extras", "carry", "choices")
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    EXTRAS_FIELD_NUMBER: _ClassVar[int]
    CARRY_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    observation: _containers.RepeatedCompositeFieldContainer[_arrays_pb2.ArraySpec]
    action: _arrays_pb2.ArraySpec
    extras: _containers.RepeatedCompositeFieldContainer[_arrays_pb2.ArraySpec]
    carry: _containers.RepeatedCompositeFieldContainer[_arrays_pb2.ArraySpec]
    choices: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, observation: _Optional[_Iterable[_Union[_arrays_pb2.ArraySpec, _Mapping]]] = ..., action: _Optional[_Union[_arrays_pb2.ArraySpec, _Mapping]] = ..., extras: _Optional[_Iterable[_Union[_arrays_pb2.ArraySpec, _Mapping]]] = ..., carry: _Optional[_Iterable[_Union[_arrays_pb2.ArraySpec, _Mapping]]] = ..., choices: _Optional[_Iterable[int]] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("agent", "lane", "episode", "start", "policy_version", "ending", "steps", "columns", "decided_by", "elapsed")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_FIELD_NUMBER: _ClassVar[int]
    agent: str
    lane: int
    episode: int
    start: int
    policy_version: int
    ending: Ending
    steps: int
    columns: _containers.RepeatedScalarFieldContainer[bytes]
    decided_by: DecidedBy
    elapsed: bytes
    def __init__(self, agent: _Optional[str] = ..., lane: _Optional[int] = ..., episode: _Optional[int] = ..., start: _Optional[int] = ..., policy_version: _Optional[int] = ..., ending: _Optional[_Union[Ending, str]] = ..., steps: _Optional[int] = ..., columns: _Optional[_Iterable[bytes]] = ..., decided_by: _Optional[_Union[DecidedBy, str]] = ..., elapsed: _Optional[bytes] = ...) -> None: ...

class SegmentPack(_message.Message):
    __slots__ = ("agent", "policy_version", "decided_by", "lane", "episode", "start", "ending", "steps", "observation", "action", "reward", "extras", "carry", "elapsed")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    EXTRAS_FIELD_NUMBER: _ClassVar[int]
    CARRY_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_FIELD_NUMBER: _ClassVar[int]
    agent: str
    policy_version: int
    decided_by: DecidedBy
    lane: bytes
    episode: bytes
    start: bytes
    ending: bytes
    steps: bytes
    observation: _containers.RepeatedScalarFieldContainer[bytes]
    action: bytes
    reward: bytes
    extras: _containers.RepeatedScalarFieldContainer[bytes]
    carry: _containers.RepeatedScalarFieldContainer[bytes]
    elapsed: bytes
    def __init__(self, agent: _Optional[str] = ..., policy_version: _Optional[int] = ..., decided_by: _Optional[_Union[DecidedBy, str]] = ..., lane: _Optional[bytes] = ..., episode: _Optional[bytes] = ..., start: _Optional[bytes] = ..., ending: _Optional[bytes] = ..., steps: _Optional[bytes] = ..., observation: _Optional[_Iterable[bytes]] = ..., action: _Optional[bytes] = ..., reward: _Optional[bytes] = ..., extras: _Optional[_Iterable[bytes]] = ..., carry: _Optional[_Iterable[bytes]] = ..., elapsed: _Optional[bytes] = ...) -> None: ...
