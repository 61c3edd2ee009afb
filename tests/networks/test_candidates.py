"""Networks over candidates: the same for every row, blind to absent ones, and equal in torch and numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rl4sys.engine import Problem
from rl4sys.experience import Array, ArraySpec
from rl4sys.networks import CandidatesConfig, EnsembleProgram, NetworksConfig, Parameters, UnsuitableNetwork
from rl4sys.networks.program import TorchProgram
from rl4sys.policy import (
    CANDIDATES,
    COUNT,
    MASK,
    ActionSpec,
    BoxAction,
    DiscreteAction,
    NoAllowedAction,
    NumpyPolicy,
    PolicySpec,
    ProgramBuilder,
    candidate_arrays,
)
from rl4sys.policy.policy_spec import HeadKind
from rl4sys.seeding import Seeds

MOST, FEATURES = 6, 3
CONTEXT = ArraySpec("context", "float32", (2,))


def problem(*more: ArraySpec, action: ActionSpec | None = None, standardize: bool = False) -> Problem:
    networks = NetworksConfig(actor=CandidatesConfig(hidden_dims=(8, 4)), critic=CandidatesConfig(hidden_dims=(5,)))
    observation = (*candidate_arrays(MOST, FEATURES), CONTEXT, *more)
    asked = action or DiscreteAction(MOST)
    return Problem(observation, asked, networks, torch.device("cpu"), Seeds(1), standardize)


def policy(kind: HeadKind, *more: ArraySpec) -> PolicySpec:
    asked = problem(*more)
    builder = ProgramBuilder(asked.observation)
    scores = asked.actor_scores(builder)
    tensors = (builder.tensor("epsilon", 1),) if kind == "epsilon_greedy" else ()
    return PolicySpec(asked.action, builder.program(), asked.choosing_head(kind, (scores,), tensors))


def weights(spec: PolicySpec, seed: int = 0) -> Array:
    size = sum(int(np.prod(tensor.shape)) for tensor in spec.program.tensors)
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


def observed(rng: np.random.Generator, counts: list[int]) -> dict[str, Array]:
    """Rows that do not exist hold large numbers, which nothing may read."""
    rows = rng.normal(size=(len(counts), MOST, FEATURES)).astype(np.float32)
    for row, count in zip(rows, counts, strict=True):
        row[count:] = 1e30
    context = rng.normal(size=(len(counts), 2)).astype(np.float32)
    return {CANDIDATES: rows, COUNT: np.array(counts, np.float32)[:, None], "context": context}


def scores_of(spec: PolicySpec, observation: dict[str, Array]) -> Array:
    runtime = NumpyPolicy(spec, weights(spec))
    rows = len(observation[COUNT])
    runtime.act(observation, np.zeros((rows, runtime.noise_size), np.float32))
    (scores,) = runtime._plans[(rows, runtime.noise_size)].scores
    return scores.copy()


@pytest.mark.parametrize("seed", range(20))
def test_permuting_candidates_permutes_scores_and_choice(seed: int) -> None:
    rng, spec = np.random.default_rng(seed), policy("deterministic")
    count = int(rng.integers(1, MOST + 1))
    observation, order = observed(rng, [count]), rng.permutation(count)
    permuted = observation | {CANDIDATES: observation[CANDIDATES].copy()}
    permuted[CANDIDATES][0, :count] = observation[CANDIDATES][0, order]
    before, after = scores_of(spec, observation)[0], scores_of(spec, permuted)[0]
    np.testing.assert_allclose(after[:count], before[order], rtol=1e-5, atol=1e-6)
    assert order[after[:count].argmax()] == before[:count].argmax()


def test_scores_do_not_depend_on_how_many_rows_are_absent() -> None:
    rng, spec = np.random.default_rng(0), policy("deterministic")
    observation = observed(rng, [2])
    more = observation | {CANDIDATES: rng.normal(size=(1, MOST, FEATURES)).astype(np.float32)}
    more[CANDIDATES][0, :2] = observation[CANDIDATES][0, :2]
    np.testing.assert_array_equal(scores_of(spec, observation)[0], scores_of(spec, more)[0])


def test_torch_and_numpy_agree_for_every_number_of_candidates() -> None:
    spec = policy("deterministic")
    observation = observed(np.random.default_rng(0), list(range(1, MOST + 1)))
    parameters = Parameters(spec.program.tensors, torch.device("cpu"))
    with torch.no_grad():
        parameters.flat.copy_(torch.from_numpy(weights(spec)))
    tensors = {name: torch.from_numpy(array) for name, array in observation.items()}
    expected = scores_of(spec, observation)
    for run in (TorchProgram(spec.program, parameters), EnsembleProgram(spec.program, parameters.views)):
        np.testing.assert_allclose(run(tensors)[spec.head.inputs[0]].detach(), expected, rtol=1e-4, atol=1e-5)


def test_a_critic_is_blind_to_order_and_to_absent_rows() -> None:
    program, value = problem().value_program()
    parameters = Parameters(program.tensors, torch.device("cpu"))
    torch.manual_seed(0)
    with torch.no_grad():
        parameters.flat.normal_()
    observation = observed(np.random.default_rng(0), [4])
    permuted = observation | {CANDIDATES: observation[CANDIDATES].copy()}
    permuted[CANDIDATES][0, :4] = observation[CANDIDATES][0, [2, 0, 3, 1]]
    permuted[CANDIDATES][0, 4:] = -5.0
    network = EnsembleProgram(program, parameters.views)
    results = [network({n: torch.from_numpy(a) for n, a in each.items()})[value] for each in (observation, permuted)]
    torch.testing.assert_close(*results)


def test_gradients_of_members_are_those_of_single_networks() -> None:
    program, value = problem().value_program()
    tensors = {n: torch.from_numpy(a) for n, a in observed(np.random.default_rng(0), [1, 6, 0]).items()}
    stacked = Parameters([replace(t, shape=(2, *t.shape)) for t in program.tensors], torch.device("cpu"))
    torch.manual_seed(0)
    with torch.no_grad():
        stacked.flat.normal_()
    EnsembleProgram(program, stacked.views)(tensors)[value].square().sum().backward()  # type: ignore[no-untyped-call]
    for member in range(2):
        own = Parameters(program.tensors, torch.device("cpu"))
        with torch.no_grad():
            for name, view in own.views.items():
                view.copy_(stacked.views[name][member])
        EnsembleProgram(program, own.views)(tensors)[value].square().sum().backward()  # type: ignore[no-untyped-call]
        for name, view in own.views.items():
            torch.testing.assert_close(stacked.views[name].grad[member], view.grad)  # type: ignore[index]


@pytest.mark.parametrize("kind", ["categorical", "epsilon_greedy", "deterministic"])
def test_no_head_chooses_an_absent_or_forbidden_candidate(kind: HeadKind) -> None:
    spec = policy(kind, ArraySpec(MASK, "bool", (MOST,)))
    runtime, rng = NumpyPolicy(spec, weights(spec)), np.random.default_rng(0)
    counts = rng.integers(1, MOST + 1, 500).tolist()
    mask = rng.random((500, MOST)) < 0.5
    mask[:, 0] = True
    noise = rng.random((500, runtime.noise_size)).astype(np.float32)
    chosen = runtime.act(observed(rng, counts) | {MASK: mask}, noise).action
    assert (chosen < np.array(counts)).all()
    assert mask[np.arange(500), chosen].all()


@pytest.mark.parametrize("count", [0.0, -1.0, float("nan")])
def test_a_choice_among_nothing_is_an_error(count: float) -> None:
    spec = policy("categorical")
    observation = observed(np.random.default_rng(0), [1]) | {COUNT: np.array([[count]], np.float32)}
    with pytest.raises(NoAllowedAction, match="no candidates"):
        NumpyPolicy(spec, weights(spec)).act(observation, np.zeros((1, 1), np.float32))


def test_a_decision_is_the_same_for_one_row_and_for_many() -> None:
    spec = policy("categorical")
    runtime, rng = NumpyPolicy(spec, weights(spec)), np.random.default_rng(0)
    observation, noise = observed(rng, [5, 1, 6]), rng.random((3, 1)).astype(np.float32)
    together, finite = runtime.act_on_rows(observation, noise)
    log_prob = together.extras["log_prob"].copy()
    assert finite.all()
    for row in range(3):
        alone = runtime.act_on_row(observation, row, noise[row : row + 1])
        assert (alone.action[0], alone.extras["log_prob"][0]) == (together.action[row], log_prob[row])


def test_candidates_need_their_observations_one_choice_and_no_statistics() -> None:
    with pytest.raises(UnsuitableNetwork, match="expected 'candidates' and their number"):
        replace(problem(), observation=(CONTEXT,)).value_program()
    with pytest.raises(UnsuitableNetwork, match="wants box actions"):
        problem(action=BoxAction((-1.0,), (1.0,))).value_program()
    with pytest.raises(UnsuitableNetwork, match="leave normalize_obs off"):
        problem(standardize=True).value_program()
    with pytest.raises(UnsuitableNetwork, match="up to 6 candidates and 4 choices"):
        problem(action=DiscreteAction(4)).actor_scores(ProgramBuilder(problem().observation))
