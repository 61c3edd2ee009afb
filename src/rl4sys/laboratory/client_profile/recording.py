"""What a measured program has written: the blocks of each level."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl4sys.client.client_level import ClientLevel


class ProfileFailed(RuntimeError):
    """A program could not be measured; the message says why, and what to do."""


@dataclass(slots=True)
class Recording:
    """The lines of one process, as far as they are written."""

    clients: Sequence[str] = ()
    blocks: list[dict[str, Any]] = field(default_factory=list)
    floor: int | None = None
    """Nanoseconds of the bare products of the policy."""
    is_complete: bool = False
    problem: str | None = None

    @classmethod
    def read(cls, directory: Path) -> Recording:
        """What is in a directory so far; an empty one if nothing is. Refuses what several processes wrote."""
        files = sorted(directory.glob("*.jsonl"))
        if len(files) > 1:
            raise ProfileFailed(
                f"{len(files)} processes of the program connected ({', '.join(file.stem for file in files)}): it forks "
                f"or starts others. Profile one of them by itself."
            )
        recording = cls()
        for line in _lines(files[0]) if files else ():
            if line["kind"] == "start":
                recording.clients = line["clients"]
            elif line["kind"] == "block":
                recording.blocks.append(line)
            elif line["kind"] == "floor":
                recording.floor = line["nanoseconds"]
            else:
                recording.is_complete, recording.problem = True, line["problem"]
        return recording

    def rounds(self) -> list[dict[ClientLevel, dict[str, Any]]]:
        """The complete rounds: one block of each level."""
        rounds: dict[int, dict[ClientLevel, dict[str, Any]]] = {}
        for block in self.blocks:
            rounds.setdefault(block["round"], {})[ClientLevel(block["level"])] = block
        return [blocks for blocks in rounds.values() if len(blocks) == len(ClientLevel)]


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file that may still be written."""
    for line in file.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)
