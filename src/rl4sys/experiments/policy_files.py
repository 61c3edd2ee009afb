"""A policy in files of its own: specs as JSON, weights as they travel."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.learning import Learner


def save_policy(directory: Path, learner: Learner) -> None:
    """Write the newest policy: `explore.json`, `exploit.json`, `weights.f32` and a manifest with their hash."""
    directory.mkdir(parents=True, exist_ok=True)
    newest, policies = learner.store.newest, learner.algorithm.policies
    weights = newest.blob.tobytes()
    replace_file(directory / "explore.json", policies.explore.to_json().encode())
    replace_file(directory / "exploit.json", policies.exploit.to_json().encode())
    replace_file(directory / "weights.f32", weights)
    facts = {"version": newest.number, "steps": learner.steps, "sha256": hashlib.sha256(weights).hexdigest()}
    replace_file(directory / "manifest.json", json.dumps(facts).encode())
