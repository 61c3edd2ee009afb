"""Programs of other projects, faked: each records its arguments, and fails on request."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_PROGRAM = """#!{python}
import json, os, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
with open({log!r}, "a") as file:
    file.write(json.dumps([name, *words]) + "\\n")
text = " ".join([name, *words])
for line in open({rules!r}).read().splitlines():
    part, code, said = json.loads(line)
    if part in text:
        print(said)
        sys.exit(code)
"""


class FakePrograms:
    """Fakes in a directory, which is to be first on PATH."""

    def __init__(self, directory: Path, *names: str) -> None:
        self.directory = directory
        self._log, self._rules = directory / "log.jsonl", directory / "rules.jsonl"
        directory.mkdir()
        self._log.touch()
        self._rules.touch()
        text = _PROGRAM.format(python=sys.executable, log=str(self._log), rules=str(self._rules))
        for name in names:
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)

    def answer(self, part: str, code: int, said: str = "") -> None:
        """Let commands that contain some text end with an exit code; the first rule that fits counts."""
        with self._rules.open("a") as file:
            file.write(json.dumps([part, code, said]) + "\n")

    @property
    def calls(self) -> list[list[str]]:
        """What was called, in order."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    @property
    def verbs(self) -> list[str]:
        """The first two words of each call."""
        return [" ".join(call[:2]) for call in self.calls]

    def path(self) -> str:
        """A PATH with the fakes first."""
        return os.pathsep.join([str(self.directory), "/usr/bin", "/bin"])
