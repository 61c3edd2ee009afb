"""Bad segments, floods or crashes of one client do not change a bit of another client's learner."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.test_damaged_requests import learned
from tests.server.clients import PPO, ScriptedClient, eventually, join_request, synthetic_segment

from rl4sys.learning import MAX_SKIPPED_IN_ROW
from rl4sys.records import Durability
from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions, TrainingService
from rl4sys.server.learners.condition import Condition
from rl4sys.wire import encode_segment
from rl4sys.wire.calls import CallFailed

OPTIONS = ServiceOptions("threads", Durability.MEMORY, restart_seconds=0.01)


def expected() -> str:
    with TrainingService(None, OPTIONS) as quiet:
        return learned(quiet)


def neighbour(service: TrainingService, name: str = "bad", **changes: object) -> ScriptedClient:
    return ScriptedClient(InProcessTransport(service), join_request(name, (PPO[0], PPO[1] | changes)))


def condition(service: TrainingService, name: str) -> Condition | None:
    learner = service._learners.find(name)
    return None if learner is None else learner.condition


def test_bad_segments_are_refused_and_affect_only_their_sender() -> None:
    def poison() -> None:
        bad = neighbour(service)
        whole = bad.encoded(0)
        not_a_number = np.float32(np.nan).tobytes()
        kinds = [whole[:-4] + not_a_number, whole[:-3], whole * 2, b"", b"\xff" * 200, bad.encoded(1, version=99)]
        for number, data in enumerate(kinds):
            assert [refusal.sequence for refusal in bad.push_bytes({number: data}).refused] == [number]

    reference = expected()
    with TrainingService(None, OPTIONS) as service:
        assert learned(service, poison) == reference
        assert condition(service, "bad") is Condition.RUNNING


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_that_no_update_survives_end_neither_their_learner_nor_another() -> None:
    def poison() -> None:
        bad = neighbour(service, reward_bounds=None)
        for sequence in range(8 * MAX_SKIPPED_IN_ROW):
            segment = synthetic_segment(bad.spec, "bad", sequence)
            segment.reward[:] = 3e38
            segment.observation["queue"][:] = 3e38
            bad.push_bytes({sequence: encode_segment(bad.form, segment)})
        eventually(lambda: skipped(service, "bad") >= MAX_SKIPPED_IN_ROW)

    reference = expected()
    with TrainingService(None, OPTIONS) as service:
        assert learned(service, poison) == reference
        assert condition(service, "bad") is Condition.RUNNING


def skipped(service: TrainingService, learner: str) -> float:
    (status,) = service.current_status(learner).learners
    return status.metrics["skipped_updates"]


def test_a_flood_is_refused_and_other_clients_are_served() -> None:
    limits = ServiceLimits(inbox_bytes=40_000, client_bytes=20_000, retry_ms=1)
    options = ServiceOptions("threads", Durability.MEMORY, limits, restart_seconds=0.01)
    over = threading.Event()
    turned_away: list[CallFailed] = []

    def flood(client: ScriptedClient) -> None:
        data, sequence = client.encoded(0), 0
        while not over.is_set():
            try:
                client.push_bytes({sequence + n: data for n in range(64)})
            except CallFailed as error:
                turned_away.append(error)
            sequence += 64

    reference = expected()
    with TrainingService(None, options) as service:
        floods = [threading.Thread(target=flood, args=(neighbour(service, f"flood-{n}"),)) for n in range(3)]
        try:
            for thread in floods:
                thread.start()
            assert learned(service) == reference
        finally:
            over.set()
            for thread in floods:
                thread.join(30.0)
    assert {error.code.value for error in turned_away} <= {"RESOURCE_EXHAUSTED", "UNAVAILABLE"}


@pytest.mark.slow
def test_a_killed_worker_does_not_affect_other_learners(tmp_path: Path) -> None:
    def kill() -> None:
        bad = neighbour(service)
        bad.push(range(3))
        learner = service._learners.find("bad")
        assert learner is not None
        process = learner.process
        assert process is not None
        os.kill(process, signal.SIGKILL)
        eventually(lambda: learner.process not in (None, process) and learner.condition is Condition.RUNNING)
        assert bad.push(range(4)).repeated_segments == 3

    reference = expected()
    with TrainingService(tmp_path, ServiceOptions("processes", Durability.OS, restart_seconds=0.05)) as service:
        assert learned(service, kill) == reference


def test_a_client_that_joins_endlessly_does_not_affect_other_learners() -> None:
    def crowd() -> None:
        codes = set()
        for number in range(12):
            try:
                neighbour(service, f"crowd-{number}")
            except CallFailed as error:
                codes.add(error.code.value)
        assert codes == {"RESOURCE_EXHAUSTED"}

    options = ServiceOptions("threads", Durability.MEMORY, ServiceLimits(max_learners=4), restart_seconds=0.01)
    reference = expected()
    with TrainingService(None, options) as service:
        assert learned(service, crowd) == reference
