"""What the files of a run say about it, for its page. A file that is missing or damaged leaves its part out."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rl4sys.laboratory.run_index.run_values import flat_settings
from rl4sys.run_files import (
    CONFIG,
    CURVE,
    EPISODES,
    ERROR,
    HASHES,
    MANIFEST,
    METRICS,
    OUTPUT,
    PROCESS,
    RESULT,
    RETURN,
    VIDEOS,
    read_json,
    read_records,
)
from rl4sys.ui.known_files import UnknownFile, known_file

EVENTS = "events.jsonl"
_TEXTS = (CONFIG, MANIFEST, METRICS, EPISODES, HASHES, RESULT, PROCESS, EVENTS, OUTPUT, ERROR, CURVE)
_OPTIONS = {"--algorithm": "algorithm.name", "--env": "environment.name", "--seed": "experiment.seed"}
"""Options of `rl4sys train` that stand for a setting."""
_SHOWN_BYTES = 64 << 10
_SHOWN_EVENTS = 200


class Setting(NamedTuple):
    """A setting of a run and where it came from."""

    key: str
    value: Any
    origin: str
    """`command line`, `config`, `default`, or empty if the run does not say."""


class RunEvent(NamedTuple):
    """Something that happened to a run besides learning, such as an alert."""

    time: str
    step: int
    event: str
    details: str


class EvaluationRow(NamedTuple):
    """The metrics of one evaluation."""

    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TextTail:
    """The end of a text file."""

    name: str
    text: str
    is_cut: bool
    """Whether there is more before it."""


def settings_of_run(settings: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[Setting]:
    """All settings by dotted key, with their origins as far as the run has recorded them."""
    typed = _typed_keys(manifest.get("command") or ())
    given = manifest.get("given")
    found = []
    for key, value in flat_settings(settings).items():
        if any(key == each or key.startswith(f"{each}.") for each in typed):
            origin = "command line"
        elif given is None:
            origin = ""
        else:
            origin = "config" if key in given else "default"
        found.append(Setting(key, value, origin))
    return found


def _typed_keys(command: Sequence[str]) -> set[str]:
    """The settings that a command line gave."""
    keys = {text.partition("=")[0] for text in command if "=" in text and not text.startswith("-")}
    names = (text.partition("=")[0] for text in command if text.startswith("--"))
    return {key if "." in key else f"experiment.{key}" for key in keys} | {
        _OPTIONS[name] for name in names if name in _OPTIONS
    }


def command_of(manifest: Mapping[str, Any]) -> str | None:
    """The command that made the run, as it can be typed again."""
    command = manifest.get("command")
    if not isinstance(command, list) or not command:
        return None
    return shlex.join([Path(str(command[0])).name, *map(str, command[1:])])


def manifest_of(run: Path) -> Mapping[str, Any]:
    """The manifest; empty if it is damaged."""
    return _json(run / MANIFEST)


def result_of(run: Path) -> Mapping[str, Any]:
    """How the run ended; empty if it has not, or if the file is damaged."""
    return _json(run / RESULT)


def events_of(run: Path, most: int = _SHOWN_EVENTS) -> list[RunEvent]:
    """The newest events, the newest first; all of them if `most` is 0."""
    try:
        lines = (run / EVENTS).read_text(encoding="utf-8", errors="replace").splitlines()[-most:]
    except OSError:
        return []
    found = []
    for line in reversed(lines):
        try:
            values = json.loads(line)
            time, step, event = str(values.pop("time")), int(values.pop("step")), str(values.pop("event"))
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
        found.append(RunEvent(time, step, event, ", ".join(f"{name} {value}" for name, value in values.items())))
    return found


def evaluations_of(run: Path) -> list[EvaluationRow]:
    """All evaluations in the order of steps, with the part of the name after `evaluation/`."""
    prefix = RETURN.partition("/")[0] + "/"
    found = []
    for record in read_records(run):
        values = {
            name.removeprefix(prefix): value for name, value in record["metrics"].items() if name.startswith(prefix)
        }
        if values:
            found.append(EvaluationRow(record["step"], values))
    return found


def videos_of(run: Path) -> list[str]:
    """The names of its videos, relative to the run, the newest first."""
    try:
        return sorted((f"{VIDEOS}/{path.name}" for path in (run / VIDEOS).glob("*.mp4")), reverse=True)
    except OSError:
        return []


def files_of(run: Path) -> list[str]:
    """The names of the files that the page may send."""
    return [name for name in _TEXTS if (run / name).is_file()] + videos_of(run)


def tail_of(run: Path, name: str) -> TextTail | None:
    """The end of a text file of the run; None if there is none."""
    try:
        with known_file(run, name, (name,)).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _SHOWN_BYTES))
            data = file.read()
    except (OSError, UnknownFile):
        return None
    text = data.decode("utf-8", "replace")
    # A progress bar writes over its line; only the last of it is shown.
    lines = [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]
    return TextTail(name, "\n".join(lines), size > len(data))


def seconds_of(process: Mapping[str, Any], now: datetime.datetime) -> float | None:
    """How long its last process has trained."""
    started, ended = process.get("started"), process.get("ended")
    if not isinstance(started, int | float):
        return None
    return (ended if isinstance(ended, int | float) else now.timestamp()) - started


def process_of(run: Path) -> Mapping[str, Any]:
    """The process that trains it, or trained it last; empty if that is not known."""
    return _json(run / PROCESS)


def _json(path: Path) -> Mapping[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError):
        return {}
