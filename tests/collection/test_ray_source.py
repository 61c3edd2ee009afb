"""Samplers on Ray collect what processes here would, whatever is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from experiments.runs import PPO, small
from rl4sys.collection import PipelineSetup, PooledSource
from rl4sys.collection.cluster_address import ClusterUnfit
from rl4sys.collection.cluster_on_ray import ClusterSource, join_cluster
from rl4sys.collection.remote_collector import RemoteCollector
from rl4sys.config import ConfigError
from rl4sys.environments import Grade
from rl4sys.experiments import Run, RunDirectory, check_combination
from rl4sys.state import digest, from_text, to_text

from .worlds import SEEDS, SHORT_CHAIN, assert_same_segments, chain_lanes, ppo_for, versions

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ALGORITHM = ppo_for(chain_lanes().spec)
SETUP = PipelineSetup(
    SHORT_CHAIN.model_copy(update={"num_envs": 4}),
    ALGORITHM.policies.explore,
    7,
    SEEDS.root,
    5,
    Grade.E1,
    (),
    Path.cwd(),
)


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    join_cluster(None)
    yield
    ray.shutdown()


def samplers() -> list[int]:
    """The processes of samplers."""
    me, found = os.getpid(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != me:
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::RemoteCollector"):
                found.append(int(entry.name))
    return found


def running_samplers() -> list[int]:
    """The same, once there is one: a sampler that was lost is replaced when its rollout is waited for."""
    deadline = time.monotonic() + 120
    while not (found := samplers()):
        assert time.monotonic() < deadline, "the samplers do not start"
        time.sleep(0.05)
    return found


def test_samplers_collect_what_processes_here_would_though_they_are_killed() -> None:
    here, there = PooledSource(SETUP, 2), ClusterSource(SETUP, 2, {}, None)
    try:
        for turn, newest in enumerate(versions(ALGORITHM, 6)):
            if turn in (2, 4):
                os.kill(samplers()[0], signal.SIGKILL)
            ours, theirs = there.collect(newest), here.collect(newest)
            assert_same_segments(ours.segments, theirs.segments)
            assert ours.episodes == theirs.episodes
        assert digest(there.state()) == digest(here.state())
    finally:
        here.close()
        there.close()


@pytest.mark.cluster
def test_twenty_killed_samplers_change_no_bit() -> None:
    here, there = PooledSource(SETUP, 2), ClusterSource(SETUP, 2, {}, None)
    chance = random.Random(14)
    try:
        for newest in versions(ALGORITHM, 20):
            os.kill(chance.choice(running_samplers()), signal.SIGKILL)
            ours, theirs = there.collect(newest), here.collect(newest)
            assert_same_segments(ours.segments, theirs.segments)
            assert ours.episodes == theirs.episodes
        assert digest(there.state()) == digest(here.state())
    finally:
        here.close()
        there.close()


def test_a_state_of_one_continues_in_the_other() -> None:
    used = versions(ALGORITHM, 4)
    there, here = ClusterSource(SETUP, 2, {}, None), PooledSource(SETUP, 2)
    try:
        for newest in used[:2]:
            there.collect(newest)
        state = from_text(to_text(there.state()))
        assert list(here.restore(state)) == []
        assert list(there.restore(state)) == []
        for newest in used[2:]:
            assert_same_segments(there.collect(newest).segments, here.collect(newest).segments)
    finally:
        here.close()
        there.close()


def test_a_run_learns_the_same_bits_with_samplers_on_ray(tmp_path: Path) -> None:
    settings = {"training__pipelined": True, "training__collectors": 2, "buffer__size": 128, "algorithm__max_age": 4}
    whole = Run.create(small(PPO, tmp_path / "here", **settings)).train()
    run = Run.create(small(PPO, tmp_path / "there", training__collection="ray", **settings))
    run.train(stop=lambda: run.steps >= 128)
    resumed = Run.resume(RunDirectory(run.directory.path))
    assert resumed.train().fingerprint == whole.fingerprint
    assert resumed.inexact == ()


def test_a_sampler_loads_plug_ins_that_are_not_on_its_machine(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere" / "own.py")
    text = "import pathlib\npathlib.Path({!r}).touch()\n".format(str(tmp_path / "loaded"))
    RemoteCollector(json.dumps(SETUP.message() | {"plugins": [path]}), json.dumps({path: text}))
    assert (tmp_path / "loaded").exists()


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"training__pipelined": False}, "set training.pipelined=true"),
        ({"training__collectors": 2}, "would be asked for 16 steps at a time"),
    ],
)
def test_what_would_not_pay_is_refused(tmp_path: Path, settings: dict[str, object], answer: str) -> None:
    given = {"training__pipelined": True, "training__collection": "ray", "algorithm__max_age": 4, **settings}
    with pytest.raises(ConfigError, match=answer):
        check_combination(small(PPO, tmp_path, **given))


def test_an_address_where_no_process_answers_is_refused_at_once() -> None:
    with pytest.raises(ClusterUnfit, match=r"No Ray cluster answers at 127\.0\.0\.1:1"):
        join_cluster("127.0.0.1:1")
