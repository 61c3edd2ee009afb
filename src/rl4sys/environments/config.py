"""Environments by name, and how many of them run side by side."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias

import gymnasium
from pydantic import Field, model_validator

from rl4sys.config import Config, Registry
from rl4sys.environments.envpool_backend import envpool_lanes
from rl4sys.environments.exactness import Grade
from rl4sys.environments.grading import probe
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.making import make_gymnasium
from rl4sys.environments.vector import VectorAdapter
from rl4sys.seeding import Seeds

AnyLanes: TypeAlias = Lanes | VectorAdapter


class EnvironmentConfig(Config):
    """What is acted in."""

    name: str = Field(min_length=1)
    """The environment's id, such as `CartPole-v1`; `module:Id-v0` imports the module first."""
    num_envs: int = Field(8, ge=1)
    """How many copies run side by side. More give steadier batches; each takes memory."""
    normalize_obs: bool = False
    """Standardize observations with running statistics that travel with the policy."""
    normalize_reward: bool = False
    """Divide rewards by the running deviation of the discounted return. Reported returns stay as they are."""

    @property
    def acts_every_step(self) -> bool:
        """Whether every lane acts in every step; else some steps of a lane are spent on resets."""
        return True

    @abstractmethod
    def grade(self, seeds: Seeds) -> Grade:
        """How exactly the environment can go on after a restart."""

    @abstractmethod
    def lanes(self, seeds: Seeds, count: int, grade: Grade) -> AnyLanes:
        """`count` environments that step together."""


ENVIRONMENTS: Registry[EnvironmentConfig] = Registry("environment", EnvironmentConfig, key="wrapper", default="gym")
register_environment = ENVIRONMENTS.register


@register_environment("gym")
class GymnasiumConfig(EnvironmentConfig):
    """Any environment registered with Gymnasium."""

    kwargs: dict[str, Any] = {}
    """Arguments for the environment, such as `{continuous: true}` for LunarLander-v3."""
    max_episode_steps: int | None = Field(None, ge=1)
    """Truncate episodes after this many steps, instead of the environment's own limit."""
    backend: Literal["lanes", "vector", "envpool"] = "lanes"
    """`lanes` steps plain environments in a loop and resumes exactly; `vector` uses the environment's own vector
    implementation where Gymnasium has one; `envpool` is fast and needs the extra `rl4sys[envpool]`."""

    @model_validator(mode="after")
    def _suits_its_backend(self) -> Self:
        if self.backend != "lanes" and self.max_episode_steps is not None:
            raise ValueError("max_episode_steps needs backend=lanes; other backends keep the environment's own limit")
        if self.backend == "envpool" and self.kwargs:
            raise ValueError("kwargs need backend=lanes or backend=vector; envpool has arguments of its own")
        return self

    def maker(self) -> Callable[[], gymnasium.Env[Any, Any]]:
        """Makes one environment."""
        kwargs = dict(self.kwargs)
        if self.max_episode_steps is not None:
            kwargs["max_episode_steps"] = self.max_episode_steps
        return lambda: make_gymnasium(self.name, kwargs)

    @property
    def acts_every_step(self) -> bool:
        """Vector backends reset within a step."""
        return self.backend == "lanes"

    def grade(self, seeds: Seeds) -> Grade:
        """Lanes are probed; vector backends keep their state to themselves."""
        return probe(self.maker(), seeds) if self.backend == "lanes" else Grade.E3

    def lanes(self, seeds: Seeds, count: int, grade: Grade) -> AnyLanes:
        """Environments on the chosen backend."""
        if self.backend == "envpool":
            return envpool_lanes(self.name, count, seeds)
        if self.backend == "vector":
            make_gymnasium(self.name, dict(self.kwargs)).close()
            return VectorAdapter(gymnasium.make_vec(self.name, num_envs=count, **self.kwargs), seeds)
        return Lanes(self.maker(), count, seeds, grade)
