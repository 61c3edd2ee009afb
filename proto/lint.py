"""Compiles the protos and checks what protoc does not: names, comments, and that no number ever changes its meaning.

`python proto/lint.py` prints what is wrong and fails; `--record` adds new fields to `numbers.txt`, which remembers
every number that was ever used.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from grpc_tools import protoc

PROTOS = Path(__file__).parent
NUMBERS = PROTOS / "numbers.txt"
PACKAGE = "rl4sys.v1"

_LOWER_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PASCAL = re.compile(r"([A-Z][a-z0-9]*)+")
_STATUS_CODE = re.compile(
    r"\b(INVALID_ARGUMENT|NOT_FOUND|FAILED_PRECONDITION|RESOURCE_EXHAUSTED|UNAVAILABLE|PERMISSION_DENIED)\b"
)

# Numbers of the fields of FileDescriptorProto, DescriptorProto, …: the steps of a path in source_code_info.
_MESSAGES, _ENUMS, _SERVICES = 4, 5, 6
_FIELDS, _NESTED, _NESTED_ENUMS, _ONEOFS = 2, 3, 4, 8
_VALUES = _METHODS = 2

Place = tuple[int, ...]
Comments = dict[Place, str]


def compiled(root: Path) -> FileDescriptorSet:
    """All protos below `root`, with their comments."""
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "descriptors")
        options = [f"-I{root}", "--include_source_info", f"--descriptor_set_out={output}"]
        if protoc.main(["protoc", *options, *files]) != 0:
            raise SystemExit(f"protoc refused the protos in {root}; see above.")
        return FileDescriptorSet.FromString(output.read_bytes())


def problems(protos: FileDescriptorSet, recorded: list[str]) -> list[str]:
    """What is wrong, one line each; `recorded` are the lines of numbers.txt."""
    found = [problem for file in protos.file for problem in _in_file(file)]
    current = numbers(protos)
    found += [f"{line}: not recorded; run proto/lint.py --record" for line in current if line not in recorded]
    retired = _retired(protos)
    for line in recorded:
        if line not in current and not {(line.split()[0], part) for part in line.split()[1:3]} <= retired:
            found.append(f"{line}: was removed or changed; keep it, or reserve both its number and its name")
    return found


def numbers(protos: FileDescriptorSet) -> list[str]:
    """One line for everything that has a number or a path on the wire: owner, number, name, type."""
    lines: list[str] = []
    for file in protos.file:
        for owner, message in _messages(file.message_type, PACKAGE):
            lines += [f"{owner} {field.number} {field.name} {_type(field)}" for field in message.field]
        for owner, enum in _enums(file):
            lines += [f"{owner} {value.number} {value.name} value" for value in enum.value]
        for service in file.service:
            for method in service.method:
                reply = ("stream " if method.server_streaming else "") + _local(method.output_type)
                lines.append(f"{PACKAGE}.{service.name} - {method.name} {_local(method.input_type)} {reply}")
    return sorted(lines)


def _in_file(file: FileDescriptorProto) -> Iterator[str]:
    comments: Comments = {
        tuple(location.path): location.leading_comments for location in file.source_code_info.location
    }
    if file.package != PACKAGE or file.syntax != "proto3":
        yield f"{file.name}: package {file.package}, {file.syntax}; expected {PACKAGE}, proto3"
    folder, _, name = file.name.rpartition("/")
    if folder != PACKAGE.replace(".", "/") or not _LOWER_SNAKE.fullmatch(name.removesuffix(".proto")):
        yield f"{file.name}: expected {PACKAGE.replace('.', '/')}/lower_snake.proto"
    for index, message in enumerate(file.message_type):
        yield from _in_message(message, (_MESSAGES, index), message.name, comments)
    for index, enum in enumerate(file.enum_type):
        yield from _in_enum(enum, (_ENUMS, index), comments)
    for index, service in enumerate(file.service):
        yield from _named(_PASCAL, service.name, (_SERVICES, index), service.name, comments)
        for at, method in enumerate(service.method):
            owner, place = f"{service.name}.{method.name}", (_SERVICES, index, _METHODS, at)
            yield from _named(_PASCAL, method.name, place, owner, comments)
            if not _STATUS_CODE.search(comments.get(place, "")):
                yield f"{owner}: its comment names no status code that it may end in"


def _in_message(message: DescriptorProto, place: Place, owner: str, comments: Comments) -> Iterator[str]:
    yield from _named(_PASCAL, message.name, place, owner, comments)
    for index, field in enumerate(message.field):
        yield from _named(_LOWER_SNAKE, field.name, (*place, _FIELDS, index), f"{owner}.{field.name}", comments)
    for index, oneof in enumerate(message.oneof_decl):
        # protoc makes one, with an underscore in front, for each `optional` field.
        if not oneof.name.startswith("_"):
            yield from _named(_LOWER_SNAKE, oneof.name, (*place, _ONEOFS, index), f"{owner}.{oneof.name}", comments)
    for index, nested in enumerate(message.nested_type):
        if not nested.options.map_entry:
            yield from _in_message(nested, (*place, _NESTED, index), f"{owner}.{nested.name}", comments)
    for index, enum in enumerate(message.enum_type):
        yield from _in_enum(enum, (*place, _NESTED_ENUMS, index), comments)


def _in_enum(enum: EnumDescriptorProto, place: Place, comments: Comments) -> Iterator[str]:
    yield from _named(_PASCAL, enum.name, place, enum.name, comments)
    prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum.name).upper()
    zero = next((value.name for value in enum.value if value.number == 0), None)
    if zero != f"{prefix}_UNSPECIFIED":
        yield f"{enum.name}: its value 0 is {zero}; expected {prefix}_UNSPECIFIED"
    for index, value in enumerate(enum.value):
        if not value.name.startswith(f"{prefix}_") or value.name != value.name.upper():
            yield f"{enum.name}.{value.name}: expected {prefix}_… in capitals"
        if not comments.get((*place, _VALUES, index), "").strip():
            yield f"{enum.name}.{value.name}: has no comment above it"


def _named(form: re.Pattern[str], name: str, place: Place, owner: str, comments: Comments) -> Iterator[str]:
    if not form.fullmatch(name):
        yield f"{owner}: expected {'lower_snake' if form is _LOWER_SNAKE else 'PascalCase'}"
    if not comments.get(place, "").strip():
        yield f"{owner}: has no comment above it"


def _messages(messages: Iterable[DescriptorProto], prefix: str) -> Iterator[tuple[str, DescriptorProto]]:
    """Every message with its full name, also those within others, but not the entries of maps."""
    for message in messages:
        yield f"{prefix}.{message.name}", message
        nested = [part for part in message.nested_type if not part.options.map_entry]
        yield from _messages(nested, f"{prefix}.{message.name}")


def _enums(file: FileDescriptorProto) -> Iterator[tuple[str, EnumDescriptorProto]]:
    for enum in file.enum_type:
        yield f"{PACKAGE}.{enum.name}", enum
    for owner, message in _messages(file.message_type, PACKAGE):
        for enum in message.enum_type:
            yield f"{owner}.{enum.name}", enum


def _type(field: FieldDescriptorProto) -> str:
    repeated = "repeated " if field.label == FieldDescriptorProto.LABEL_REPEATED else ""
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    return repeated + (_local(field.type_name) or kind)


def _local(type_name: str) -> str:
    return type_name.removeprefix(f".{PACKAGE}.")


def _retired(protos: FileDescriptorSet) -> set[tuple[str, str]]:
    """Owner with number, and owner with name, of everything that is reserved."""
    retired: set[tuple[str, str]] = set()
    for file in protos.file:
        for owner, message in _messages(file.message_type, PACKAGE):
            retired |= {(owner, name) for name in message.reserved_name}
            for reserved in message.reserved_range:
                retired |= {(owner, str(number)) for number in range(reserved.start, min(reserved.end, 1 << 16))}
        for owner, enum in _enums(file):
            retired |= {(owner, name) for name in enum.reserved_name}
            for span in enum.reserved_range:  # Here, unlike in messages, the end is included.
                retired |= {(owner, str(number)) for number in range(span.start, min(span.end, 1 << 16) + 1)}
    return retired


def main() -> None:
    """Lint, or record."""
    protos = compiled(PROTOS)
    recorded = NUMBERS.read_text().splitlines() if NUMBERS.exists() else []
    if "--record" in sys.argv[1:]:
        recorded = sorted({*recorded, *numbers(protos)})
        NUMBERS.write_text("\n".join(recorded) + "\n")
    found = problems(protos, recorded)
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
