"""One turn of experience as bytes, to be sent to other ranks. Nothing in them is executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rl4sys.checkpoints import decode_state, encode_state
from rl4sys.collection import Collected
from rl4sys.environments import EpisodeSummary
from rl4sys.experience import Ending, Segment, StreamKey


def encode_collected(collected: Collected) -> bytes:
    """One turn of experience as bytes."""
    episodes = [episode.to_fields() for episode in collected.episodes]
    return encode_state({"segments": [_fields(segment) for segment in collected.segments], "episodes": episodes})


def decode_collected(data: bytes) -> Collected:
    """The inverse of `encode_collected`."""
    state = decode_state(data)
    episodes = [EpisodeSummary.from_fields(fields) for fields in state["episodes"]]
    return Collected([_segment(fields) for fields in state["segments"]], episodes)


def _fields(segment: Segment) -> dict[str, Any]:
    stream = segment.stream
    return {
        "place": [stream.client, stream.agent, stream.lane, segment.episode, segment.start, segment.policy_version],
        "ending": int(segment.ending),
        "observation": dict(segment.observation),
        "action": segment.action,
        "reward": segment.reward,
        "extras": dict(segment.extras),
        "carry": dict(segment.carry),
    }


def _segment(fields: Mapping[str, Any]) -> Segment:
    client, agent, lane, episode, start, policy_version = fields["place"]
    return Segment(
        stream=StreamKey(client, agent, lane),
        episode=episode,
        start=start,
        policy_version=policy_version,
        ending=Ending(fields["ending"]),
        observation=fields["observation"],
        action=fields["action"],
        reward=fields["reward"],
        extras=fields["extras"],
        carry=fields["carry"],
    )
