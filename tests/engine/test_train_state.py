from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from algorithms.actor_critic import ASYMMETRIC
from algorithms.problems import problem
from rl4sys.engine import Policies, Progress, TrainState
from rl4sys.networks import Network, OptimizerSettings
from rl4sys.policy import Head, ProgramBuilder
from rl4sys.state import StateMismatch

SETTINGS = OptimizerSettings(0.1)


def declared() -> tuple[TrainState, Network, Network]:
    """An actor with a frozen tensor, and two critics with a target."""
    asked = problem(ASYMMETRIC, standardize=True)
    builder = ProgramBuilder(asked.observation)
    mean = builder.linear(asked.actor_body(builder), 2, "actor.action")
    builder.tensor("epsilon", 1)
    program = builder.program()
    state = TrainState(
        asked, Policies.over(ASYMMETRIC, program, Head("deterministic", (mean,)), Head("deterministic", (mean,)))
    )
    actor = state.network("actor", program, [mean], SETTINGS, frozen=("epsilon",))
    critic, value = asked.value_program()
    critics = state.network("critics", critic, [value], SETTINGS, members=2, target=True, squeeze=True)
    return state, actor, critics


def observed(rows: int = 5) -> dict[str, torch.Tensor]:
    return {"observation": torch.randn(rows, 3, generator=torch.Generator().manual_seed(0))}


class Rows(dict[str, torch.Tensor]):
    """Observations as a batch."""

    def __getitem__(self, key: Any) -> Any:
        return (
            Rows({name: array[key] for name, array in self.items()})
            if isinstance(key, slice)
            else super().__getitem__(key)
        )


def test_only_the_minimised_network_is_differentiated_by_its_parameters() -> None:
    _, actor, critics = declared()
    before = critics.optimizer.parameters.gradient.fill_(7.0).clone()
    actor.minimize(lambda rows: (actor(rows).sum(-1) * critics(rows).sum(0)).mean(), Rows(observed()))
    assert torch.equal(critics.optimizer.parameters.gradient, before)
    assert actor.optimizer.parameters.gradient.abs().sum() > 0
    assert not critics(observed()).requires_grad


def test_gradients_pass_through_a_constant_network_to_its_inputs() -> None:
    _, _, critics = declared()
    inputs = {"observation": observed()["observation"].requires_grad_()}
    critics(inputs).sum().backward()
    assert inputs["observation"].grad.abs().sum() > 0
    assert not critics.optimizer.parameters.gradient.any()


def test_a_network_without_a_target_says_so() -> None:
    _, actor, _ = declared()
    with pytest.raises(ValueError, match="declare it with target=True"):
        actor.polyak_update(0.5)


def test_statistics_reach_all_networks_and_are_not_learned() -> None:
    state, _, critics = declared()
    mean, scale = np.full(3, 2.0, np.float32), np.full(3, 0.5, np.float32)
    state.standardize("observation", mean, scale)
    critics.minimize(lambda rows: critics(rows).square().mean(), Rows(observed()))
    for _, parameters in state.parameters():
        assert parameters.views["observation.mean"].tolist() == mean.tolist()
        assert parameters.views["observation.scale"].tolist() == scale.tolist()


def test_schedules_and_annealing_follow_the_progress_of_the_run() -> None:
    state, actor, _ = declared()
    state.schedule("epsilon", lambda progress: 1.0 - progress.fraction)
    annealed = state.scalar("number", 0.0, OptimizerSettings(0.4, anneal_lr=True))
    state.advance(Progress(25, 100))
    assert actor.optimizer.parameters.views["epsilon"].item() == 0.75
    assert (annealed.optimizer.lr, actor.optimizer.lr) == (pytest.approx(0.3), 0.1)


def test_a_saved_state_continues_exactly_noise_included() -> None:
    (state, _, critics), (other, *_) = declared(), declared()
    critics.minimize(lambda rows: critics(rows).square().mean(), Rows(observed()))
    critics.polyak_update(0.5)
    state.normal(3)
    other.restore(state.state())
    assert torch.equal(state.normal(4), other.normal(4))
    for (name, mine), (_, theirs) in zip(state.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine.flat, theirs.flat), name


def test_a_state_of_other_networks_is_refused() -> None:
    state, *_ = declared()
    saved = dict(state.state())
    saved["optimizers"] = {"actor": saved["optimizers"]["actor"]}
    with pytest.raises(StateMismatch, match="critics"):
        state.restore(saved)


def test_two_networks_of_one_name_are_refused() -> None:
    state, *_ = declared()
    with pytest.raises(ValueError, match="Two networks are named 'actor'"):
        state.scalar("actor", 0.0, SETTINGS)


def test_a_layer_can_be_published_as_zeros() -> None:
    state, actor, _ = declared()
    state.zero_layer("actor.action", lambda progress: progress.steps < 10)
    zeros, learned = state.policy_weights(), actor.optimizer.parameters.flat
    assert (zeros != learned.numpy()).sum() == 4 * 2 + 2
    state.advance(Progress(10))
    assert np.array_equal(state.policy_weights(), learned.numpy())


@pytest.mark.parametrize("members", [None, 2])
@pytest.mark.parametrize("fused", [False, True])
def test_a_frozen_layer_is_not_trained(members: int | None, fused: bool) -> None:
    asked = problem(ASYMMETRIC)
    program, value = asked.value_program()
    head = Head("deterministic", (value,))
    state = TrainState(asked, Policies.over(ASYMMETRIC, program, head, head))
    frozen = ("critic.0.weight", "critic.0.bias")
    network = state.network("critic", program, [value], SETTINGS, members=members, frozen=frozen, fused=fused)
    before = {name: view.detach().clone() for name, view in network.optimizer.parameters.views.items()}
    network.minimize(lambda rows: network(rows).square().mean(), Rows(observed()))
    for name, view in network.optimizer.parameters.views.items():
        assert torch.equal(view, before[name]) == (name in frozen), name


def test_names_of_tensors_that_do_not_exist_are_refused() -> None:
    state, *_ = declared()
    with pytest.raises(ValueError, match=r"no tensor 'epsilonn' to schedule; it has .*epsilon"):
        state.schedule("epsilonn", lambda progress: 0.0)
    program, value = problem().value_program()
    with pytest.raises(ValueError, match=r"'other' has no tensors \['epsilon'\] to freeze"):
        state.network("other", program, [value], SETTINGS, frozen=("epsilon",))


def test_published_weights_do_not_change_with_later_steps() -> None:
    state, actor, _ = declared()
    published = state.policy_weights()
    before = published.copy()
    actor.minimize(lambda rows: actor(rows).square().mean(), Rows(observed()))
    assert np.array_equal(published, before)


def test_members_and_targets_are_those_of_the_ensemble() -> None:
    _, _, critics = declared()
    critics.target_parameters.flat.mul_(2.0)
    assert torch.equal(critics.first_member(observed())[0], critics(observed())[0])
    assert not torch.equal(critics.target(observed()), critics(observed()))
    critics.polyak_update(1.0)
    assert torch.equal(critics.target(observed()), critics(observed()))
