"""Wrappers that a config names: those of Gymnasium, and the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
from pydantic import Field, model_validator

from rl4sys.config import Config, ConfigError
from rl4sys.config.plugins import imported_module
from rl4sys.environments.exactness import Environment
from rl4sys.suggestions import did_you_mean

_REFUSED = {
    "Autoreset": "lanes reset by themselves when an episode ends",
    "NormalizeObservation": "its statistics are not saved and do not travel with the policy; set normalize_obs",
    "NormalizeReward": "its statistics are not saved, and returns would be scaled; set normalize_reward",
    "AtariPreprocessing": "use atari/GAME, which preprocesses by itself",
    "RecordVideo": "set training.video_frequency",
}
"""Wrappers of Gymnasium that would do harm here, and why."""


class WrapperConfig(Config):
    """One wrapper of an environment; a name alone will do where it needs no arguments."""

    name: str = Field(min_length=1)
    """A class of `gymnasium.wrappers`, such as `RescaleAction`, or your own as `module:Class`."""
    kwargs: dict[str, Any] = {}
    """Its arguments, such as `{min_action: -1, max_action: 1}`."""

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, values: Any) -> Any:
        return {"name": values} if isinstance(values, str) else values

    def wrap(self, environment: Environment) -> Environment:
        """The environment with this wrapper around it."""
        made = self._factory()
        try:
            wrapped = made(environment, **self.kwargs)
        except (TypeError, ValueError, AssertionError) as error:
            raise ConfigError(f"environment.wrappers: {self.name} cannot wrap with {self.kwargs}: {error}") from error
        if not isinstance(wrapped, gymnasium.Env):
            raise ConfigError(f"environment.wrappers: {self.name} made {type(wrapped).__name__}, not an environment.")
        return wrapped

    def _factory(self) -> Callable[..., Any]:
        module, colon, attribute = self.name.rpartition(":")
        if colon:
            found = getattr(imported_module(module), attribute, None)
            known = f"the module {module} has no class or function '{attribute}'"
        else:
            if self.name in _REFUSED:
                raise ConfigError(f"environment.wrappers: leave out {self.name}: {_REFUSED[self.name]}.")
            found = getattr(gymnasium.wrappers, self.name, None)
            hint = did_you_mean(self.name, gymnasium.wrappers.__all__)
            known = f"Gymnasium has no such wrapper{hint or ''}; write your own as module:Class"
        if not callable(found):
            raise ConfigError(f"environment.wrappers: {self.name}: {known}.")
        factory: Callable[..., Any] = found
        return factory
