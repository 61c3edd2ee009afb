"""Gymnasium environments by name, with clear words when one cannot be made."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium import error

from rl4sys.environments.exactness import Environment


class UnknownEnvironment(ValueError):
    """No environment is registered under this name."""


class UnsuitableArguments(ValueError):
    """The environment does not take the arguments it was given."""


class MissingDependency(ImportError):
    """The environment is known, but a package that it needs is not installed."""


def make_gymnasium(name: str, kwargs: Mapping[str, Any]) -> Environment:
    """One environment by its Gymnasium id; "module:Name-v0" imports the module that registers it first."""
    try:
        return gymnasium.make(name, disable_env_checker=True, **kwargs)
    except error.DeprecatedEnv as cause:
        raise UnknownEnvironment(f"Environment '{name}' is no longer offered. {cause}") from cause
    except error.DependencyNotInstalled as cause:
        raise MissingDependency(
            f"Environment '{name}' needs a package that is not installed ({cause}). "
            f"Install it with: pip install '{_extra(name)}'"
        ) from cause
    except ModuleNotFoundError as cause:
        raise MissingDependency(
            f"Environment '{name}' could not be imported: {cause}. Install the package that provides it; "
            f"if it is a file of yours, list that file under 'plugins'."
        ) from cause
    except TypeError as cause:
        raise UnsuitableArguments(
            f"Environment '{name}' cannot be made with environment.kwargs {dict(kwargs)}: {cause}."
        ) from cause
    except error.Error as cause:
        if _registered(name):
            raise
        raise UnknownEnvironment(
            f"Unknown environment '{name}'. {_suggestion(name)} If another package registers it, "
            f"write 'package:{name}'."
        ) from cause


def _registered(name: str) -> bool:
    return name.rpartition(":")[2] in gymnasium.registry


def _suggestion(name: str) -> str:
    known = {registered.lower(): registered for registered in gymnasium.registry}
    close = difflib.get_close_matches(name.rpartition(":")[2].lower(), known, n=3, cutoff=0.5)
    if not close:
        return "`gymnasium.pprint_registry()` lists what is installed."
    return f"Did you mean {' or '.join(known[match] for match in close)}?"


def _extra(name: str) -> str:
    """Gymnasium's extra for one of its own families of environments, such as gymnasium[box2d]."""
    entry_point = str(gymnasium.spec(name).entry_point)
    family = entry_point.removeprefix("gymnasium.envs.").partition(".")[0].partition(":")[0]
    own = entry_point.startswith("gymnasium.envs.")
    return f"gymnasium[{family.replace('_', '-')}]" if own else "gymnasium[all]"
