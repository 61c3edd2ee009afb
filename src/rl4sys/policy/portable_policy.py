"""A policy in one portable file: a line of JSON that describes it, then its weights as on the wire.

The line is `{"sha256": …, "policy": {…}}`. The hash is that of the canonical JSON of `policy` (keys sorted, no spaces),
a newline and the weights, so that nothing in the file can change unnoticed. `policy` holds `format`, `version`,
`steps`, `environment`, and the two specs, `explore` and `exploit`, as texts that `PolicySpec.from_json` reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.atomic_files import replace_file
from rl4sys.policy.numpy_policy import layout_of
from rl4sys.policy.policy_spec import PolicySpec
from rl4sys.weights.layout import FLOAT32, Flat

SUFFIX = ".rl4sys"
"""The suffix of portable policy files."""
_FORMAT = 1


class PolicyFileDamaged(ValueError):
    """A file is not a policy, or was changed after it was written."""


@dataclass(frozen=True, slots=True, eq=False)
class PortablePolicy:
    """Everything that acting needs: the explore and exploit policies, their weights and their version."""

    explore: PolicySpec
    exploit: PolicySpec
    weights: Flat
    version: int
    steps: int
    """Environment steps of training."""
    environment: Mapping[str, Any] | None = None
    """The environment it was trained in, as in the config of an experiment; None if unknown."""

    @property
    def sha256(self) -> str:
        """The hash of the weights, which does not depend on the file."""
        return hashlib.sha256(self.weights.tobytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The contents of the file."""
        about = {
            "format": _FORMAT,
            "version": self.version,
            "steps": self.steps,
            "environment": self.environment,
            "explore": self.explore.to_json(),
            "exploit": self.exploit.to_json(),
        }
        blob = self.weights.astype(FLOAT32).tobytes()
        line = json.dumps({"sha256": _seal(about, blob), "policy": about}, sort_keys=True, separators=(",", ":"))
        return line.encode() + b"\n" + blob

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, self.to_bytes())

    @classmethod
    def read(cls, path: Path) -> PortablePolicy:
        """Read the policy that `write` wrote, or raise `PolicyFileDamaged`."""
        return cls.from_bytes(path.read_bytes(), path)

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> PortablePolicy:
        """The policy of a file's contents, or `PolicyFileDamaged` with the name of the file."""
        line, _, blob = data.partition(b"\n")
        try:
            sealed = json.loads(line)
            about = sealed["policy"]
            if about["format"] != _FORMAT:
                raise _damaged(path, f"its format is {about['format']}, and this version reads {_FORMAT}")
            if sealed["sha256"] != _seal(about, blob):
                raise _damaged(path, "its SHA-256 does not match")
            explore, exploit = (PolicySpec.from_json(about[name]) for name in ("explore", "exploit"))
            weights = np.frombuffer(blob, FLOAT32)
            policy = cls(explore, exploit, weights, about["version"], about["steps"], about["environment"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, PolicyFileDamaged):
                raise
            raise _damaged(path, f"it does not begin with the description of one ({error})") from error
        for spec in (explore, exploit):
            expected = layout_of(spec.program).size
            if policy.weights.size != expected:
                raise _damaged(path, f"it has {policy.weights.size:,} weights, and its program takes {expected:,}")
        return policy


def _seal(about: Any, blob: bytes) -> str:
    text = json.dumps(about, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode() + b"\n" + blob).hexdigest()


def _damaged(path: Path, reason: str) -> PolicyFileDamaged:
    return PolicyFileDamaged(
        f"{path} is not a valid policy file: {reason}. Write it again with: rl4sys policy export RUN --output {path}"
    )
