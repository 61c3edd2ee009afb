"""Names of environments: plain ids, and universes: gym/HalfCheetah/v5, dm_control/cheetah/run, atari/Pong."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from typing import Any

import gymnasium

from rl4sys.environments.dm_control_tasks import UNIVERSE, task_names
from rl4sys.suggestions import did_you_mean_one_of

_VERSION = re.compile(r"/(v\d+)$")
_ENDING = re.compile(r"-v\d+$")
_ATARI_OF_OTHERS = re.compile(r"(\w+)NoFrameskip-v\d+$")
"""How other libraries name the games that they wrap themselves."""


class UnknownEnvironment(ValueError):
    """A name or an object is no environment that can be made here."""


def canonical_name(name: str) -> str:
    """The one spelling among several: gym/HalfCheetah/v5 and gym/HalfCheetah-v5 are HalfCheetah-v5."""
    return _VERSION.sub(r"-\1", name.removeprefix("gym/") or name)


def newest_version(name: str) -> str | None:
    """The id of the newest registered version of an environment, given with or without one; None if unknown."""
    stem = _ENDING.sub("", canonical_name(name))
    versions = [id_ for id_ in gymnasium.registry if _ENDING.sub("", id_) == stem and id_ != stem]
    return max(versions, key=lambda id_: int(id_.rpartition("-v")[2]), default=None)


def is_dm_control(name: str) -> bool:
    """Whether a name belongs to the DeepMind Control Suite."""
    return name.startswith(f"{UNIVERSE}/")


def is_atari(name: str) -> bool:
    """Whether a name belongs to the Atari games: atari/Pong, or as Gymnasium has it, ALE/Pong-v5."""
    return name.startswith(("atari/", "ALE/"))


def usual_wrapper(settings: Mapping[str, Any]) -> str:
    """The kind of environment that a name means, where the config does not say it."""
    return "atari" if is_atari(str(settings.get("name", ""))) else "gym"


def suggestion(name: str) -> str:
    """A suggestion for an unknown name."""
    if game := _ATARI_OF_OTHERS.search(name):
        return f"Did you mean atari/{game[1]}?"
    known = list(gymnasium.registry)
    if (name.startswith("dm") or name.count("/") > 1) and importlib.util.find_spec(UNIVERSE) is not None:
        known += task_names()
    return did_you_mean_one_of(name.rpartition(":")[2], known) or (
        "`gymnasium.pprint_registry()` lists what is installed; tasks of dm_control are named "
        "dm_control/domain/task, such as dm_control/cheetah/run, and Atari games atari/Pong."
    )
