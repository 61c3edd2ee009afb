"""Policies with memory in C++ and Python clients of a real server, while it learns."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.client.waiting import until
from tests.cpp.programs import AskedClient, Server, needs_cpp, observed, write_config

from rl4sys.client import Agent, connect
from rl4sys.experience import Segment
from rl4sys.policy import PolicySpec
from rl4sys.wire import SegmentFormat, decode_checked_segment

pytestmark = [needs_cpp, pytest.mark.slow]

VERSIONS, DECISIONS = 10, 1_000
# The twins, two clients of one name and seed, send a segment only when they get a version, and experience of an earlier
# version is not learned from. So every version is caused by the teacher, one in each round, and reaches both between
# the same two decisions.
PPO = {
    "algorithm": {"name": "ppo", "lr": 0.02, "epochs": 4, "minibatch_size": 100, "max_age": 0},
    "buffer": {"size": 200},
    "max_segment_length": 2 * DECISIONS,
}
# Dreamer learns from every version. Its twins drop their segments, which are larger than their outbox; for an episode
# of the teacher, 200 steps, one update is due.
DREAMER = {
    "algorithm": {
        "name": "dreamer",
        "size": "pico",
        "learning_starts": 0,
        "updates_per_step": 0.0051,
        "lr": 3e-3,
        "warmup_steps": 0,
    },
    "buffer": {"type": "sequences", "size": 10_000},
    "network": {},
    "max_segment_length": 2 * DECISIONS,
    "outbox_bytes": 1_024,
}
ACTORS = [{"type": "lstm"}, {"type": "gru", "previous_action": True}, {"type": "transformer", "window": 16}]


def teach(teacher: Agent, version: int) -> None:
    """Let the learner make the version after this one."""
    rng = np.random.default_rng(version)

    def has_another() -> bool:
        return (teacher.health().version or 0) > version

    def is_learned() -> bool:
        thinned = teacher.health().thinned_episodes
        with teacher.episode() as episode:
            for _ in range(200):
                seen = rng.uniform(-1, 1, 2)
                episode.reward(float(episode.act(seen) == (seen[0] > 0)))
            episode.end(rng.uniform(-1, 1, 2))
        assert teacher.flush(30.0)
        if teacher.health().thinned_episodes == thinned:
            # A second episode might make one version too many, while the twins decide.
            with suppress(AssertionError):
                until(has_another, 5.0)
        return has_another()

    until(is_learned, 60.0)


def recorded(server: Server, cached: Path) -> list[dict[int, Segment]]:
    """The logged segments of each twin by their first step. The server asks for a share of them only."""
    spec = PolicySpec.from_json(json.loads(cached.read_bytes().partition(b"\n")[0])["spec"])
    form, found = SegmentFormat.of(spec), dict[int, dict[int, Segment]]()
    for entry in server.entries():
        if entry.client == "twin":
            segment = decode_checked_segment(form, entry.segment, client=entry.client)
            found.setdefault(entry.epoch, {})[segment.start] = segment
    return list(found.values())


def require_equal(ours: dict[int, Segment], theirs: dict[int, Segment]) -> None:
    """Segments that both twins recorded have equal versions, memories and probabilities."""
    shared = ours.keys() & theirs.keys()
    assert 0 in shared
    for mine, other in ((ours[start], theirs[start]) for start in shared):
        assert mine.policy_version == other.policy_version
        for name, memory in mine.carry.items():
            np.testing.assert_allclose(memory, other.carry[name], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(mine.extras["log_prob"], other.extras["log_prob"], rtol=1e-4, atol=1e-5)


def require_equal_decisions(server: Server, place: Path, twins: dict[str, Any]) -> None:
    """Both twins decide alike with every version that a teacher causes."""
    config = write_config(place / "twin.json", server, client_id="twin", **twins)
    settings = json.loads(config.read_text())
    caching = {"client_id": "teacher", "cache": str(place), "outbox_bytes": 64 << 20}
    with connect(settings | caching) as teacher, connect(settings) as agent:
        with AskedClient(config) as cpp, agent.episode() as episode:
            for version in range(VERSIONS):
                until(lambda: agent.health().version == version == cpp.decide(0)["version"], 60.0)  # noqa: B023
                steps = range(version * DECISIONS, (version + 1) * DECISIONS)
                choices = [episode.act(observed(step)) for step in steps]
                assert len(set(choices)) == 2
                assert cpp.decide(DECISIONS)["choices"] == choices
                teach(teacher, version)
        assert agent.flush(30.0)


@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor["type"])
def test_clients_in_two_languages_agree_on_10000_decisions_across_new_versions(
    tmp_path: Path, actor: dict[str, object]
) -> None:
    with Server(tmp_path) as server:
        require_equal_decisions(server, tmp_path, {"network": {"actor": {"units": 8, **actor}}, **PPO})
        ours, theirs = recorded(server, tmp_path / "shared.policy")
        require_equal(ours, theirs)


def test_clients_in_two_languages_draw_alike_with_dreamer(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        require_equal_decisions(server, tmp_path, DREAMER)
