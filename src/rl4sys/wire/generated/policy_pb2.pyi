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

class Distribution(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISTRIBUTION_UNSPECIFIED: _ClassVar[Distribution]
    DISTRIBUTION_NORMAL: _ClassVar[Distribution]
    DISTRIBUTION_UNIFORM: _ClassVar[Distribution]

class HeadKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEAD_KIND_UNSPECIFIED: _ClassVar[HeadKind]
    HEAD_KIND_CATEGORICAL: _ClassVar[HeadKind]
    HEAD_KIND_EPSILON_GREEDY: _ClassVar[HeadKind]
    HEAD_KIND_GAUSSIAN: _ClassVar[HeadKind]
    HEAD_KIND_TANH_GAUSSIAN: _ClassVar[HeadKind]
    HEAD_KIND_DETERMINISTIC: _ClassVar[HeadKind]
    HEAD_KIND_PERTURBED: _ClassVar[HeadKind]
    HEAD_KIND_NOISE_CONDITIONED: _ClassVar[HeadKind]
    HEAD_KIND_MIXED: _ClassVar[HeadKind]
    HEAD_KIND_PLANNED: _ClassVar[HeadKind]
DISTRIBUTION_UNSPECIFIED: Distribution
DISTRIBUTION_NORMAL: Distribution
DISTRIBUTION_UNIFORM: Distribution
HEAD_KIND_UNSPECIFIED: HeadKind
HEAD_KIND_CATEGORICAL: HeadKind
HEAD_KIND_EPSILON_GREEDY: HeadKind
HEAD_KIND_GAUSSIAN: HeadKind
HEAD_KIND_TANH_GAUSSIAN: HeadKind
HEAD_KIND_DETERMINISTIC: HeadKind
HEAD_KIND_PERTURBED: HeadKind
HEAD_KIND_NOISE_CONDITIONED: HeadKind
HEAD_KIND_MIXED: HeadKind
HEAD_KIND_PLANNED: HeadKind

class PolicySpec(_message.Message):
    __slots__ = ("action", "program", "head", "model")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    action: ActionSpec
    program: Program
    head: Head
    model: Program
    def __init__(self, action: _Optional[_Union[ActionSpec, _Mapping]] = ..., program: _Optional[_Union[Program, _Mapping]] = ..., head: _Optional[_Union[Head, _Mapping]] = ..., model: _Optional[_Union[Program, _Mapping]] = ...) -> None: ...

class ActionSpec(_message.Message):
    __slots__ = ("discrete", "multi_discrete", "box", "mixed")
    DISCRETE_FIELD_NUMBER: _ClassVar[int]
    MULTI_DISCRETE_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    MIXED_FIELD_NUMBER: _ClassVar[int]
    discrete: DiscreteAction
    multi_discrete: MultiDiscreteAction
    box: BoxAction
    mixed: MixedAction
    def __init__(self, discrete: _Optional[_Union[DiscreteAction, _Mapping]] = ..., multi_discrete: _Optional[_Union[MultiDiscreteAction, _Mapping]] = ..., box: _Optional[_Union[BoxAction, _Mapping]] = ..., mixed: _Optional[_Union[MixedAction, _Mapping]] = ...) -> None: ...

class DiscreteAction(_message.Message):
    __slots__ = ("n", "start")
    N_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    n: int
    start: int
    def __init__(self, n: _Optional[int] = ..., start: _Optional[int] = ...) -> None: ...

class MultiDiscreteAction(_message.Message):
    __slots__ = ("sizes",)
    SIZES_FIELD_NUMBER: _ClassVar[int]
    sizes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, sizes: _Optional[_Iterable[int]] = ...) -> None: ...

class BoxAction(_message.Message):
    __slots__ = ("low", "high")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    low: _containers.RepeatedScalarFieldContainer[float]
    high: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, low: _Optional[_Iterable[float]] = ..., high: _Optional[_Iterable[float]] = ...) -> None: ...

class MixedAction(_message.Message):
    __slots__ = ("sizes", "low", "high")
    SIZES_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    sizes: _containers.RepeatedScalarFieldContainer[int]
    low: _containers.RepeatedScalarFieldContainer[float]
    high: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, sizes: _Optional[_Iterable[int]] = ..., low: _Optional[_Iterable[float]] = ..., high: _Optional[_Iterable[float]] = ...) -> None: ...

class Program(_message.Message):
    __slots__ = ("inputs", "ops", "tensors", "carry", "chance")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    CARRY_FIELD_NUMBER: _ClassVar[int]
    CHANCE_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[_arrays_pb2.ArraySpec]
    ops: _containers.RepeatedCompositeFieldContainer[Op]
    tensors: _containers.RepeatedCompositeFieldContainer[Tensor]
    carry: _containers.RepeatedCompositeFieldContainer[Memory]
    chance: _containers.RepeatedCompositeFieldContainer[Chance]
    def __init__(self, inputs: _Optional[_Iterable[_Union[_arrays_pb2.ArraySpec, _Mapping]]] = ..., ops: _Optional[_Iterable[_Union[Op, _Mapping]]] = ..., tensors: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., carry: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., chance: _Optional[_Iterable[_Union[Chance, _Mapping]]] = ...) -> None: ...

class Chance(_message.Message):
    __slots__ = ("name", "size", "distribution")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    size: int
    distribution: Distribution
    def __init__(self, name: _Optional[str] = ..., size: _Optional[int] = ..., distribution: _Optional[_Union[Distribution, str]] = ...) -> None: ...

class Op(_message.Message):
    __slots__ = ("kind", "outputs", "inputs", "tensors", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Setting
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Setting, _Mapping]] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    outputs: _containers.RepeatedScalarFieldContainer[str]
    inputs: _containers.RepeatedScalarFieldContainer[str]
    tensors: _containers.RepeatedScalarFieldContainer[str]
    settings: _containers.MessageMap[str, Setting]
    def __init__(self, kind: _Optional[str] = ..., outputs: _Optional[_Iterable[str]] = ..., inputs: _Optional[_Iterable[str]] = ..., tensors: _Optional[_Iterable[str]] = ..., settings: _Optional[_Mapping[str, Setting]] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ("real", "integer", "text", "truth", "integers", "reals")
    REAL_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    INTEGERS_FIELD_NUMBER: _ClassVar[int]
    REALS_FIELD_NUMBER: _ClassVar[int]
    real: float
    integer: int
    text: str
    truth: bool
    integers: Integers
    reals: Reals
    def __init__(self, real: _Optional[float] = ..., integer: _Optional[int] = ..., text: _Optional[str] = ..., truth: bool = ..., integers: _Optional[_Union[Integers, _Mapping]] = ..., reals: _Optional[_Union[Reals, _Mapping]] = ...) -> None: ...

class Integers(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...

class Reals(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("name", "shape")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("name", "shape", "next")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    next: str
    def __init__(self, name: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., next: _Optional[str] = ...) -> None: ...

class Head(_message.Message):
    __slots__ = ("kind", "inputs", "tensors", "mask", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Setting
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Setting, _Mapping]] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    MASK_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    kind: HeadKind
    inputs: _containers.RepeatedScalarFieldContainer[str]
    tensors: _containers.RepeatedScalarFieldContainer[str]
    mask: str
    settings: _containers.MessageMap[str, Setting]
    def __init__(self, kind: _Optional[_Union[HeadKind, str]] = ..., inputs: _Optional[_Iterable[str]] = ..., tensors: _Optional[_Iterable[str]] = ..., mask: _Optional[str] = ..., settings: _Optional[_Mapping[str, Setting]] = ...) -> None: ...
