from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
from tests.client.agents import SETTINGS, agent_on, seen, steps
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.waiting import until

from rl4sys.client import (
    Agent,
    ConnectError,
    Ending,
    ForkedAgent,
    connect,
    exit_hook,
    publish_in_process,
    withdraw_in_process,
)
from rl4sys.wire import Failure, FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2, weights_pb2


@contextmanager
def hanging(server: FakeServer, *calls: str) -> Iterator[None]:
    """Calls with these names hang while this context is active."""
    healed = threading.Event()
    server.before = lambda call: healed.wait(30) if call in calls else None  # type: ignore[func-returns-value]
    try:
        yield
    finally:
        server.before = lambda call: None
        healed.set()


def failing(code: Code, failure: Failure | None = None, *calls: str) -> Callable[[str], None]:
    def fail(call: str) -> None:
        if not calls or call in calls:
            raise CallFailed(code, f"{code} for the test", failure)

    return fail


def test_acting_never_waits_for_a_server_that_hangs() -> None:
    server = FakeServer()
    with agent_on(server, max_segment_length=8) as agent:
        with hanging(server, "push", "news", "pull", "join"):
            begin = monotonic()
            with agent.episode() as episode:
                steps(episode, 2_000)
                episode.end(seen(0))
            assert monotonic() - begin < 5.0
            assert agent.health().acknowledged == 0
        assert agent.flush()
    assert sum(s.steps for s in server.segments()) == 2_000


def test_acting_continues_during_an_outage_and_everything_arrives_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = FakeServer()
    tried: list[str] = []

    def away(call: str) -> None:
        tried.append(call)
        raise CallFailed(Code.UNAVAILABLE, "away")

    with agent_on(server, max_segment_length=8) as agent, agent.episode() as episode:
        server.before = away
        server.publish(some_weights(server.spec, 1))
        steps(episode, 100)
        until(lambda: not agent.health().connected)
        assert agent.health().last_error is not None
        caplog.clear()
        with caplog.at_level("INFO"):
            attempts = len(tried)
            until(lambda: len(tried) > attempts + 4)
        assert not any("Connected" in record.message for record in caplog.records)
        server.before = lambda call: None
        episode.end(seen(100))
        assert agent.flush()
        assert agent.health().connected
    assert sum(s.steps for s in server.segments()) == 100


def test_an_agent_rejoins_a_server_that_lost_its_sessions() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        for _ in range(3):
            server.restart()
            with agent.episode() as episode:
                steps(episode, 3)
                episode.end(seen(3))
            assert agent.flush()
        version = server.publish(some_weights(server.spec, 1))
        until(lambda: agent.health().version == version)
    assert len(server.segments()) == 3
    assert len(server.joins) >= 3


def test_a_lower_version_of_a_new_learner_is_adopted() -> None:
    server = FakeServer()
    for seed in range(3):
        server.publish(some_weights(server.spec, seed))
    with agent_on(server) as agent:
        assert agent.health().version == 3
        server.store = FakeServer(server.spec).store
        server.restart()
        until(lambda: agent.health().version == 0)


def test_a_lost_reply_does_not_duplicate_a_segment() -> None:
    server = FakeServer()
    lost = iter([True, True, False])
    server.after = lambda call: failing(Code.DEADLINE_EXCEEDED)(call) if call == "push" and next(lost, False) else None
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 3)
        episode.end(seen(3))
        assert agent.flush()
    assert len(server.pushes) == 3
    assert len(server.segments()) == 1


def test_permanently_refused_segments_are_counted_by_reason() -> None:
    server = FakeServer()
    server.refuse = lambda segment: training_pb2.REFUSAL_REASON_UNKNOWN_VERSION if segment.steps == 2 else None
    with agent_on(server) as agent:
        for length in (1, 2, 3):
            with agent.episode() as episode:
                steps(episode, length)
                episode.end(seen(length))
        assert agent.flush()
        assert agent.health().drops == {"unknown_version": 1}
        assert agent.health().last_error == "refused by the test"
    assert [s.steps for s in server.segments()] == [1, 3]


