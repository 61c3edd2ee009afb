"""The golden recordings, replayed by the Python client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.client.agents import seen
from tests.client.fake_server import FakeServer
from tests.client.test_rewards import FakeClock, agent_at

from rl4sys.client import Agent, Ending, Episode
from rl4sys.experience import Segment
from rl4sys.wire.generated import training_pb2

from .golden import VECTORS

RECORDINGS = json.loads((VECTORS / "recordings.json").read_text())["recordings"]


def replay(agent: Agent, episode: Episode, server: FakeServer, clock: FakeClock, event: dict[str, Any]) -> None:
    match event["do"]:
        case "took":
            episode.took(seen(event["seen"]), event["choice"] if event["choice"] < 3 else 4, now=event.get("now"))
        case "act":
            episode.act(seen(event["seen"]), now=event.get("now"))
        case "reward":
            episode.reward(event["value"], event["decision"], final=event["final"])
        case "clock":
            clock.now += event["seconds"]
        case "sealed":
            assert agent.flush()
            assert len(server.segments()) == event["count"]
        case "end":
            episode.end(seen(event["seen"]), Ending[event["ending"].upper()], now=event.get("now"))


def described(segment: Segment) -> dict[str, Any]:
    decided_by = segment.decided_by.name.lower()
    return {
        "start": segment.start,
        "seen": segment.observation["observation"][:, 0].tolist(),
        "decided_by": decided_by,
        "ending": segment.ending.name.lower(),
        "action": None if decided_by == "policy" else segment.action.tolist(),
        "reward": segment.reward.tolist(),
        "elapsed": None if segment.elapsed is None else segment.elapsed.tolist(),
    }


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording["name"])
def test_every_recording_gives_the_golden_segments(recording: dict[str, Any]) -> None:
    server, clock = FakeServer(), FakeClock()
    server.reply = training_pb2.JoinReply(accepts_incumbent=True)
    settings = {"max_segment_length": 256} | recording["settings"]
    with agent_at(server, clock, **settings) as agent, agent.episode() as episode:
        for event in recording["events"]:
            if "problem" in event:
                with pytest.raises(ValueError, match=event["problem"]):
                    replay(agent, episode, server, clock, event)
            else:
                replay(agent, episode, server, clock, event)
    assert [described(segment) for segment in server.segments()] == recording["segments"]
