"""Tasks of the DeepMind Control Suite as Gymnasium environments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import HumanRendering, TimeLimit

from rl4sys.environments.exactness import Environment
from rl4sys.environments.mujoco_camera import MujocoCamera
from rl4sys.environments.mujoco_setup import choose_renderer, hear_warnings, import_drawing
from rl4sys.environments.mujoco_state import MujocoState, model_digests
from rl4sys.experience import Array
from rl4sys.state import State, require

UNIVERSE = "dm_control"
"""How the names of these tasks begin: dm_control/cheetah/run."""
SIDE = 480
"""Width and height of images in pixels, unless given."""


def task_names() -> list[str]:
    """All tasks of the suite, as dm_control/domain/task."""
    return [f"{UNIVERSE}/{domain}/{task}" for domain, task in load_suite().ALL_TASKS]


def make_dm_control(name: str, kwargs: Mapping[str, Any]) -> Environment:
    """The task of a name, within its time limit.

    As with Gymnasium, `max_episode_steps`, `render_mode`, `width`, `height`, `camera_id` and `camera_name` are
    understood; every other argument goes to the task.
    """
    arguments = dict(kwargs)
    limit = arguments.pop("max_episode_steps", None)
    width, height = arguments.pop("width", SIDE), arguments.pop("height", SIDE)
    camera = arguments.pop("camera_name", arguments.pop("camera_id", None))
    mode = arguments.pop("render_mode", None)
    _, domain, kind = name.split("/")
    # Some tasks draw their model when they are loaded (lqr): it is the same one every time.
    loaded = load_suite().load(domain, kind, task_kwargs={"random": 0, **arguments})
    model = loaded.physics.model.ptr
    task = DmControl(loaded, None if mode is None else MujocoCamera(model, (height, width), camera))
    steps = limit or task.own_limit
    environment: Environment = task if steps is None else TimeLimit(task, steps)
    return HumanRendering(environment) if mode == "human" else environment


class DmControl(gymnasium.Env[Any, Array]):
    """One task. Its observation is a dict of vectors; it terminates only where the discount becomes 0.

    All chance comes from `np_random`: each episode's random state is seeded from it.
    """

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, environment: Any, camera: MujocoCamera | None = None) -> None:
        self._environment, self._camera = environment, camera
        self.render_mode = None if camera is None else "rgb_array"
        self.metadata = {**self.metadata, "render_fps": max(1, round(1.0 / environment.control_timestep()))}
        self._loaded = model_digests(environment.physics.model.ptr)
        bounds = environment.action_spec()
        # Numbers this large stand for no bounds at all.
        edges = (np.broadcast_to(edge, bounds.shape) for edge in (bounds.minimum, bounds.maximum))
        low, high = (np.where(np.abs(edge) < 1e9, edge, np.copysign(np.inf, edge)) for edge in edges)
        self.action_space = spaces.Box(low, high, bounds.shape, np.float64)
        self.observation_space = spaces.Dict(
            {
                name: spaces.Box(-np.inf, np.inf, part.shape or (1,), np.float64)
                for name, part in environment.observation_spec().items()
            }
        )
        limit = environment._step_limit
        self.own_limit = math.ceil(limit) if math.isfinite(limit) else None
        """The time limit of the task in steps, if it has one."""
        # The time limit is a wrapper's, as for all environments: it can be changed, and is saved.
        environment._step_limit = math.inf

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._chance.seed(int(self.np_random.integers(2**32)))
        return _shown(self._environment.reset()), {}

    def step(self, action: Array) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time_step = self._environment.step(action)
        terminated = time_step.last() and time_step.discount == 0.0
        return _shown(time_step), float(time_step.reward), terminated, time_step.last() and not terminated, {}

    def render(self) -> Any:
        return None if self._camera is None else self._camera.image(self._environment.physics.data.ptr)

    def close(self) -> None:
        if self._camera is not None:
            self._camera.close()
        self._environment.close()

    def get_state(self) -> State:
        """The simulation, and the random state of the task."""
        return {"simulation": self._simulation().get_state(), "chance": self._chance.get_state(legacy=False)}

    def set_state(self, state: State) -> None:
        """Continue from what `get_state` returned."""
        require(state, "simulation", "chance")
        self._simulation().set_state(state["simulation"])
        self._chance.set_state(state["chance"])

    @property
    def _chance(self) -> np.random.RandomState:
        chance: np.random.RandomState = self._environment.task.random
        return chance

    def _simulation(self) -> MujocoState:
        physics = self._environment.physics
        return MujocoState(physics.model.ptr, physics.data.ptr, self._loaded)


def _shown(time_step: Any) -> dict[str, Array]:
    return {name: np.atleast_1d(part) for name, part in time_step.observation.items()}


def load_suite() -> Any:
    """The package of all tasks, imported where it can draw if anything can."""
    # The suite decides how to draw when it is imported; whether anything is drawn shows later.
    choose_renderer()
    suite = import_drawing("dm_control.suite")
    hear_warnings()
    return suite
