"""A server whose learner sleeps, is woken and forked, in one process, so that a kill ends it at any failpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.server.operators import Operator
from tests.server.workers.test_fold import local_learner

from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.server.learners.condition import Condition

SEGMENTS = 12
SOURCE, FORK = "source", "fork"


def live(place: Path) -> None:
    """Learn, sleep, wake, fork, and learn the same in both."""
    now = [0.0]
    with TrainingService(place / "data", ServiceOptions("threads"), lambda: now[0]) as service:
        transport = InProcessTransport(service)
        _learn(transport, SOURCE, range(4))
        learner = service._learners.find(f"shared~{SOURCE}")
        assert learner is not None
        now[0] = 3_600.0
        service._learners.let_sleep()
        eventually(lambda: learner.condition is Condition.SLEEPING, 30.0)
        _learn(transport, SOURCE, range(4, 8))
        Operator(transport).manage(f"shared~{SOURCE}", "fork", name=f"shared~{FORK}")
        for policy in (SOURCE, FORK):
            _learn(transport, policy, range(8, SEGMENTS))


def recover(place: Path) -> None:
    """After a kill the source is whole, and so is the fork if there is one: both learn the same bits."""
    expected = local_learner(PPO, SEGMENTS).store.newest
    with TrainingService(place / "data", ServiceOptions("threads")) as service:
        assert not service._learners.problems, service._learners.problems
        transport = InProcessTransport(service)
        for policy in [SOURCE] + [FORK] * (service._learners.find(f"shared~{FORK}") is not None):
            client = _learn(transport, policy, range(SEGMENTS))
            learner = service._learners.find(f"shared~{policy}")
            assert learner is not None
            eventually(lambda learner=learner: learner.version == expected.number, 30.0)  # type: ignore[misc]
            np.testing.assert_array_equal(client.weights(), expected.blob)
    assert not list((place / "data" / "deleted").glob("*.new")), "a part of a learner is left behind"


def _learn(transport: InProcessTransport, policy: str, sequences: range) -> ScriptedClient:
    client = ScriptedClient(transport, join_request("a", PPO, policy_id=policy))
    client.push(sequences)
    learner = transport._service._learners.find(f"shared~{policy}")
    assert learner is not None
    eventually(lambda: learner.inbox.unfolded == 0, 30.0)
    return client
