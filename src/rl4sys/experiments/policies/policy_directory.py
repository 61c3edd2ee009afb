"""A policy in files of its own: specs as JSON, weights as they travel."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from rl4sys.atomic_files import publish_directory, write_durably
from rl4sys.learning import Learner


def save_policy(directory: Path, learner: Learner) -> None:
    """Write the newest policy: `explore.json`, `exploit.json`, `weights.f32` and a manifest with their hash.

    They appear together, so that nobody finds weights beside the specs of another version.
    """
    newest, policies = learner.store.newest, learner.algorithm.policies
    weights = newest.blob.tobytes()
    facts = {"version": newest.number, "steps": learner.steps, "sha256": hashlib.sha256(weights).hexdigest()}
    files = {
        "explore.json": policies.explore.to_json().encode(),
        "exploit.json": policies.exploit.to_json().encode(),
        "weights.f32": weights,
        "manifest.json": json.dumps(facts).encode(),
    }
    aside = directory.with_name(f".{directory.name}.tmp")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        for name, data in files.items():
            write_durably(aside / name, data)
        publish_directory(aside, directory)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
