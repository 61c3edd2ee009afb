"""Defaults for arrays that an observation leaves out, and for features that are NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.client.agents import agent_on, seen
from tests.client.fake_server import FakeServer

from rl4sys.client import BadObservation, SettingsError, load_settings
from rl4sys.client.observation_reader import ObservationReader
from rl4sys.experience import Array, ArraySpec

QUEUE = {"queue": {"shape": 3, "default": [1.0, None, 3.0]}, "load": {"shape": [], "default": 0.5}}
NAN = float("nan")


def read(observation: Any, settings: Any = QUEUE) -> dict[str, list[float]]:
    """What a reader with the defaults of these settings makes of an observation."""
    parsed = load_settings({"client_id": "test", "observation": settings})
    reader = ObservationReader(parsed.observation, parsed.defaults)
    columns: dict[str, Array] = {s.name: np.zeros((1, *s.shape), s.dtype) for s in parsed.observation}
    reader.write(columns, 0, observation, None)
    return {name: column[0].tolist() for name, column in columns.items()}


@pytest.mark.parametrize("given", [{"queue": [4, 5, 6]}, {"queue": [4, 5, 6], "load": None}])
def test_a_default_stands_for_an_array_that_is_left_out(given: Any) -> None:
    assert read(given) == {"queue": [4, 5, 6], "load": 0.5}


def test_a_default_stands_for_a_feature_that_is_nan() -> None:
    assert read({"queue": [NAN, 5, NAN], "load": NAN}) == {"queue": [1, 5, 3], "load": 0.5}


@pytest.mark.parametrize("queue", [[1, NAN, 1], [1, float("inf"), 1], None])
def test_a_feature_without_a_default_stays_bad(queue: Any) -> None:
    with pytest.raises(BadObservation, match="'queue' contains NaN or infinity"):
        read({"queue": queue, "load": 1.0})


def test_an_observation_without_names_can_have_defaults() -> None:
    assert read(np.array([NAN, 2], np.float32), {"shape": 2, "default": 9})["observation"] == [9, 2]


def test_defaulted_observations_are_counted_and_recorded_and_are_not_bad() -> None:
    server = FakeServer()
    with agent_on(server, defaults={"observation": 9.0}) as agent, agent.episode() as episode:
        episode.act(seen(0))
        episode.act(np.full(8, NAN, np.float32))
        episode.end(seen(2))
        health = agent.health()
    assert (health.defaulted_inputs, health.bad_inputs, health.unrecorded_decisions) == (1, 0, 0)
    assert server.segments()[0].observation["observation"][:, 0].tolist() == [0, 9, 2]


def test_original_configs_may_name_defaults() -> None:
    original = {"algorithm_name": "PPO", "input_size": 2, "act_dim": 2, "defaults": {"observation": [0.0, 1.0]}}
    settings = load_settings(original)
    assert settings.defaults == {"observation": [0.0, 1.0]}
    assert settings.observation == (ArraySpec("observation", "float32", (2,)),)


@pytest.mark.parametrize("default", ["a", [1, 2], float("inf"), [1.0, float("inf"), 1.0]])
def test_a_default_of_the_wrong_kind_is_refused(default: Any) -> None:
    with pytest.raises(SettingsError, match=r"defaults.queue: got .*with null for features without a default"):
        load_settings({"client_id": "test", "observation": {"queue": {"shape": 3, "default": default}}})


def test_two_defaults_for_one_array_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"defaults.queue: .* Keep one"):
        load_settings({"client_id": "test", "observation": QUEUE, "defaults": {"queue": 0}})
