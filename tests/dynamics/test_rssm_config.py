"""Dynamics models by name, and which algorithm learns which of them."""

from __future__ import annotations

import pytest
from tests.algorithms.problems import BOX, problem

from rl4sys.algorithms import DreamerConfig, PETSConfig, PlaNetConfig
from rl4sys.config import ConfigError, parse
from rl4sys.dynamics import DYNAMICS, RSSMConfig


def test_every_model_has_a_name() -> None:
    assert DYNAMICS.names() == ("deterministic", "ensemble", "gaussian", "rssm")


@pytest.mark.parametrize("dynamics", [{"type": "rssm", "groups": 4, "deter": 64}, {"groups": 4, "deter": 64}])
def test_parts_of_an_rssm_may_have_sizes_of_their_own(dynamics: dict[str, object]) -> None:
    config = parse(DreamerConfig, {"size": "pico", "dynamics": dynamics})
    rssm = config.build(problem(BOX)).model.rssm
    assert (rssm.deter, rssm.groups, rssm.classes) == (64, 4, 8)
    assert config.own_weights(problem(BOX).observation, BOX) < DreamerConfig(size="pico").own_weights(
        problem(BOX).observation, BOX
    )


def test_blocks_of_unequal_size_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"dynamics\.deter: 100 units cannot be divided into 8 equal blocks"):
        parse(PlaNetConfig, {"dynamics": {"type": "rssm", "deter": 100}})


def test_a_misspelt_size_is_named() -> None:
    with pytest.raises(ConfigError, match="unknown key; did you mean 'groups'"):
        parse(PlaNetConfig, {"dynamics": {"group": 4}})


def test_pets_does_not_plan_with_an_rssm() -> None:
    with pytest.raises(ConfigError, match=r"type rssm, and pets plans .* For an rssm use algorithm.name=planet"):
        parse(PETSConfig, {"dynamics": {"type": "rssm"}})


@pytest.mark.parametrize("kind", ["deterministic", "gaussian", "ensemble"])
def test_a_model_of_single_steps_is_no_world_model(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"type {kind}, which predicts single steps; planet learns an rssm"):
        parse(PlaNetConfig, {"dynamics": {"type": kind}})


def test_an_rssm_is_as_large_as_the_algorithm_says() -> None:
    assert PlaNetConfig(size="nano").model_size == PlaNetConfig(size="nano", dynamics=RSSMConfig()).model_size
