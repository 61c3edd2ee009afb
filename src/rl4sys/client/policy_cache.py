"""Caches the newest policy on disk, so that a client can start while the server is unreachable."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rl4sys.atomic_files import replace_file
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.client.snapshot import Snapshot
from rl4sys.policy import PolicySpec, layout_of
from rl4sys.weights.layout import FLOAT32
from rl4sys.wire import require_decides

_log = logging.getLogger(__name__)
_FORMAT = 1
_SECONDS_BETWEEN = 5.0
"""Minimum seconds between two writes: most versions are soon replaced."""


MakeInterface = Callable[[PolicySpec, PolicySpec | None], PolicyInterface]
"""Makes the interface of an explore and an exploit policy."""


class PolicyCache:
    """One file per client and policy: a line of JSON, then the weights as on the wire."""

    def __init__(self, directory: Path, name: str, clock: Callable[[], float], interface: MakeInterface) -> None:
        self._path = directory / f"{name}.policy"
        self._interface = interface
        self._clock = clock
        self._saved_at: float | None = None
        self._pending: Snapshot | None = None

    def load(self) -> Snapshot | None:
        """The cached policy; None if there is none or it is damaged."""
        try:
            head, _, blob = self._path.read_bytes().partition(b"\n")
            raw = json.loads(head)
            if raw["format"] != _FORMAT or hashlib.sha256(blob).hexdigest() != raw["sha256"]:
                raise ValueError("its format or its checksum is wrong")
            spec = PolicySpec.from_json(raw["spec"])
            # Caches of earlier versions have no exploit policy and no lineage.
            exploit = None if raw.get("exploit") is None else PolicySpec.from_json(raw["exploit"])
            if len(blob) != 4 * layout_of(spec.program).size:
                raise ValueError("its weights have another size than its policy")
            require_decides(spec)
            interface, lineage = self._interface(spec, exploit), str(raw.get("lineage", ""))
        except FileNotFoundError:
            return None
        except (OSError, KeyError, TypeError, ValueError) as error:
            _log.warning(
                "The cached policy %s cannot be used: %s. Delete it, or start while the server is reachable.",
                self._path,
                error,
            )
            return None
        weights = np.frombuffer(blob, FLOAT32)
        schema_hash = bytes.fromhex(raw["schema_hash"])
        return Snapshot(interface, schema_hash, raw["learner"], raw["version"], weights, raw["max_steps"], lineage)

    def keep(self, snapshot: Snapshot) -> None:
        """Write this policy now, or a later one in a few seconds."""
        self._pending = snapshot
        now = self._clock()
        if self._saved_at is None or now - self._saved_at >= _SECONDS_BETWEEN:
            self._saved_at = now
            self.save()

    def save(self) -> None:
        """Write the newest policy if it is not written yet. A failing disk is logged; decisions continue."""
        snapshot, self._pending = self._pending, None
        if snapshot is None:
            return
        blob, policies = snapshot.weights.tobytes(), snapshot.interface.policies
        head = {
            "format": _FORMAT,
            "spec": policies.explore.to_json(),
            "exploit": None if policies.exploit is None else policies.exploit.to_json(),
            "schema_hash": snapshot.schema_hash.hex(),
            "learner": snapshot.learner,
            "version": snapshot.version,
            "lineage": snapshot.lineage,
            "max_steps": snapshot.max_steps,
            "sha256": hashlib.sha256(blob).hexdigest(),
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(head).encode() + b"\n" + blob)
        except OSError as error:
            _log.warning("The policy cannot be cached in %s: %s.", self._path, error)