@pytest.mark.parametrize(("overflow", "kept"), [("drop_oldest", "newest"), ("drop_newest", "oldest")])
def test_memory_is_bounded_and_every_drop_is_counted(overflow: str, kept: str) -> None:
    server = FakeServer()
    with agent_on(server, max_segment_length=8, outbox_bytes=20_000, overflow=overflow, reward_window=0) as agent:
        with hanging(server, "push"), agent.episode() as episode:
            steps(episode, 4_000)
            episode.end(seen(0))
            until(lambda: agent._queue.waiting == 0)
            health = agent.health()
            assert health.backlog_bytes <= 20_000
            drops = dict(health.drops)
            assert sum(drops.values()) + health.backlog == 500
            assert drops.pop(f"overflow_{overflow.removeprefix('drop_')}") > 0
            # What is in flight stays: where it alone nearly fills the outbox, the newest must go after all.
            assert drops.keys() <= ({"overflow_newest"} if kept == "newest" else set())
        assert agent.flush()
    starts = {s.start for s in server.segments()}
    # A small parcel may still fit where a large one was dropped, so that the newest may be there in both cases.
    assert 0 in starts if kept == "oldest" else drops or 3_992 in starts


def test_with_block_the_caller_waits_and_nothing_is_dropped() -> None:
    server = FakeServer()
    with agent_on(server, max_segment_length=8, outbox_bytes=8_000, overflow="block") as agent:
        with hanging(server, "push"):
            episode = agent.episode()
            worker = threading.Thread(target=lambda: (steps(episode, 1_000), episode.end(seen(0))))
            worker.start()
            until(lambda: agent.health().decisions > 100 and _stands_still(agent.health))
            assert worker.is_alive()
        worker.join(20)
        assert agent.flush()
        assert agent.health().drops == {}
    assert sum(s.steps for s in server.segments()) == 1_000


def _stands_still(health: Callable[[], Any]) -> bool:
    before = health().decisions
    threading.Event().wait(0.05)
    return bool(health().decisions == before)


def test_new_versions_arrive_as_patches_bit_for_bit() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        for seed in range(1, 30):
            weights = some_weights(server.spec, seed)
            version = server.publish(weights)
            until(lambda version=version: agent.health().version == version)
            snapshot = agent._governor.snapshot
            assert snapshot is not None
            assert snapshot.weights.tobytes() == weights.tobytes()
        assert agent.health().damaged_patches == 0


def test_a_damaged_patch_is_detected_and_pulled_in_full() -> None:
    server = FakeServer()

    def damage(chunk: weights_pb2.PatchChunk) -> weights_pb2.PatchChunk:
        if chunk.header.HasField("base"):
            chunk.payload = chunk.payload[:-1] + bytes([chunk.payload[-1] ^ 1])
        return chunk

    weights = some_weights(server.spec)
    with agent_on(server) as agent:
        server.tamper = damage
        weights = weights + np.float32(1e-6)
        version = server.publish(weights)
        until(lambda: agent.health().version == version)
        assert agent.health().damaged_patches == 1
        assert agent._governor.snapshot.weights.tobytes() == weights.tobytes()  # type: ignore[union-attr]


def test_an_invalid_reply_changes_no_weights_and_stops_nothing() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        server.tamper = lambda chunk: weights_pb2.PatchChunk(payload=b"garbage")
        server.publish(some_weights(server.spec, 1))
        until(lambda: agent.health().damaged_patches >= 2)
        steps(episode, 10)
        assert agent.health().version == 0
        server.tamper = lambda chunk: chunk
        until(lambda: agent.health().version == 1)


def test_weights_with_nan_or_infinity_are_never_used() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        server.publish(np.full_like(some_weights(server.spec), np.nan))
        until(lambda: "NaN" in str(agent.health().last_error))
        assert agent.health().version == 0
        server.publish(some_weights(server.spec, 2))
        until(lambda: agent.health().version == 2)


