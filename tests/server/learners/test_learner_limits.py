"""Limits of learners: refused before anything is allocated, with the key of the limit in the message."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.clients import ACTION, DQN, OBSERVATION, PPO, SAC, ScriptedClient, eventually, join_request

from rl4sys.policy import DiscreteAction, candidate_arrays
from rl4sys.records import RecordLog
from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions, TrainingService
from rl4sys.server.access.caller import Caller
from rl4sys.server.learners import learner_budget
from rl4sys.server.learners.learner_budget import LearnerBudget
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers import worker_main
from rl4sys.server.workers.events import Event, Refused
from rl4sys.server.workers.learner_config import resolve
from rl4sys.server.workers.learner_limits import LearnerCost, LearnerLimits, Limit, TotalLimits, WorkerOptions
from rl4sys.server.workers.limit_check import learner_cost
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code

Serve = Callable[..., InProcessTransport]


def with_limits(workers: Any = "threads", **limits: Any) -> ServiceOptions:
    return ServiceOptions(workers, limits=ServiceLimits(**limits))


def refusal(transport: InProcessTransport, method: tuple[str, dict[str, Any]], client: str = "a") -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        transport.join(join_request(client, method), 60.0)
    assert failed.value.failure.reason is FailureReason.LIMIT
    return failed.value


def test_giant_networks_are_refused_before_they_are_allocated(serve: Serve) -> None:
    giant = {"hidden_dims": [11_000, 11_000]}
    transport = serve()
    error = refusal(transport, ("PPO", {"network": {"actor": giant, "critic": giant}}))
    assert error.code is Code.FAILED_PRECONDITION
    assert "limits.per_learner.weights" in str(error)
    assert "20,000,000" in str(error)
    assert not transport._service.current_status().learners
    assert list((transport._service._learners.data / "learners").iterdir()) == []


@pytest.mark.parametrize(
    ("key", "most", "method"),
    [
        ("threads", 1, ("PPO", {"threads": 2})),
        ("update_epochs", 5, ("PPO", {"algorithm": {"epochs": 6}})),
        ("update_epochs", 5, ("PPO", {"algorithm": {"critic_epochs": 6}})),
        ("gradient_steps", 5, ("PPO", {"algorithm": {"minibatch_size": 1}})),
        ("gradient_steps", 5, ("DQN", {"algorithm": {"gradient_steps": 6, "train_frequency": 1}})),
        ("checkpoint_steps", 100, ("PPO", {"checkpoint_frequency": 99})),
        ("replay_bytes", 1_000_000, ("DQN", {"buffer": {"size": 100_000}})),
        ("memory_bytes", 1_000_000, ("DQN", {"buffer": {"size": 100_000}})),
        ("weights", 10_000, ("SAC", {"algorithm": {"ensemble": 100}})),
        ("weights", 10_000, ("PETS", {"algorithm": {"dynamics": {"size": 100}}})),
    ],
)
def test_each_limit_is_named_with_its_key(
    serve: Serve, key: str, most: float, method: tuple[str, dict[str, Any]]
) -> None:
    transport = serve(with_limits(per_learner=LearnerLimits(**{key: most})))  # type: ignore[arg-type]
    assert f"limits.per_learner.{key}" in str(refusal(transport, method))


def test_a_learner_that_exists_is_kept_when_a_limit_is_lowered(serve: Serve) -> None:
    ScriptedClient(serve(), join_request("a")).push(range(4))
    transport = serve(with_limits(per_learner=LearnerLimits(weights=10)))
    assert ScriptedClient(transport, join_request("a")).push([4]).acknowledged


def test_a_limit_that_is_reloaded_holds_for_the_next_learner(serve: Serve) -> None:
    transport = serve()
    ScriptedClient(transport, join_request("a"))
    transport._service._learners.use(with_limits(per_learner=LearnerLimits(weights=10)))
    assert "limits.per_learner.weights" in str(refusal(transport, PPO, "b"))


def test_the_weights_of_all_learners_together_are_limited(serve: Serve) -> None:
    one = learner_cost(resolve(*PPO), LearnerSetup("a", *PPO, OBSERVATION, ACTION, 100)).weights
    transport = serve(with_limits(total=TotalLimits(weights=2 * one)))
    for name in "ab":
        ScriptedClient(transport, join_request(name))
    assert "the rest of limits.total.weights" in str(refusal(transport, PPO, "c"))


def test_the_replay_of_one_token_is_limited_apart_from_others(tmp_path: Path) -> None:
    one = learner_cost(resolve(*DQN), LearnerSetup("a", *DQN, OBSERVATION, ACTION, 100)).replay_bytes
    with TrainingService(tmp_path, with_limits(per_token=TotalLimits(replay_bytes=one))) as service:
        mine, yours = (InProcessTransport(service, Caller(token=token)) for token in ("1", "2"))
        ScriptedClient(mine, join_request("a", DQN))
        assert "limits.per_token.replay_bytes" in str(refusal(mine, DQN, "b"))
        ScriptedClient(yours, join_request("c", DQN))


def test_networks_over_candidates_cost_the_weights_that_all_rows_share() -> None:
    shared = {"type": "candidates", "hidden_dims": [8], "pooled_dims": [4]}
    method = "PPO", {"network": {"actor": shared, "critic": shared}}
    setup = LearnerSetup("a", *method, candidate_arrays(16, 6), DiscreteAction(16), 100)
    per_row, pooled = 6 * 8 + 8, (2 * 8 + 1) * 4 + 4
    # The last layer of a critic is counted with an output for each choice, as for every network.
    assert learner_cost(resolve(*method), setup).weights == per_row + (8 + 1) + per_row + pooled + 5 * 16


def test_what_a_learner_takes_is_computed_from_its_config() -> None:
    setup = LearnerSetup("a", *SAC, OBSERVATION, ACTION, 100)
    cost = learner_cost(resolve(*SAC), setup)
    # Three observations and one value for each of two actions; 8 hidden units; an actor and two critics.
    assert cost.weights == 3 * (3 * 8 + 8 + 8 * 2 + 2)
    assert cost.replay_bytes > 200 * 2 * 3 * 4


def test_without_free_file_descriptors_no_learner_is_made(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = serve()
    used = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(resource, "getrlimit", lambda which: (used + 70, 1 << 20))
    error = refusal(transport, PPO)
    assert error.code is Code.RESOURCE_EXHAUSTED
    assert "LimitNOFILE" in str(error)
    assert list((transport._service._learners.data / "learners").iterdir()) == []


def test_memory_of_running_workers_counts_before_another_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_budget, "_memory", lambda process: 600)
    budget = LearnerBudget(with_limits(total=TotalLimits(memory_bytes=1_000)))
    budget.require_room("", [("", 1)], 0)
    with pytest.raises(CallFailed, match=r"1,200 bytes of memory; limits\.total\.memory_bytes"):
        budget.require_room("", [("", 1), ("", 2)], 0)


def test_a_removed_learner_no_longer_counts() -> None:
    budget = LearnerBudget(with_limits(total=TotalLimits(weights=100)))
    setups = [LearnerSetup(name, *PPO, OBSERVATION, ACTION, 100) for name in "ab"]
    budget.note(setups[0], LearnerCost(weights=70))
    assert budget.worker_options(setups[1]).limits["weights"].most == 30
    budget.forget("a")
    assert budget.worker_options(setups[1]).limits["weights"].most == 100


def test_worker_options_survive_the_way_to_another_process() -> None:
    options = WorkerOptions(("p.py",), {"weights": Limit(1.0, "k")}, Limit(2.0, "m"))
    assert WorkerOptions.from_json(options.to_json()) == options
    assert WorkerOptions.from_json(WorkerOptions().to_json()) == WorkerOptions()


def test_a_new_learner_for_which_memory_runs_out_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LearnerSetup("a", *PPO, OBSERVATION, ACTION, 100).write(tmp_path)
    RecordLog(tmp_path / "log").close()

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError("out of it")

    monkeypatch.setattr(worker_main, "Fold", no_memory)
    events: list[Event] = []
    options = WorkerOptions(memory=Limit(1_000.0, "limits.per_learner.memory_bytes"))
    worker_main.work(tmp_path, None, worker_main.WorkerControl(), events.append, options)
    refused = events[-1]
    assert isinstance(refused, Refused)
    assert refused.is_limit
    assert "1,000 bytes by limits.per_learner.memory_bytes" in refused.problem


@pytest.mark.slow
def test_a_worker_process_that_exceeds_its_memory_names_the_limit(tmp_path: Path) -> None:
    limits = LearnerLimits(memory_bytes=200_000_000)
    hungry = {"algorithm": {"learning_starts": 1, "batch_size": 50_000_000}, "buffer": {"size": 1_000}}
    with TrainingService(tmp_path, with_limits("processes", per_learner=limits)) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a", ("DQN", hungry)))
        client.push([0])
        eventually(lambda: "limits.per_learner.memory_bytes" in service.current_status().learners[0].problem)


@pytest.mark.slow
def test_a_learner_opens_no_more_files_than_are_reserved_for_it(serve: Serve) -> None:
    transport = serve(ServiceOptions("processes"))
    ScriptedClient(transport, join_request("a")).push(range(4))
    before = len(os.listdir("/proc/self/fd"))
    for name in "bcd":
        ScriptedClient(transport, join_request(name)).push(range(4))
    assert len(os.listdir("/proc/self/fd")) - before <= 3 * learner_budget.DESCRIPTORS
