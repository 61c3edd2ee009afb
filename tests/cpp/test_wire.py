"""The same bytes for the same segments, and the same policies and settings from the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.client.test_original_parameters import CASES, config
from tests.cpp.programs import ROOT, attempt, needs_cpp, tool

from rl4sys.client import ClientSettings, SettingsError, load_settings
from rl4sys.experience import Array, ArraySpec, Ending, Segment, StreamKey
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, Head, MultiDiscreteAction, PolicySpec, ProgramBuilder
from rl4sys.wire import SegmentFormat, encode_pack, encode_policy, encode_segment

pytestmark = [needs_cpp, pytest.mark.slow]


def policy(action: ActionSpec, *, memory: bool = False) -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("queue", "float32", (3,)), ArraySpec("image", "uint8", (2, 2))))
    register = builder.linear(builder.features(standardize=True), 4, "first")
    register = builder.gru(register, 4, "memory") if memory else builder.activation(register, "tanh")
    match action:
        case DiscreteAction(n=n):
            width = n
        case MultiDiscreteAction(sizes=sizes):
            width = sum(sizes)
        case BoxAction():
            width = action.size
    scores = builder.linear(register, width, "last")
    if isinstance(action, BoxAction):
        head = Head("gaussian", (scores,), (builder.tensor("log_std", width),))
    else:
        head = Head("categorical", (scores,))
    return PolicySpec(action, builder.program(), head)


def actions(action: ActionSpec, steps: int) -> Array:
    rng = np.random.default_rng(3)
    match action:
        case DiscreteAction(n=n):
            return rng.integers(n, size=steps)
        case MultiDiscreteAction(sizes=sizes):
            return rng.integers(sizes, size=(steps, len(sizes)))
        case BoxAction():
            return rng.normal(size=(steps, action.size)).astype(np.float32)


def segment_of(spec: PolicySpec, steps: int, ending: Ending) -> Segment:
    rng = np.random.default_rng(4)
    return Segment(
        StreamKey("client", "agent", 300),
        1_700_000_000_000_000,
        0 if steps == 1 else 77,
        0 if steps == 1 else 2**40,
        ending,
        {
            "queue": rng.normal(size=(steps + 1, 3)).astype(np.float32),
            "image": rng.integers(256, size=(steps + 1, 2, 2)).astype(np.uint8),
        },
        actions(spec.action, steps),
        rng.normal(size=steps).astype(np.float32),
        {array.name: rng.normal(size=steps).astype(np.float32) for array in spec.noted},
        {m.name: rng.normal(size=m.shape).astype(np.float32) for m in spec.program.carry},
    )


def given_to_cpp(spec: PolicySpec, segment: Segment) -> dict[str, Any]:
    given: dict[str, Any] = {
        "spec": spec.to_json(),
        "agent": segment.stream.agent,
        "lane": segment.stream.lane,
        "episode": segment.episode,
        "start": segment.start,
        "policy_version": segment.policy_version,
        "ending": int(segment.ending),
        "steps": segment.steps,
        "action": segment.action.tobytes().hex(),
        "reward": segment.reward.tobytes().hex(),
    }
    for group in ("observation", "extras", "carry"):
        given[group] = [array.tobytes().hex() for array in getattr(segment, group).values()]
    return given


def encoded_in_cpp(spec: PolicySpec, segment: Segment) -> bytes:
    return bytes.fromhex(tool("encode-segment", given=json.dumps(given_to_cpp(spec, segment))))


@pytest.mark.parametrize("steps", [1, 5, 300])
@pytest.mark.parametrize(
    "action",
    [
        DiscreteAction(2),
        DiscreteAction(300, 1),
        DiscreteAction(70_000),
        MultiDiscreteAction((3, 260)),
        BoxAction((-1.0, 0.0), (1.0, float("inf"))),
    ],
    ids=str,
)
def test_a_segment_has_the_same_bytes(action: ActionSpec, steps: int) -> None:
    spec = policy(action, memory=steps == 5)
    segment = segment_of(spec, steps, Ending(steps % 3))
    assert encoded_in_cpp(spec, segment) == encode_segment(SegmentFormat.of(spec), segment)


@pytest.mark.parametrize("action", [DiscreteAction(300, 1), BoxAction((-1.0, 0.0), (1.0, 2.0))], ids=str)
def test_a_pack_has_the_same_bytes_and_is_split_alike(action: ActionSpec) -> None:
    spec = policy(action, memory=isinstance(action, BoxAction))
    form, segments = (
        SegmentFormat.of(spec),
        [replace(segment_of(spec, steps, Ending(steps % 3)), policy_version=2**40) for steps in (1, 2, 1, 4)],
    )
    lines = tool("encode-pack", given=json.dumps([given_to_cpp(spec, segment) for segment in segments])).split()
    assert bytes.fromhex(lines[0]) == encode_pack(form, segments)
    assert [bytes.fromhex(line) for line in lines[1:]] == [encode_segment(form, segment) for segment in segments]


@pytest.mark.parametrize(
    "action", [DiscreteAction(4, -1), MultiDiscreteAction((2, 3)), BoxAction((-1.5,), (2.0,))], ids=str
)
def test_a_policy_is_unchanged_by_the_wire(action: ActionSpec) -> None:
    spec = policy(action, memory=True)
    assert tool("decode-policy", given=encode_policy(spec).SerializeToString().hex()).strip() == spec.to_json()


FLAT = {
    "client_id": "flat",
    "algorithm_name": "DQN",
    "algorithm_parameters": {"batch_size": 16, "act_dim": 3, "input_size": 5, "q_lr": 0.01, "buffer_size": 500},
    "max_traj_length": 70,
    "type": "off-policy",
    "train_server_address": "localhost:1",
    "send_frequency": 3,
    "reward_window": 2,
}
SECTIONS = {
    "client_id": "sections",
    "algorithm": "PPO",
    "algorithm_parameters": {"learning_rate": 0.01, "pi_lr": 0.02, "vf_lr": 0.03, "traj_per_epoch": 7, "seed": 4},
    "network_architecture": {"hidden_sizes": [3], "activation": "relu"},
    "training": {"batch_size": 8, "epochs": 2},
    "communication": {"server_address": "localhost:2", "timeout": 3, "send_frequency": 2},
}
OURS = {
    "client_id": "ours",
    "algorithm": {"name": "ppo", "lr": 0.5},
    "normalize_obs": False,
    "observation": {"queue": [2, 3], "flags": {"dtype": "uint8", "shape": 4}},
    "action": {"sizes": [2, 2]},
    "action_mask": True,
}


def plain(settings: ClientSettings) -> dict[str, Any]:
    return {
        "client_id": settings.client_id,
        "server": settings.server,
        "algorithm": settings.algorithm,
        "parameters": json.loads(json.dumps(settings.parameters)),
        "observation": [[spec.name, spec.dtype, list(spec.shape)] for spec in settings.observation],
        "timeout": settings.timeout,
        "max_segment_length": settings.max_segment_length,
        "send_interval": settings.send_interval,
        "send_frequency": settings.send_frequency,
        "seed": settings.seed,
    }


@pytest.mark.parametrize("values", [FLAT, SECTIONS, OURS], ids=["flat", "sections", "ours"])
def test_both_clients_read_a_config_equally(values: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(values))
    assert json.loads(tool("show-settings", path)) == plain(load_settings(path))


@pytest.mark.parametrize(("name", "given", "expected"), CASES)
def test_both_clients_translate_original_parameters_equally(
    name: str, given: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(config(name, **given)))
    read = json.loads(tool("show-settings", path))
    assert read == plain(load_settings(path))
    assert read["parameters"].get("algorithm", {}) == expected


def test_both_clients_read_the_settings_of_original_clients_equally(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    values = config("PPO_Continuous", act_dim=2, input_size=8, hidden_size=64, traj_per_epoch=4)
    more = {"enable_compression": True, "connection_timeout_seconds": 7, "log_level": "INFO", "debug": False}
    path.write_text(json.dumps(values | more))
    assert json.loads(tool("show-settings", path)) == plain(load_settings(path))


@pytest.mark.parametrize("values", [config("TRPO"), config("PPPO"), config("PPO", lr_pi=1)])
def test_both_clients_refuse_an_original_config_with_the_same_words(values: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(values))
    with pytest.raises(SettingsError) as refused:
        load_settings(path)
    assert attempt("show-settings", path).stderr.strip() == str(refused.value)


def test_both_clients_read_the_example_config_equally() -> None:
    path = ROOT / "examples" / "lunar_lander" / "ppo.json"
    assert json.loads(tool("show-settings", path)) == plain(load_settings(path))