def test_closing_does_not_wait_for_a_hanging_call(tmp_path: Path) -> None:
    server = FakeServer()
    agent = agent_on(server, outbox=str(tmp_path))
    with hanging(server, "push"):
        with agent.episode() as episode:
            steps(episode, 3)
            episode.end(seen(3))
        begin = monotonic()
        agent.close(timeout=0.1)
        assert monotonic() - begin < 3.0
    with agent_on(server, outbox=str(tmp_path)) as following:
        assert following.flush()
    assert len(server.segments()) == 1


@pytest.mark.parametrize("code", [Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT, Code.NOT_FOUND])
def test_a_refusal_to_join_is_one_clear_error(code: Code) -> None:
    server = FakeServer()
    server.before = failing(code, None, "join")
    with pytest.raises(ConnectError, match="refuses client 'test'"):
        agent_on(server, fallback=lambda observation: 0)


def test_after_a_later_refusal_acting_continues_and_everything_arrives_once_it_is_lifted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("courier", "watcher"):
        monkeypatch.setattr(f"rl4sys.client.{module}.REFUSED_SECONDS", 0.01)
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        server.before = failing(Code.UNAUTHENTICATED)
        server.restart()
        steps(episode, 3)
        episode.end(seen(3))
        until(lambda: agent.health().stopped is not None)
        assert not agent.flush(5.0)
        with agent.episode() as another:
            steps(another, 3)
            another.end(seen(3))
        server.before = lambda call: None
        version = server.publish(some_weights(server.spec, 1))
        until(lambda: agent.health().version == version and agent.health().stopped is None)
        assert agent.flush()
    assert len(server.segments()) == 2


def test_an_unknown_version_does_not_prevent_later_ones() -> None:
    server = FakeServer()
    honest = server.watch
    lies = iter([2**60])

    def watch(request: training_pb2.WatchRequest) -> Any:
        watching = honest(request)

        class Lying:
            cancel = watching.cancel

            def __iter__(self) -> Iterator[training_pb2.NewVersion]:
                for news in watching:
                    news.version = news.patch.header.target = next(lies, news.version)
                    yield news

        return Lying()

    server.watch = watch  # type: ignore[method-assign]
    with agent_on(server) as agent:
        server.publish(some_weights(server.spec, 1))
        until(lambda: agent.health().version == 2**60)
        newest = server.publish(some_weights(server.spec, 2))
        until(lambda: agent.health().version == newest)


def test_the_pause_that_a_full_server_asks_for_is_respected() -> None:
    server = FakeServer()
    full = iter([True])
    times: list[float] = []

    def before(call: str) -> None:
        if call == "push":
            times.append(monotonic())
            if next(full, False):
                raise CallFailed(Code.RESOURCE_EXHAUSTED, "full", Failure(FailureReason.INBOX_FULL, 400))

    server.before = before
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 3)
        episode.end(seen(3))
        assert agent.flush()
    assert times[1] - times[0] >= 0.4


def test_without_a_server_a_cached_policy_acts(tmp_path: Path) -> None:
    server = FakeServer()
    server.publish(some_weights(server.spec, 1))
    with agent_on(server, cache=str(tmp_path)):
        pass
    server.before = failing(Code.UNAVAILABLE)
    with agent_on(server, cache=str(tmp_path), timeout=0.1) as agent, agent.episode() as episode:
        assert agent.health().version == 1
        steps(episode, 3)
        server.before = lambda call: None
        episode.end(seen(3))
        assert agent.flush()
    assert server.segments()[0].policy_version == 1


def test_a_damaged_cache_is_not_used(tmp_path: Path) -> None:
    server = FakeServer()
    with agent_on(server, cache=str(tmp_path)):
        pass
    (path,) = tmp_path.glob("*.policy")
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    server.before = failing(Code.UNAVAILABLE)
    with pytest.raises(ConnectError, match="No answer from the server"):
        agent_on(server, cache=str(tmp_path), timeout=0.1)


