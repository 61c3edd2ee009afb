"""The status of a server of several processes."""

from __future__ import annotations

from rl4sys.operations.server_processes import merged
from rl4sys.wire.generated import status_pb2


def status(learner: str, **server: object) -> status_pb2.StatusReply:
    return status_pb2.StatusReply(
        server=status_pb2.ServerStatus(**server),  # type: ignore[arg-type]
        learners=[status_pb2.LearnerStatus(learner=learner)],
    )


def test_one_status_has_the_learners_and_sums_of_all_processes() -> None:
    first = status("a", memory_bytes=1, connected_clients=2, disk_free_bytes=9, uptime_seconds=5.0)
    second = status("b", memory_bytes=10, connected_clients=3, disk_free_bytes=9, uptime_seconds=4.0)
    whole = merged([first, second])
    assert [learner.learner for learner in whole.learners] == ["a", "b"]
    found = whole.server
    assert (found.memory_bytes, found.connected_clients, found.disk_free_bytes) == (11, 5, 9)
    assert found.uptime_seconds == 4.0


def test_the_worst_state_and_every_warning_are_shown_once() -> None:
    first = status("a", state=status_pb2.SERVER_STATE_SERVING, warnings=["the certificate expires"])
    failed = status_pb2.SERVER_STATE_STORAGE_FAILED
    second = status("b", state=failed, problem="the disk is full", warnings=["the certificate expires"])
    found = merged([first, second]).server
    assert (found.state, found.problem, list(found.warnings)) == (
        failed,
        "the disk is full",
        ["the certificate expires"],
    )
