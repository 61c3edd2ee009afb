from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rl4sys.collection import PipelinedSource, PipelineSetup, SteppedSource, WorkerFailed
from rl4sys.collection.shared_memory import SharedLayout, anonymous_memory
from rl4sys.environments import Grade, GymnasiumConfig
from rl4sys.state import digest, from_text, to_text

from .worlds import SEEDS, SHORT_CHAIN, assert_same_segments, chain_lanes, ppo_for, versions

pytestmark = pytest.mark.slow

STEPS = 7
ALGORITHM = ppo_for(chain_lanes().spec)
Start = Callable[..., PipelinedSource]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts sources, and closes them after the test."""
    sources: list[PipelinedSource] = []

    def make(environment: GymnasiumConfig = SHORT_CHAIN, plugins: tuple[str, ...] = ()) -> PipelinedSource:
        explore = ALGORITHM.policies.explore
        setup = PipelineSetup(environment, explore, STEPS, SEEDS.root, 5, Grade.E1, plugins, Path.cwd())
        sources.append(PipelinedSource(setup))
        return sources[-1]

    yield make
    for source in sources:
        source.close()


def worker_of(source: PipelinedSource) -> int:
    """The id of its second process."""
    return source._process.pid


def ended(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process ends within the given time; it need not be a child of this one."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        return bool(poll.poll(1000.0 * seconds))
    finally:
        os.close(descriptor)


def test_every_rollout_but_the_first_is_one_version_old(start: Start) -> None:
    source, used = start(), versions(ALGORITHM, 5)
    stepped = SteppedSource(chain_lanes(), ALGORITHM.policies.explore, STEPS, seed=5)
    for turn, newest in enumerate(used):
        acting = used[max(0, turn - 1)]
        found, expected = source.collect(newest), stepped.collect(acting)
        assert {segment.policy_version for segment in found.segments} == {acting.number}
        assert_same_segments(found.segments, expected.segments)
        assert list(found.episodes) == list(expected.episodes)


@pytest.mark.parametrize("turns", [0, 3])
def test_a_source_restored_with_a_rollout_in_flight_continues_exactly(start: Start, turns: int) -> None:
    original, resumed, used = start(), start(), versions(ALGORITHM, 6)
    for newest in used[:turns]:
        original.collect(newest)
    state = original.state()
    assert digest(original.state()) == digest(state)
    assert list(resumed.restore(from_text(to_text(state)))) == []
    for newest in used[turns:]:
        one, other = original.collect(newest), resumed.collect(newest)
        assert_same_segments(one.segments, other.segments)
        assert one.episodes == other.episodes
    assert digest(original.state()) == digest(resumed.state())


def test_a_source_can_go_back_while_a_rollout_is_in_flight(start: Start) -> None:
    source, used = start(), versions(ALGORITHM, 4)
    source.collect(used[0])
    state = source.state()
    first = [source.collect(newest) for newest in used[1:]]
    source.restore(state)
    for expected, newest in zip(first, used[1:], strict=True):
        assert_same_segments(source.collect(newest).segments, expected.segments)


def test_an_environment_that_cannot_be_made_is_reported_in_its_own_words(start: Start) -> None:
    wrong = GymnasiumConfig(name="rl4sys/Identity-v0", kwargs={"action": "dance"})
    with pytest.raises(WorkerFailed, match="action='dance' is none of discrete"):
        start(wrong)


FAILING = """
import gymnasium
from rl4sys.environments.diagnostics import ChainEnv

class Failing(ChainEnv):
    def step(self, action):
        raise RuntimeError("the cluster is on fire")

gymnasium.register("tests/Failing-v0", entry_point=lambda: Failing(n=4))
"""


def test_an_environment_that_fails_is_reported_in_its_own_words_and_only_by_the_owner(
    start: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "failing_environment.py"
    plugin.write_text(FAILING)
    source = start(GymnasiumConfig(name="tests/Failing-v0", num_envs=2), (str(plugin),))
    with pytest.raises(WorkerFailed, match="RuntimeError: the cluster is on fire"):
        source.collect(versions(ALGORITHM, 1)[0])
    source.close()
    assert capfd.readouterr().err == ""


def test_a_worker_whose_owner_is_gone_leaves_without_a_word() -> None:
    setup = PipelineSetup(SHORT_CHAIN, ALGORITHM.policies.explore, STEPS, SEEDS.root, 5, Grade.E1, (), Path.cwd())
    size = SharedLayout(setup.policy, setup.environment.num_envs, STEPS).size()
    requests, replies, memory = os.pipe(), os.pipe(), anonymous_memory(size)
    passed = (requests[0], replies[1], memory)
    os.write(requests[1], f"{json.dumps(setup.message())}\n".encode())
    # The owner is gone before the worker can say that it is ready.
    os.close(replies[0])
    os.close(requests[1])
    command = [sys.executable, "-m", "rl4sys.collection.worker", *map(str, passed)]
    done = subprocess.run(command, pass_fds=passed, capture_output=True, text=True, timeout=60)
    for descriptor in passed:
        os.close(descriptor)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_that_is_killed_is_reported_with_advice(start: Start) -> None:
    source = start()
    source.collect(versions(ALGORITHM, 1)[0])
    os.kill(worker_of(source), signal.SIGKILL)
    assert ended(worker_of(source))
    with pytest.raises(WorkerFailed, match=r"ended with code -9\. Resume the run"):
        source.collect(versions(ALGORITHM, 1)[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_leaves_stopping_to_its_owner(start: Start, number: int) -> None:
    # Ctrl-C reaches the whole group of processes; the owner then saves, and needs the worker for it.
    source, used = start(), versions(ALGORITHM, 3)
    source.collect(used[0])
    os.kill(worker_of(source), number)
    assert [source.collect(newest).segments[0].policy_version for newest in used[1:]] == [0, 1]
    assert source.state()["pending"] is not None


def test_closing_ends_the_worker_and_may_be_repeated(start: Start) -> None:
    source = start()
    source.collect(versions(ALGORITHM, 1)[0])
    source.close()
    assert ended(worker_of(source), seconds=0.0)
    source.close()


OWNER = """
import sys
from collection.test_pipelined_source import ALGORITHM, STEPS, worker_of
from collection.worlds import SEEDS, SHORT_CHAIN, versions
from pathlib import Path
from rl4sys.collection import PipelinedSource, PipelineSetup
from rl4sys.environments import Grade

setup = PipelineSetup(SHORT_CHAIN, ALGORITHM.policies.explore, STEPS, SEEDS.root, 5, Grade.E1, (), Path.cwd())
source = PipelinedSource(setup)
source.collect(versions(ALGORITHM, 1)[0])
print(worker_of(source), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_worker_ends_with_its_owner_even_if_that_is_killed() -> None:
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
    with subprocess.Popen([sys.executable, "-c", OWNER], **pipes) as owner:
        assert owner.stdout is not None
        worker = int(owner.stdout.readline())
        assert not ended(worker, seconds=0.0)
        owner.kill()
    assert ended(worker)
