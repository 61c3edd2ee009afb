"""Names of environments: plain ids, and universe/domain/task such as gym/HalfCheetah/v5 or dm_control/cheetah/run."""

from __future__ import annotations

import difflib
import importlib.util
import re

import gymnasium

from rl4sys.environments.dm_control_tasks import UNIVERSE, task_names

_VERSION = re.compile(r"/(v\d+)$")


def canonical_name(name: str) -> str:
    """The one spelling among several: gym/HalfCheetah/v5 and gym/HalfCheetah-v5 are HalfCheetah-v5."""
    return _VERSION.sub(r"-\1", name.removeprefix("gym/") or name)


def is_dm_control(name: str) -> bool:
    """Whether a name belongs to the DeepMind Control Suite."""
    return name.startswith(f"{UNIVERSE}/")


def suggestion(name: str) -> str:
    """What may have been meant by a name that nobody knows."""
    known = {registered.lower(): registered for registered in gymnasium.registry}
    if (name.startswith("dm") or name.count("/") > 1) and importlib.util.find_spec(UNIVERSE) is not None:
        known |= {task.lower(): task for task in task_names()}
    close = difflib.get_close_matches(name.rpartition(":")[2].lower(), known, n=3, cutoff=0.5)
    if not close:
        return (
            "`gymnasium.pprint_registry()` lists what is installed; tasks of dm_control are named "
            "dm_control/domain/task, such as dm_control/cheetah/run."
        )
    return f"Did you mean {' or '.join(known[match] for match in close)}?"
