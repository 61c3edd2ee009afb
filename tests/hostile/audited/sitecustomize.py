"""Put first on PYTHONPATH, this writes down every time that a process pickles, unpickles or unmarshals.

`RL4SYS_AUDIT` names a directory; each process writes a file of its own there: one line that says what it runs, then one
for each event with the place that caused it.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

_IMPORTING = ("<frozen importlib", "<frozen zipimport")
"""Reading .pyc files is what marshal is for."""


def _start(directory: str) -> None:
    with open("/proc/self/cmdline", "rb") as own:
        command = own.read().replace(b"\0", b" ").decode()
    file = open(os.path.join(directory, f"{os.getpid()}.events"), "a", buffering=1)  # noqa: SIM115  # for the whole life
    file.write(f"runs {command}\n")

    def note(event: str, depth: int) -> None:
        frame = sys._getframe(depth)
        while frame.f_back is not None and frame.f_code.co_filename.endswith(("pickle.py", "sitecustomize.py")):
            frame = frame.f_back
        if not (event.startswith("marshal") and frame.f_code.co_filename.startswith(_IMPORTING)):
            file.write(f"{event} at {frame.f_code.co_filename}:{frame.f_lineno}\n")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(("pickle.", "marshal.load")):
            note(event, 2)

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            note(f"pickle.{name}", 2)
            return function(*arguments, **named)

        return call

    # Only finding a class raises an event; a pickle of plain values raises none.
    for name in ("dump", "dumps", "load", "loads"):
        setattr(pickle, name, watched(name, getattr(pickle, name)))
    sys.addaudithook(hook)


if directory := os.environ.get("RL4SYS_AUDIT"):
    _start(directory)