def test_without_a_server_the_fallback_acts_until_there_is_a_policy() -> None:
    server = FakeServer()
    server.before = failing(Code.UNAVAILABLE)
    with agent_on(server, fallback=lambda observation: 3, timeout=0.1) as agent, agent.episode() as episode:
        assert episode.act(seen(0)) == 3
        episode.reward(1.0)
        server.before = lambda call: None
        until(lambda: agent.health().version == 0)
        assert episode.act(seen(1)) in range(4)
        episode.end(seen(2))
        assert agent.health().fallback_decisions == 1
    (segment,) = server.segments()
    assert (segment.start, segment.steps) == (1, 1)


def test_a_policy_with_another_schema_can_arrive_within_an_episode() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 3)
        first, changed = server.form, FakeServer(small_policy(masked=True))
        server.spec, server.store, server.form = changed.spec, changed.store, changed.form
        server.restart()
        until(lambda: agent._governor.snapshot is not None and agent._governor.snapshot.form != first)
        assert episode.act(seen(3), mask=[1, 0, 0, 0]) == 0
        episode.end(seen(4))
        assert agent.flush()
        assert agent.health().drops == {"schema_changed": 1, "schema": 1}
    (segment,) = server.segments()
    assert (segment.start, segment.steps) == (3, 1)


def test_threads_share_an_agent() -> None:
    server = FakeServer()
    with agent_on(server) as agent:

        def work(number: int) -> None:
            for _ in range(5):
                with agent.episode() as episode:
                    steps(episode, 40, first=1000 * number)
                    episode.end(seen(1000 * number + 40))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for seed in range(20):
            server.publish(some_weights(server.spec, seed))
        for thread in threads:
            thread.join()
        assert agent.health().decisions == 800
    segments = server.segments()
    assert sum(s.steps for s in segments) == 800
    for segment in segments:
        assert np.diff(segment.observation["observation"][:, 0]).tolist() == [1.0] * segment.steps


def test_a_fork_is_detected_and_explained() -> None:
    with agent_on(FakeServer()) as agent, agent.episode() as episode:
        episode.act(seen(0))
        child = os.fork()
        if child == 0:
            try:
                episode.act(seen(1))
            except ForkedAgent as error:
                os._exit(7 if "connect after the fork" in str(error) else 1)
            os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7


def test_a_background_thread_that_dies_is_reported_by_health(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:

        def explode(request: object, timeout: float) -> None:
            raise ZeroDivisionError("a fault of the test")

        monkeypatch.setattr(agent._courier._transport, "push", explode)
        steps(episode, 2)
        episode.end(seen(2), Ending.TERMINATED)
        until(lambda: agent.health().stopped is not None)
        assert "courier died" in str(agent.health().last_error)
        with agent.episode() as another:
            steps(another, 2)


def test_a_program_that_ends_without_closing_sends_its_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exit_hook, "_open", set())
    server = FakeServer()
    agent = agent_on(server, send_interval=60.0)
    with agent.episode() as episode:
        steps(episode, 3)
        episode.end(seen(3))
    exit_hook.close_forgotten()
    assert len(server.segments()) == 1
    assert not any(thread.is_alive() for thread in agent._threads)


def test_an_interrupted_connect_leaves_no_threads_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Agent, timeout: float, *, until_unreachable: bool) -> None:
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    monkeypatch.setattr(Agent, "wait_for_policy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        agent_on(FakeServer())
    until(lambda: set(threading.enumerate()) <= before)


def test_an_in_process_address_finds_the_published_transport() -> None:
    server = FakeServer()
    publish_in_process("lab", server)
    try:
        with connect(SETTINGS | {"server": "inproc://lab"}) as agent:
            assert agent.health().connected
        assert not server.closed.is_set()
    finally:
        withdraw_in_process("lab")
