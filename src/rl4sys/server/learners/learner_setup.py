"""The setup of a learner: written once next to its log, and never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from rl4sys.atomic_files import replace_file
from rl4sys.experience import ArraySpec
from rl4sys.policy import ActionSpec
from rl4sys.wire import decode_action, encode_action
from rl4sys.wire.arrays import decode_arrays, encode_array
from rl4sys.wire.generated import arrays_pb2, policy_pb2

_FORMAT = 1
_NAME = "setup.json"


class SetupDamaged(ValueError):
    """The setup of a learner cannot be read."""


@dataclass(frozen=True, slots=True)
class LearnerSetup:
    """What a learner is made of. Together with the log it determines every version, bit for bit."""

    learner: str
    algorithm: str
    """A registered name."""
    parameters: Mapping[str, Any]
    """The rest of a `LearnerConfig`, as the client sent it."""
    observation: tuple[ArraySpec, ...]
    action: ActionSpec
    max_segment_steps: int
    owner: str = ""
    """The token that created it, as `Caller.token` identifies it; empty for none. It does not affect versions."""
    experiment: str = ""
    """The experiment of the server's config that it was created from, if any. Nor does that."""

    def write(self, directory: Path) -> None:
        """Write the file atomically."""
        raw = {
            "format": _FORMAT,
            "learner": self.learner,
            "algorithm": self.algorithm,
            "parameters": self.parameters,
            "observation": [MessageToDict(encode_array(spec)) for spec in self.observation],
            "action": MessageToDict(encode_action(self.action)),
            "max_segment_steps": self.max_segment_steps,
            "owner": self.owner,
            "experiment": self.experiment,
        }
        replace_file(directory / _NAME, json.dumps(raw, indent=1).encode())

    @classmethod
    def read(cls, directory: Path) -> LearnerSetup:
        """Read the file; `SetupDamaged` if that is not possible."""
        path = directory / _NAME
        try:
            raw = json.loads(path.read_bytes())
            if raw["format"] != _FORMAT:
                raise ValueError(f"it has format {raw['format']}, and this version reads {_FORMAT}")
            observation = [ParseDict(spec, arrays_pb2.ArraySpec()) for spec in raw["observation"]]
            return cls(
                raw["learner"],
                raw["algorithm"],
                raw["parameters"],
                decode_arrays("observation", observation),
                decode_action(ParseDict(raw["action"], policy_pb2.ActionSpec())),
                raw["max_segment_steps"],
                # Learners of older servers have neither.
                raw.get("owner", ""),
                raw.get("experiment", ""),
            )
        except (ValueError, KeyError, TypeError, AttributeError, ParseError) as error:
            raise SetupDamaged(
                f"{path} cannot be read: {type(error).__name__}: {error}. Restore it from a backup, serve it with the "
                f"version that wrote it, or move {directory} away to start over."
            ) from error


def is_learner(directory: Path) -> bool:
    """Whether a directory holds a learner that was completely created."""
    return (directory / _NAME).is_file()
