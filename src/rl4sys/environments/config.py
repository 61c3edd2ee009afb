"""The configs of environments: which one, its wrappers, and how many run side by side."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

import gymnasium
from gymnasium.spaces import Dict
from gymnasium.vector import AsyncVectorEnv
from gymnasium.wrappers import FlattenObservation
from pydantic import Field, field_validator, model_validator

from rl4sys.config import Config, Registry
from rl4sys.environments.configured_wrappers import WrapperConfig
from rl4sys.environments.exactness import Grade
from rl4sys.environments.grading import probe
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.making import UnsuitableArguments, draws_at_any_size, make_environment
from rl4sys.environments.names import canonical_name, is_atari, is_dm_control, usual_wrapper
from rl4sys.environments.objects import PREFIX, is_object
from rl4sys.environments.vector import VectorAdapter, envpool_lanes
from rl4sys.environments.wrappers import PIXELS, ChosenNumbers, FrameSkip, PixelObservation, PixelStack, VectorStack
from rl4sys.seeding import Seeds

AnyLanes: TypeAlias = Lanes | VectorAdapter


class EnvironmentConfig(Config):
    """Settings of an environment."""

    name: str = Field(min_length=1)
    """The environment's id, such as `CartPole-v1`, or universe, domain and task: `gym/HalfCheetah/v5`,
    `dm_control/cheetah/run`, `atari/Pong`. `module:Id-v0` imports the module first; `module:Class` needs no id."""
    num_envs: int = Field(8, ge=1)
    """How many copies run side by side. More give steadier batches; each takes memory."""
    normalize_obs: bool = False
    """Standardize observations with running statistics that travel with the policy."""
    normalize_reward: bool = False
    """Divide rewards by the running deviation of the discounted return. Reported returns stay as they are."""
    incumbent: str | None = Field(None, min_length=1)
    """`module:function`, which takes an observation (a dict of arrays where there are several, or a mask) and returns
    the environment's action. It decides until there are enough decisions for `algorithm.imitate`."""

    @property
    def acts_every_step(self) -> bool:
        """Whether every lane acts in every step; else some steps of a lane are spent on resets."""
        return True

    @property
    def frames(self) -> Mapping[str, int]:
        """Observation arrays that show several frames along their last axis, the newest last, and how many."""
        return {}

    def for_evaluation(self) -> EnvironmentConfig:
        """The environment in which policies are evaluated, where learning sees another one."""
        return self

    @abstractmethod
    def grade(self, seeds: Seeds) -> Grade:
        """How exactly the environment can resume after a restart."""

    @abstractmethod
    def lanes(self, seeds: Seeds, count: int, grade: Grade) -> AnyLanes:
        """`count` environments that step together."""


ENVIRONMENTS: Registry[EnvironmentConfig] = Registry(
    "environment", EnvironmentConfig, key="wrapper", default="gym", choose=usual_wrapper
)
register_environment = ENVIRONMENTS.register


class PixelsConfig(Config):
    """Images as observations."""

    size: int = Field(84, ge=8, le=1024)
    """Height and width in pixels. Larger images show more, and each step and each stored step cost size² as much."""
    camera: int | str | None = None
    """Which camera of a MuJoCo model looks, by number or name; the environment's usual one if not given."""
    keep_state: bool = False
    """Show the environment's own observation beside the array `pixels`, instead of the images alone."""
    stack: int = Field(1, ge=1, le=64)
    """Stack the newest images, this many along the channels, so that a policy without memory sees motion.
    Replay stores each image once; on-policy buffers take this many times the memory."""


