"""Equal records give equal weights, whether segments came alone or in packs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, RECURRENT_PPO, SAC, synthetic_segment
from tests.server.workers.test_folded_commands import FREEZE, UNFREEZE, FoldedLog

from rl4sys.experience import DecidedBy, Segment
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.workers.events import Published
from rl4sys.state import digest
from rl4sys.wire import SegmentFormat, encode_pack, encode_segment

Method = tuple[str, dict[str, Any]]
NORMALIZED = (PPO[0], {**PPO[1], "normalize_obs": True, "normalize_reward": True})
LATE_DQN = (DQN[0], {**DQN[1], "algorithm": {**DQN[1]["algorithm"], "learning_starts": 150}})
PRIORITIZED = (DQN[0], {**DQN[1], "buffer": {"type": "prioritized", "size": 200}})
METHODS = {
    "PPO": PPO,
    "PPO with statistics": NORMALIZED,
    "PPO with memory": RECURRENT_PPO,
    "DQN": DQN,
    "DQN before it learns": LATE_DQN,
    "DQN with priorities": PRIORITIZED,
    "SAC": SAC,
}


def one_step_episodes(log: FoldedLog, numbers: Sequence[int], steps: int = 1, **changes: Any) -> list[Segment]:
    spec, version = log.fold.learner.algorithm.policies.explore, changes.pop("version", 0)
    made = [synthetic_segment(spec, "a", number, steps=steps, version=version) for number in numbers]
    return [replace(segment, **changes) for segment in made]


def take_alone(log: FoldedLog, segments: Sequence[Segment]) -> None:
    form = SegmentFormat.of(log.fold.learner.algorithm.policies.explore)
    for segment in segments:
        data = encode_segment(form, segment)
        log.take(StoredSegment("a", 1, segment.episode, segment.steps, data))


def take_packed(log: FoldedLog, segments: Sequence[Segment], size: int = 60) -> None:
    form = SegmentFormat.of(log.fold.learner.algorithm.policies.explore)
    for begin in range(0, len(segments), size):
        part = segments[begin : begin + size]
        steps = sum(segment.steps for segment in part)
        log.take(StoredSegment("a", 1, part[0].episode, steps, encode_pack(form, part), len(part)))


def published(log: FoldedLog) -> list[tuple[int, bytes]]:
    return [(event.version, event.blob) for event in log.events if isinstance(event, Published)]


def assert_equal(alone: FoldedLog, packed: FoldedLog) -> None:
    assert published(packed) == published(alone)
    assert digest(packed.fold.learner.algorithm.train_state.state()) == digest(
        alone.fold.learner.algorithm.train_state.state()
    )
    assert replace(packed.fold.progress(), position=0) == replace(alone.fold.progress(), position=0)


@pytest.mark.parametrize("name", METHODS)
def test_packs_teach_exactly_what_their_segments_teach(name: str, tmp_path: Path) -> None:
    alone, packed = FoldedLog(tmp_path / "alone", METHODS[name]), FoldedLog(tmp_path / "packed", METHODS[name])
    segments = one_step_episodes(alone, range(180)) + one_step_episodes(alone, range(180, 200), steps=3)
    take_alone(alone, segments)
    take_packed(packed, segments)
    assert alone.version > 0
    assert_equal(alone, packed)


def test_what_is_not_learned_from_is_counted_alike(tmp_path: Path) -> None:
    alone, packed = FoldedLog(tmp_path / "alone", PPO), FoldedLog(tmp_path / "packed", PPO)
    for log, take in ((alone, take_alone), (packed, take_packed)):
        take(log, one_step_episodes(log, range(100)))
        take(log, one_step_episodes(log, range(100, 130), version=99))
        take(log, one_step_episodes(log, range(130, 160), decided_by=DecidedBy.FALLBACK))
        log.take(FREEZE)
        take(log, one_step_episodes(log, range(160, 190)))
        log.take(UNFREEZE)
        take(log, one_step_episodes(log, range(190, 250)))
    assert alone.fold.progress().unused.keys() >= {"unknown_version", "fallback", "frozen"}
    assert_equal(alone, packed)


@pytest.mark.parametrize("method", [PPO, LATE_DQN], ids=lambda method: method[0])
def test_a_restart_between_packs_changes_nothing(method: Method, tmp_path: Path) -> None:
    whole, killed = FoldedLog(tmp_path / "whole", method), FoldedLog(tmp_path / "killed", method)
    segments = one_step_episodes(whole, range(240))
    take_packed(whole, segments, 50)
    take_packed(killed, segments[:100], 50)
    killed.fold.save()
    killed.open()
    take_packed(killed, segments[100:], 50)
    np.testing.assert_array_equal(killed.weights, whole.weights)
    assert killed.version == whole.version


def test_a_local_learner_of_the_same_segments_ends_with_the_same_weights(tmp_path: Path) -> None:
    local, served = FoldedLog(tmp_path / "local", PPO), FoldedLog(tmp_path / "served", PPO)
    segments = one_step_episodes(served, range(150))
    for segment in segments:
        local.fold.learner.learn([segment])
    take_packed(served, segments)
    np.testing.assert_array_equal(served.weights, local.weights)
