"""Writes the reference of the wire protocol from the comments in proto/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from staged_pages import REPOSITORY

_BLOCK = re.compile(r"(service|message|enum) (\w+) \{")
_CALL = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")
_FIELD = re.compile(r"(?:(optional|repeated) )?([\w.]+|map<[^>]+>) (\w+) = (\d+)(?: \[[^]]*\])?;(?:\s*//\s*(.*))?")
_VALUE = re.compile(r"(\w+) = (\d+);(?:\s*//\s*(.*))?")
_CODE = re.compile(r"  ([A-Z_]+) {2,}(\S.*)")


class _Member(NamedTuple):
    name: str
    type: str
    number: str
    comment: list[str]


class Declaration(NamedTuple):
    """A service, message or enum with its comment."""

    kind: str
    name: str
    comment: list[str]
    members: list[_Member]


def protocol_page(directory: Path) -> str:
    """Every call, message and enum, file by file."""
    lines = [
        "# Protocol",
        "",
        "The calls and messages between clients and a server, in gRPC. Written from the comments in",
        f"[proto/rl4sys/v1]({REPOSITORY}/tree/main/proto/rl4sys/v1). Numbers of fields are never reused.",
        "",
    ]
    for file in sorted(directory.glob("*.proto"), key=lambda path: (path.stem != "training", path.stem)):
        lines += [f"## {file.name}", ""]
        for found in declarations(file.read_text("utf-8")):
            lines += _section(found)
    return "\n".join(lines)


def declarations(text: str) -> Iterator[Declaration]:
    """The declarations of a file, nested ones after the one that contains them."""
    comment: list[str] = []
    opened: list[Declaration | None] = []
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("//"):
            comment.append(raw.strip()[2:].removeprefix(" "))
            continue
        if block := _BLOCK.match(line):
            nested = [each.name for each in opened if each is not None]
            opened.append(Declaration(block[1], ".".join([*nested, block[2]]), comment, []))
        elif line.startswith("oneof "):
            opened.append(None)
        elif line == "}":
            ended = opened.pop()
            if ended is not None:
                yield ended
        elif opened and (member := _member(line, comment)):
            next(each for each in reversed(opened) if each is not None).members.append(member)
        if line.endswith("{}"):
            yield opened.pop()  # type: ignore[misc]  # an empty message is never a oneof
        comment = []


def _member(line: str, comment: list[str]) -> _Member | None:
    if call := _CALL.match(line):
        request, reply = ((call[2] or "") + call[3], (call[4] or "") + call[5])
        return _Member(call[1], f"{request} → {reply}", "", comment)
    if field := _FIELD.match(line):
        return _Member(
            field[3], f"{field[1]} {field[2]}" if field[1] else field[2], field[4], comment or [field[5] or ""]
        )
    if value := _VALUE.match(line):
        return _Member(value[1], "", value[2], comment or [value[3] or ""])
    return None


def _section(found: Declaration) -> list[str]:
    lines = [f"### {found.name}", "", f"*{found.kind}*", "", *_prose(found.comment), ""]
    if found.kind == "service":
        for call in found.members:
            lines += [f"#### {call.name}", "", f"`{call.type}`", "", *_prose(call.comment), ""]
    elif found.members:
        head = "| field | type | number | meaning |" if found.kind == "message" else "| value | number | meaning |"
        lines += [head, "|---" * (head.count("|") - 1) + "|"]
        for member in found.members:
            kind = f" `{member.type}` |" if found.kind == "message" else ""
            lines.append(f"| `{member.name}` |{kind} {member.number} | {_cell(member.comment)} |")
        lines.append("")
    return lines


def _prose(comment: list[str]) -> Iterator[str]:
    """A comment as Markdown: lines of status codes become a list."""
    is_listing = False
    for line in comment:
        if code := _CODE.match(line):
            if not is_listing:
                yield ""
            is_listing = True
            yield f"- `{code[1]}`: {_escaped(code[2])}"
        elif is_listing and line.startswith("   "):
            yield f"    {_escaped(line.strip())}"
        else:
            is_listing = False
            yield _escaped(line)


def _cell(comment: list[str]) -> str:
    return _escaped(" ".join(line.strip() for line in comment)).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Brackets are no links or tags here, except inside code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\[\]<*_])", r"\\\1", part) for part in parts)
