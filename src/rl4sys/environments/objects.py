"""Environments given as Python objects: factories, classes and instances, without a registered id."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium

from rl4sys.config.plugins import imported_module
from rl4sys.environments.exactness import Environment
from rl4sys.environments.names import UnknownEnvironment

PREFIX = "object:"
"""Names of objects that only this process knows."""

_factories: dict[str, Callable[..., Environment]] = {}


def environment_name(environment: object) -> str:
    """The name by which a config refers to an environment: an id, a factory or class, or an instance.

    What a module defines is `module:Name`, which every process can import. Other objects are known to this process
    alone. Of an instance only copies are used, since a run needs more than one environment.
    """
    match environment:
        case str():
            return environment
        case gymnasium.Env():
            return _remembered(type(environment.unwrapped).__name__, _copies_of(environment))
        case _ if callable(environment):
            return _importable(environment) or _remembered(_label(environment), environment)
    raise UnknownEnvironment(
        f"env is {environment!r:.80}; expected the id of an environment, a gymnasium.Env, or a function or class that "
        f"makes one."
    )


def is_object(name: str) -> bool:
    """Whether a name is that of an object or `module:Name`, and not an id that is registered with Gymnasium."""
    _, colon, attribute = name.partition(":")
    return name.startswith(PREFIX) or (bool(colon) and attribute.isidentifier() and attribute not in gymnasium.registry)


def make_object(name: str, kwargs: Mapping[str, Any]) -> Environment:
    """One environment of an object or of `module:Name`."""
    settings = dict(kwargs)
    limit = settings.pop("max_episode_steps", None)
    factory = _known(name) if name.startswith(PREFIX) else _imported(name)
    environment = factory(**settings)
    if not isinstance(environment, gymnasium.Env):
        raise UnknownEnvironment(f"Environment '{name}' made {type(environment).__name__}; expected a gymnasium.Env.")
    return gymnasium.wrappers.TimeLimit(environment, limit) if limit is not None else environment


def _known(name: str) -> Callable[..., Environment]:
    if name not in _factories:
        raise UnknownEnvironment(
            f"Environment '{name}' was an object of the Python program that started the run, and cannot be made in "
            f"another. Define it in a module, and write 'module:Name' as environment.name into the run's config.yaml."
        )
    return _factories[name]


def _imported(name: str) -> Callable[..., Environment]:
    module_name, _, attribute = name.partition(":")
    found = getattr(imported_module(module_name), attribute, None)
    if attribute in gymnasium.registry:
        return partial(gymnasium.make, attribute, disable_env_checker=True)
    if not callable(found):
        raise UnknownEnvironment(
            f"Environment '{name}': the module {module_name} has no class or function '{attribute}', and registers no "
            f"environment of that name."
        )
    made: Callable[..., Environment] = found
    return made


def _importable(factory: Any) -> str | None:
    module, name = str(getattr(factory, "__module__", "")), getattr(factory, "__qualname__", "")
    if module == "__main__" or not name.isidentifier() or getattr(sys.modules.get(module), name, None) is not factory:
        return None
    return f"{module}:{name}"


def _remembered(label: str, factory: Callable[..., Environment]) -> str:
    names = (f"{PREFIX}{label}" if number == 1 else f"{PREFIX}{label}-{number}" for number in range(1, 1_000_000))
    name = next(name for name in names if _factories.get(name, factory) is factory)
    _factories[name] = factory
    return name


def _label(factory: object) -> str:
    name = getattr(factory, "__qualname__", type(factory).__name__).rpartition(".")[2]
    return name if name.isidentifier() else "environment"


def _copies_of(instance: Environment) -> Callable[[], Environment]:
    def copied() -> Environment:
        try:
            return copy.deepcopy(instance)
        except Exception as error:  # whatever an environment holds may refuse to be copied
            kind = type(instance.unwrapped).__name__
            raise UnknownEnvironment(
                f"The environment {kind} cannot be copied ({error}), and a run needs more than one: to act, to grade "
                f"and to evaluate. Give a function that makes it instead: env=lambda: {kind}(…)."
            ) from error

    return copied
