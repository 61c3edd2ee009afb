"""A server whose learner an operator resets, in one process, so that a kill ends it at any failpoint."""

from __future__ import annotations

from pathlib import Path

from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.server.operators import Operator

from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.server.learners.lineage import Lineage

SEGMENTS = 4


def live(place: Path) -> None:
    """Learn, reset the learner, learn again."""
    with TrainingService(place / "data", ServiceOptions(workers="threads")) as service:
        transport = InProcessTransport(service)
        _learn(transport)
        (place / "first").write_text(Lineage.read(place / "data" / "learners" / "a").id)
        Operator(transport).manage("a", "reset")
        _learn(transport)


def recover(place: Path) -> None:
    """After a kill there is one whole learner: the first one, or one whose lineage replaces that of the first."""
    with TrainingService(place / "data", ServiceOptions(workers="threads")) as service:
        transport = InProcessTransport(service)
        _learn(transport)
        assert not service._learners.problems, service._learners.problems
    first = place / "first"
    lineage = Lineage.read(place / "data" / "learners" / "a")
    assert not first.exists() or lineage.continues(first.read_text()), "clients would keep the old policy"
    assert not list((place / "data" / "deleted").glob("*.new")), "a part of a learner is left behind"


def _learn(transport: InProcessTransport) -> None:
    client = ScriptedClient(transport, join_request("a", PPO))
    client.push(range(SEGMENTS))
    eventually(lambda: transport._service._learners.find("a").inbox.unfolded == 0, 30.0)