@register_environment("gym")
class GymnasiumConfig(EnvironmentConfig):
    """Any environment registered with Gymnasium, and any task of the DeepMind Control Suite."""

    kwargs: dict[str, Any] = {}
    """Arguments for the environment, such as `{continuous: true}` for LunarLander-v3."""
    max_episode_steps: int | None = Field(None, ge=1)
    """Truncate episodes after this many of the environment's steps, instead of its own time limit."""
    frame_skip: int = Field(1, ge=1)
    """Repeat each action this often and add up the rewards. More makes decisions rarer and cheaper, and coarser."""
    flatten_obs: bool = False
    """Show a dict observation as one vector named `observation`. Networks see the same numbers either way."""
    observe: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(None, min_length=1)
    """Show only these numbers of a vector observation, counted from 0: `[0, 2]` hides the velocities of CartPole-v1,
    so that a policy needs memory."""
    pixels: PixelsConfig | None = None
    """Observe images, such as `{size: 84}`: an array `pixels`, uint8 [size, size, 3 · stack]. Drawing costs time."""
    frame_stack: int = Field(1, ge=1, le=64)
    """Show the newest vectors side by side, this many, so that a policy without memory sees motion. For images, use
    `pixels.stack`."""
    wrappers: tuple[WrapperConfig, ...] = ()
    """Wrappers around all of the above, the first one innermost: names of `gymnasium.wrappers` or your own as
    `module:Class`, with arguments as in `{name: RescaleAction, kwargs: {min_action: -1, max_action: 1}}`."""
    evaluation: dict[str, Any] = {}
    """Settings of this section that are different in evaluations, such as `{kwargs: {difficulty: hard}}`, which keeps
    the other arguments, or another `name` with arguments of its own. Observations and actions must stay the same."""
    backend: Literal["lanes", "vector", "async", "envpool"] = "lanes"
    """`lanes` steps plain environments in a loop and resumes exactly; `vector` uses the environment's own vector
    implementation where Gymnasium has one; `async` steps each environment in a process of its own, which pays for slow
    ones; `envpool` is fast and needs the extra `rl4sys[envpool]`."""

    @field_validator("name")
    @classmethod
    def _one_spelling(cls, name: str) -> str:
        if is_atari(name):
            raise ValueError(f"'{name}' is an Atari game; set environment.wrapper to atari, or leave it out")
        return canonical_name(name)

    @model_validator(mode="after")
    def _suits_its_backend(self) -> Self:
        if self.evaluation:
            self.for_evaluation()
        if self.backend == "async" and self.name.startswith(PREFIX):
            raise ValueError("an environment that only this process knows needs backend=lanes")
        if self.backend in ("vector", "envpool"):
            if self.max_episode_steps is not None:
                raise ValueError(
                    "max_episode_steps needs backend=lanes; other backends keep the environment's own limit"
                )
            if self.frame_skip > 1 or self.frame_stack > 1 or self.flatten_obs or self.observe or self.wrappers:
                raise ValueError(
                    "frame_skip, frame_stack, flatten_obs, observe and wrappers need backend=lanes or backend=async; "
                    "other backends wrap nothing"
                )
            if self.pixels is not None:
                raise ValueError("pixels need backend=lanes or backend=async; other backends wrap nothing")
            if is_object(self.name):
                raise ValueError("an environment without a registered id needs backend=lanes or backend=async")
            if is_dm_control(self.name):
                raise ValueError("tasks of dm_control need backend=lanes; other backends do not know them")
        if self.backend == "envpool" and self.kwargs:
            raise ValueError("kwargs need backend=lanes or backend=vector; envpool has arguments of its own")
        if self.flatten_obs and self.pixels is not None:
            raise ValueError("flatten_obs would mix images and numbers; leave it out with pixels")
        if self.frame_stack > 1 and self.pixels is not None:
            raise ValueError("frame_stack stacks vectors; use pixels.stack for images")
        if self.observe is not None and self.pixels is not None:
            raise ValueError("observe chooses among the numbers of a vector; leave it out with pixels")
        return self

    def maker(self) -> Callable[[], gymnasium.Env[Any, Any]]:
        """Makes one environment."""
        kwargs = dict(self.kwargs)
        if self.max_episode_steps is not None:
            kwargs["max_episode_steps"] = self.max_episode_steps
        if self.pixels is not None:
            kwargs = {**_camera_arguments(self.name, self.pixels), **kwargs, "render_mode": "rgb_array"}
        return lambda: self._wrapped(self._made(kwargs))

    def for_evaluation(self) -> GymnasiumConfig:
        """The same with the settings of `evaluation`; arguments that it does not name stay as they are."""
        if not self.evaluation:
            return self
        same = self.model_dump(mode="json", exclude={"evaluation"})
        changed = dict(self.evaluation)
        if "name" not in changed and isinstance(changed.get("kwargs"), Mapping):
            changed["kwargs"] = {**self.kwargs, **changed["kwargs"]}
        return GymnasiumConfig.model_validate({**same, **changed})

    @property
    def acts_every_step(self) -> bool:
        """Vector backends reset within a step."""
        return self.backend == "lanes"

    @property
    def frames(self) -> Mapping[str, int]:
        """Images, if they are stacked."""
        return {PIXELS: self.pixels.stack} if self.pixels is not None and self.pixels.stack > 1 else {}

    def grade(self, seeds: Seeds) -> Grade:
        """Lanes are probed; vector backends keep their state to themselves."""
        return probe(self.maker(), seeds) if self.backend == "lanes" else Grade.E3

    def lanes(self, seeds: Seeds, count: int, grade: Grade) -> AnyLanes:
        """Environments on the chosen backend."""
        if self.backend == "envpool":
            return envpool_lanes(self.name, count, seeds)
        if self.backend == "async":
            # Not forked: torch and its threads may be in this process.
            return VectorAdapter(AsyncVectorEnv([self.maker()] * count, context="spawn"), seeds)
        if self.backend == "vector":
            make_environment(self.name, dict(self.kwargs)).close()
            return VectorAdapter(gymnasium.make_vec(self.name, num_envs=count, **self.kwargs), seeds)
        return Lanes(self.maker(), count, seeds, grade)

    def _made(self, kwargs: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
        try:
            return make_environment(self.name, kwargs)
        except UnsuitableArguments as cause:
            if self.pixels is None:
                raise
            raise UnsuitableArguments(
                f"{cause} environment.pixels needs an environment that draws itself, and its camera one of MuJoCo; "
                f"leave out what is not offered."
            ) from cause

    def _wrapped(self, environment: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        if self.frame_skip > 1:
            environment = FrameSkip(environment, self.frame_skip)
        if self.pixels is not None:
            environment = PixelObservation(environment, self.pixels.size, keep_state=self.pixels.keep_state)
            if self.pixels.stack > 1:
                environment = PixelStack(environment, self.pixels.stack)
        if self.flatten_obs and isinstance(environment.observation_space, Dict):
            environment = FlattenObservation(environment)
        if self.observe is not None:
            environment = ChosenNumbers(environment, self.observe)
        if self.frame_stack > 1:
            environment = VectorStack(environment, self.frame_stack)
        for wrapper in self.wrappers:
            environment = wrapper.wrap(environment)
        return environment


def _camera_arguments(name: str, pixels: PixelsConfig) -> dict[str, Any]:
    size = {"width": pixels.size, "height": pixels.size} if draws_at_any_size(name) else {}
    if pixels.camera is None:
        return size
    return size | {"camera_name" if isinstance(pixels.camera, str) else "camera_id": pixels.camera}
