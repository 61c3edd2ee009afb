"""Makes environments by name; the errors say what is missing."""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium import error

from rl4sys.environments.dm_control_tasks import make_dm_control, task_names
from rl4sys.environments.exactness import Environment
from rl4sys.environments.mujoco_camera import DrawnMujoco
from rl4sys.environments.mujoco_setup import hear_warnings, is_mujoco
from rl4sys.environments.names import UnknownEnvironment, canonical_name, is_dm_control, newest_version, suggestion
from rl4sys.environments.objects import is_object, make_object


class UnsuitableArguments(ValueError):
    """The environment does not take the arguments it was given."""


class MissingDependency(ImportError):
    """The environment is known, but a package that it needs is not installed."""


_ARGUMENTS = re.compile(r"(keyword|keyword-only|positional) argument")
"""In what Python says of a call with wrong arguments, and not of other uses of a wrong type."""


_WARNED: set[str] = set()
"""Warnings that were shown: of several equal environments, one warns."""


def make_environment(name: str, kwargs: Mapping[str, Any]) -> Environment:
    """One environment by any of its names: CartPole-v1, gym/HalfCheetah/v5, dm_control/cheetah/run."""
    name = canonical_name(name)
    return _make_task(name, kwargs) if is_dm_control(name) else make_gymnasium(name, kwargs)


def make_gymnasium(name: str, kwargs: Mapping[str, Any]) -> Environment:
    """One environment by its Gymnasium id, or by `module:Class`; `module:Name-v0` imports the module first."""
    try:
        if is_object(name):
            return make_object(name, kwargs)
        if _family(name) == "mujoco" and importlib.util.find_spec("mujoco") is not None:
            hear_warnings()
        with warnings.catch_warnings(record=True) as heard:
            # One that does not draw is refused below, with what to do.
            warnings.filterwarnings("ignore", ".*being initialised with render_mode.*")
            environment = gymnasium.make(name, disable_env_checker=True, **kwargs)
        # Not before it is made: an error says more, in one line.
        for warning in heard:
            if str(warning.message) not in _WARNED:
                _WARNED.add(str(warning.message))
                warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)
        is_drawn = environment.render_mode == "rgb_array" and is_mujoco(environment.unwrapped)
        return DrawnMujoco(environment) if is_drawn else environment
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
            f"if it is a file of yours, list that file under 'plugins', and register the class itself (entry_point=…)."
        ) from cause
    except TypeError as cause:
        if _ARGUMENTS.search(str(cause)) is None:
            raise
        raise _unsuitable(name, kwargs, cause) from cause
    except ImportError as cause:
        newest = newest_version(name)
        hint = f"; use {newest}" if newest not in (None, name) else ""
        raise MissingDependency(f"Environment '{name}' cannot be imported: {str(cause).rstrip('.')}{hint}.") from cause
    except error.Error as cause:
        if _registered(name):
            raise
        raise UnknownEnvironment(
            f"Unknown environment '{name}'. {suggestion(name)} If another package registers it, write 'package:{name}'."
        ) from cause


def draws_at_any_size(name: str) -> bool:
    """Whether an environment takes `width` and `height`, so that small images need not be scaled down."""
    return is_dm_control(name) or _family(name) == "mujoco"


def _make_task(name: str, kwargs: Mapping[str, Any]) -> Environment:
    if importlib.util.find_spec("dm_control") is None:
        raise MissingDependency(
            f"Environment '{name}' needs dm_control, which is not installed. Install it with: pip install 'rl4sys[dmc]'"
        )
    if name not in task_names():
        raise UnknownEnvironment(f"dm_control has no task '{name}'. {suggestion(name)}")
    try:
        return make_dm_control(name, kwargs)
    except TypeError as cause:
        raise _unsuitable(name, kwargs, cause) from cause


def _unsuitable(name: str, kwargs: Mapping[str, Any], cause: TypeError) -> UnsuitableArguments:
    return UnsuitableArguments(f"Environment '{name}' cannot be made with environment.kwargs {dict(kwargs)}: {cause}.")


def _registered(name: str) -> bool:
    return name.rpartition(":")[2] in gymnasium.registry


def _family(name: str) -> str | None:
    """The part of Gymnasium that an environment comes from, such as box2d; None if from elsewhere."""
    spec = gymnasium.registry.get(name)
    package, _, rest = str(spec.entry_point if spec else "").partition("gymnasium.envs.")
    return rest.partition(".")[0].partition(":")[0] if rest and not package else None


def _extra(name: str) -> str:
    """What to install for one of Gymnasium's own families of environments, such as gymnasium[box2d]."""
    family = _family(name)
    if family == "mujoco":
        return "rl4sys[mujoco]"
    return f"gymnasium[{family.replace('_', '-')}]" if family else "gymnasium[all]"
