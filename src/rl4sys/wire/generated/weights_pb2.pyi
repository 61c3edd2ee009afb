# ruff: noqa
# fmt: off
# mypy: ignore-errors
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PatchEncoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PATCH_ENCODING_UNSPECIFIED: _ClassVar[PatchEncoding]
    PATCH_ENCODING_RAW: _ClassVar[PatchEncoding]
    PATCH_ENCODING_PLANES: _ClassVar[PatchEncoding]
    PATCH_ENCODING_XOR: _ClassVar[PatchEncoding]
PATCH_ENCODING_UNSPECIFIED: PatchEncoding
PATCH_ENCODING_RAW: PatchEncoding
PATCH_ENCODING_PLANES: PatchEncoding
PATCH_ENCODING_XOR: PatchEncoding

class PatchHeader(_message.Message):
    __slots__ = ("base", "target", "encoding", "size", "sha256", "payload_bytes")
    BASE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    base: int
    target: int
    encoding: PatchEncoding
    size: int
    sha256: bytes
    payload_bytes: int
    def __init__(self, base: _Optional[int] = ..., target: _Optional[int] = ..., encoding: _Optional[_Union[PatchEncoding, str]] = ..., size: _Optional[int] = ..., sha256: _Optional[bytes] = ..., payload_bytes: _Optional[int] = ...) -> None: ...

class PatchChunk(_message.Message):
    __slots__ = ("header", "payload")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    header: PatchHeader
    payload: bytes
    def __init__(self, header: _Optional[_Union[PatchHeader, _Mapping]] = ..., payload: _Optional[bytes] = ...) -> None: ...
