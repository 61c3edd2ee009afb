"""The probe that grades how exactly an environment can be resumed, by resuming it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import numpy as np

from rl4sys.environments.episodes import Step
from rl4sys.environments.exactness import Environment, Grade, same, saves_itself
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.spaces import MASK
from rl4sys.experience import Array, Arrays
from rl4sys.policy import COUNT, ActionSpec, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction
from rl4sys.seeding import Seeds
from rl4sys.state import from_text, to_text

EPISODES = 5
"""How often to save. What leaks from an episode into the next shows only after some, and not each time."""


def probe(make: Callable[[], Environment], seeds: Seeds, steps: int = 40) -> Grade:
    """The best grade whose way of resuming is exact here: save, continue, restore, continue again, compare.

    This is done in several episodes with random actions, for `steps` steps before and thrice as many after
    saving. More steps find rarer deviations.
    """
    for grade in (Grade.E0, Grade.E1, Grade.E2):
        if (grade is not Grade.E0 or _saves_itself(make)) and _resumes_exactly(make, seeds, grade, steps):
            return grade
    return Grade.E3


def random_action(action: ActionSpec, observation: Arrays, count: int, rng: np.random.Generator) -> Array:
    """Any allowed action for each of `count` lanes: uniform over choices or within finite bounds."""
    match action:
        case DiscreteAction(n=n):
            return _choices(observation, 0, n, count, rng, observation.get(COUNT))
        case MultiDiscreteAction(sizes=sizes):
            firsts = np.cumsum([0, *sizes])
            groups = [_choices(observation, int(first), n, count, rng) for first, n in zip(firsts, sizes, strict=False)]
            return np.stack(groups, axis=1)
        case BoxAction():
            low, high = np.maximum(action.low, -1e3), np.minimum(action.high, 1e3)
            return rng.uniform(low, high, (count, action.size)).astype(np.float32)
        case MixedAction(sizes=sizes):
            chosen = random_action(MultiDiscreteAction(sizes), observation, count, rng)
            numbers = random_action(action.box, observation, count, rng)
            return np.concatenate([chosen.astype(np.float32), numbers], axis=1)


def _choices(
    observation: Arrays, first: int, n: int, count: int, rng: np.random.Generator, candidates: Array | None = None
) -> Array:
    allowed = observation[MASK][:, first : first + n] if MASK in observation else np.ones((count, n), bool)
    if candidates is not None:
        allowed = allowed & (np.arange(n) < candidates)
    return np.asarray(np.argmax(np.where(allowed, rng.random((count, n)), -1.0), axis=1))


def _saves_itself(make: Callable[[], Environment]) -> bool:
    environment = make()
    try:
        return saves_itself(environment)
    finally:
        environment.close()


def _resumes_exactly(make: Callable[[], Environment], seeds: Seeds, grade: Grade, steps: int) -> bool:
    original, twin = (Lanes(make, 1, seeds, grade) for _ in range(2))
    try:
        for episode in range(EPISODES):
            rng = seeds.generator("probe", episode)
            _play(original, original.reset(), steps, rng)
            if not _same_future(original, twin, 3 * steps, rng):
                return False
        return True
    finally:
        original.close()
        twin.close()


def _same_future(original: Lanes, twin: Lanes, steps: int, rng: np.random.Generator) -> bool:
    try:
        # As it would come back from a file.
        observation = twin.restore(from_text(to_text(original.state())))
    except Exception:  # a foreign `get_state` may fail in any way, or return what no file can hold
        return False
    if twin.inexact:
        return False
    future = _play(original, original.observation, steps, deepcopy(rng))
    return all(map(_same_step, future, _play(twin, observation, steps, rng)))


def _play(lanes: Lanes, observation: Arrays, steps: int, rng: np.random.Generator) -> list[Step]:
    played = []
    for _ in range(steps):
        step = lanes.step(random_action(lanes.spec.action, observation, lanes.count, rng))
        observation = step.observation
        copied = {name: array.copy() for name, array in observation.items()}
        played.append(Step(copied, step.reward.copy(), step.ending.copy(), step.final_observation, None))
    return played


def _same_step(one: Step, other: Step) -> bool:
    return all(map(same, one, other))
