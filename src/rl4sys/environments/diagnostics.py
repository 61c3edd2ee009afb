"""Tiny environments with known answers, for tests and for doctoring an algorithm that does not learn.

They are registered with Gymnasium as rl4sys/Identity-v0, rl4sys/Bandit-v0 and so on.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.experience import Array

ActionKind = Literal["discrete", "multi_discrete", "box", "mixed"]
Observed = tuple[Array, float, bool, bool, dict[str, Any]]
_MODULES = {
    "CandidateChoice": "rl4sys.environments.candidate_choice",
    "LoadBalancing": "rl4sys.environments.balancing.environment",
}
"""Where the environments that are not in this file are."""
CHOICES = 2
"""How many choices a multi-discrete action of these environments has."""


class Task:
    """A wanted action of some kind, and how well another one matches it."""

    def __init__(self, kind: ActionKind, n: int) -> None:
        self.kind, self.n = kind, n
        self.action_space: spaces.Space[Any]
        self.observation_space: spaces.Box
        match kind:
            case "discrete":
                self.action_space = spaces.Discrete(n)
                self.observation_space = spaces.Box(0.0, 1.0, (n,), np.float32)
            case "multi_discrete":
                self.action_space = spaces.MultiDiscrete([n] * CHOICES)
                self.observation_space = spaces.Box(0.0, 1.0, (n * CHOICES,), np.float32)
            case "box":
                self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
                self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
            case "mixed":
                number = spaces.Box(-1.0, 1.0, (1,), np.float32)
                self.action_space = spaces.Dict({"choice": spaces.Discrete(n), "number": number})
                self.observation_space = spaces.Box(-1.0, 1.0, (n + 1,), np.float32)
            case _:
                raise ValueError(f"action={kind!r} is none of discrete, multi_discrete, box, mixed.")

    def draw(self, rng: np.random.Generator) -> Array:
        """A wanted action: choices, or a number within ±0.9, so that it lies inside the bounds; or one of both."""
        if self.kind == "mixed":
            return np.array([rng.integers(self.n), rng.uniform(-0.9, 0.9)], np.float32)
        if self.kind == "box":
            return rng.uniform(-0.9, 0.9, 1).astype(np.float32)
        return rng.integers(self.n, size=CHOICES if self.kind == "multi_discrete" else 1)

    def show(self, wanted: Array) -> Array:
        """The wanted action as an observation: one-hot vectors side by side, or the number itself."""
        if self.kind == "mixed":
            return np.append(np.eye(self.n, dtype=np.float32)[int(wanted[0])], wanted[1])
        return wanted if self.kind == "box" else np.eye(self.n, dtype=np.float32)[wanted].ravel()

    def score(self, action: Any, wanted: Array) -> float:
        """1 for the wanted action: the share of choices that match, or 1 minus the distance; or half of each."""
        if self.kind == "mixed":
            distance = abs(float(action["number"][0]) - float(wanted[1]))
            return 0.5 * float(action["choice"] == wanted[0]) + 0.5 * (1.0 - distance)
        action = np.reshape(action, -1)
        return float(1.0 - np.abs(action - wanted).mean() if self.kind == "box" else (action == wanted).mean())


class Identity(gymnasium.Env[Array, Any]):
    """Do what the observation says. The best return is `length`."""

    def __init__(self, action: ActionKind = "discrete", n: int = 3, masked: bool = False, length: int = 8) -> None:
        if masked and action in ("box", "mixed"):
            raise ValueError("masked=True needs discrete choices; choose action='discrete' or 'multi_discrete'.")
        self._task, self._masked, self._length = Task(action, n), masked, length
        self.action_space, self.observation_space = self._task.action_space, self._task.observation_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._next()

    def step(self, action: Any) -> Observed:
        if self._masked and not self._allowed[np.reshape(action, -1) + self._firsts].all():
            raise ValueError(f"Action {action} is forbidden by the action mask {self._allowed}.")
        reward = self._task.score(action, self._wanted)
        self._step += 1
        observation, info = self._next()
        return observation, reward, self._step == self._length, False, info

    def _next(self) -> tuple[Array, dict[str, Any]]:
        self._wanted = self._task.draw(self.np_random)
        observation = self._task.show(self._wanted)
        if not self._masked:
            return observation, {}
        self._firsts = np.arange(len(self._wanted)) * self._task.n
        self._allowed = self.np_random.random(observation.size) < 0.5
        self._allowed[self._wanted + self._firsts] = True
        return observation, {"action_mask": self._allowed.copy()}


class OneStep(gymnasium.Env[Array, Any]):
    """One action, one reward, the end: an observation of ±1 or always 1, and a reward by what is asked for.

    `reward` is "constant" (1), "observation" (what is seen), "action" (1 for the last choice or 0.5, down to
    −1) or "both" (likewise, but after an observation of −1 the first choice or −0.5 is wanted).
    """

    def __init__(
        self,
        reward: Literal["constant", "observation", "action", "both"],
        action: ActionKind = "discrete",
        n: int = 2,
    ) -> None:
        self._reward, self._task = reward, Task(action, n)
        self.action_space = self._task.action_space
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        varies = self._reward in ("observation", "both")
        self._sign = float(self.np_random.choice((-1.0, 1.0))) if varies else 1.0
        return np.array([self._sign], np.float32), {}

    def step(self, action: Any) -> Observed:
        match self._reward:
            case "constant":
                reward = 1.0
            case "observation":
                reward = self._sign
            case "action" | "both":
                reward = 2.0 * self._task.score(action, self._wanted()) - 1.0
        return np.array([self._sign], np.float32), reward, True, False, {}

    def _wanted(self) -> Array:
        number, choice = 0.5 * self._sign, self._task.n - 1 if self._sign > 0 else 0
        if self._task.kind == "mixed":
            return np.array([choice, number])
        return np.array([number if self._task.kind == "box" else choice])


class Countdown(gymnasium.Env[Array, Any]):
    """`horizon` steps whatever one does, then the end, as termination or truncation.

    With "every" step rewarded there is one state, worth 1 / (1 − γ) when truncated. With the "last" one
    rewarded the observation counts the steps, and step t is worth γ^(horizon − 1 − t) when terminated.
    """

    def __init__(
        self,
        horizon: int,
        ending: Literal["terminated", "truncated"],
        rewarded: Literal["every", "last"],
        action: ActionKind = "discrete",
    ) -> None:
        if ending not in ("terminated", "truncated"):
            raise ValueError(f"ending={ending!r} is none of terminated, truncated.")
        self._horizon, self._truncates, self._every = horizon, ending == "truncated", rewarded == "every"
        self.action_space = Task(action, 2).action_space
        self.observation_space = spaces.Box(0.0, float(horizon), (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._see(), {}

    def step(self, action: Any) -> Observed:
        self._step += 1
        ended = self._step == self._horizon
        reward = 1.0 if self._every or ended else 0.0
        return self._see(), reward, ended and not self._truncates, ended and self._truncates, {}

    def _see(self) -> Array:
        return np.array([1.0 if self._every else self._step], np.float32)


class ChainEnv(gymnasium.Env[Array, Any]):
    """Walk left or right on n states in a row: off the right end for 1, or off the left end for `small`.

    Episodes start anywhere, so that every state is seen. A box action walks right when positive.
    """

    def __init__(self, n: int = 5, small: float = 0.1, action: ActionKind = "discrete") -> None:
        if action == "multi_discrete":
            raise ValueError("A chain has one choice, left or right; choose action='discrete' or 'box'.")
        self._n, self._small = n, small
        self._middle = 0.0 if action == "box" else 0.5
        self.action_space = Task(action, 2).action_space
        self.observation_space = spaces.Box(0.0, 1.0, (n,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = int(self.np_random.integers(self._n))
        return self._see(), {}

    def step(self, action: Any) -> Observed:
        state = self._state + (1 if np.reshape(action, -1)[0] > self._middle else -1)
        self._state = min(max(state, 0), self._n - 1)
        reward = 1.0 if state == self._n else self._small if state < 0 else 0.0
        return self._see(), reward, state != self._state, False, {}

    def _see(self) -> Array:
        observation = np.zeros(self._n, np.float32)
        observation[self._state] = 1.0
        return observation


class Recall(gymnasium.Env[Array, Any]):
    """Remember what is shown at the first step only, and do it when asked: a test of memory.

    A wanted action is shown, as in `Identity`, then `shortest` to `longest` blank steps pass, at random, then a flag,
    the last number seen, asks for it. The best return is 1, whatever is done before; without memory 1 / n of choices.
    """

    def __init__(self, action: ActionKind = "discrete", n: int = 2, shortest: int = 6, longest: int = 32) -> None:
        if not 0 <= shortest <= longest:
            raise ValueError(f"shortest={shortest} and longest={longest}: choose 0 ≤ shortest ≤ longest.")
        self._task, self._shortest, self._longest = Task(action, n), shortest, longest
        self.action_space = self._task.action_space
        (size,) = self._task.observation_space.shape
        self.observation_space = spaces.Box(-1.0, 1.0, (size + 1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._wanted = self._task.draw(self.np_random)
        self._blank = int(self.np_random.integers(self._shortest, self._longest + 1))
        return np.append(self._task.show(self._wanted), np.float32(0.0)), {}

    def step(self, action: Any) -> Observed:
        observation = np.zeros(self.observation_space.shape or (), np.float32)
        if self._blank < 0:
            return observation, self._task.score(action, self._wanted), True, False, {}
        observation[-1] = self._blank == 0
        self._blank -= 1
        return observation, 0.0, False, False, {}


def register() -> None:
    """Make these environments known to Gymnasium, as rl4sys/…-v0."""
    two_steps = {"horizon": 2, "ending": "terminated", "rewarded": "last"}
    for name, entry_point, limit, kwargs in (
        ("Identity", "Identity", None, {}),
        ("Bandit", "OneStep", None, {"reward": "action", "n": 3}),
        ("ConstantReward", "OneStep", None, {"reward": "constant"}),
        ("ObservationReward", "OneStep", None, {"reward": "observation"}),
        ("ActionReward", "OneStep", None, {"reward": "action"}),
        ("ObservationActionReward", "OneStep", None, {"reward": "both"}),
        ("TwoStepDiscount", "Countdown", None, two_steps),
        ("Truncation", "Countdown", None, {"horizon": 5, "ending": "truncated", "rewarded": "every"}),
        ("Chain", "ChainEnv", 100, {}),
        ("Recall", "Recall", None, {}),
        ("CandidateChoice", "CandidateChoice", None, {}),
        ("LoadBalancing", "LoadBalancing", None, {}),
    ):
        if f"rl4sys/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"rl4sys/{name}-v0",
                entry_point=f"{_MODULES.get(entry_point, __name__)}:{entry_point}",
                max_episode_steps=limit,
                disable_env_checker=True,
                kwargs=kwargs,
            )
