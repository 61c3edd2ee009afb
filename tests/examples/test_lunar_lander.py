"""The Lunar Lander example in the original call style: a server and a client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rl4sys.algorithms import ALGORITHMS
from rl4sys.client import ClientSettings, load_settings
from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.server.workers.learner_config import resolve
from rl4sys.wire.generated import status_pb2

from .processes import LANDER, start

CONFIGS = {"ppo.json": [], "dqn.json": ["--speed", "500"], "ppo_continuous.json": ["--continuous"]}
SOON = {"traj_per_epoch": 4, "batch_size": 64, "learning_starts": 200}
"""Parameters with which the first update comes within seconds."""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    command = ("-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "data")
    with start(*command, temporary=tmp_path) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline().split()[1])
        server.terminate()
        assert server.wait(timeout=30) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_an_example_sends_experience_and_gets_versions_back(name: str, port: int, tmp_path: Path) -> None:
    config = tmp_path / name
    config.write_text(json.dumps(quick(name, port)))
    with start(LANDER / "lander.py", config, "--episodes", "100000", *CONFIGS[name], temporary=tmp_path) as client:
        assert client.stdout is not None
        version = next(number for number in map(version_in, client.stdout) if number > 0)
    learner = learner_of(port)
    assert learner.version >= version
    assert learner.stored_steps > 200
    assert learner.problem == ""


@pytest.mark.slow
def test_an_example_of_a_few_episodes_delivers_all_of_them(port: int, tmp_path: Path) -> None:
    (tmp_path / "ppo.json").write_text(json.dumps(quick("ppo.json", port)))
    with start(LANDER / "lander.py", tmp_path / "ppo.json", "--episodes", "5", temporary=tmp_path) as client:
        said, _ = client.communicate(timeout=120)
    assert client.returncode == 0
    steps = re.search(r"episode +5  steps +([\d,]+)", said)
    assert steps is not None, said
    assert learner_of(port).stored_steps == int(steps[1].replace(",", ""))
    assert "nothing lost" in said


@pytest.mark.parametrize("name", CONFIGS)
def test_the_parameters_of_a_config_are_those_of_its_algorithm(name: str) -> None:
    settings = load_settings(LANDER / name)
    assert isinstance(resolve(settings.algorithm, settings.parameters).algorithm, ALGORITHMS.type(settings.algorithm))


def quick(name: str, port: int) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((LANDER / name).read_text())
    parameters = values["algorithm_parameters"]
    changes = {key: value for key, value in SOON.items() if key in parameters}
    settings = {
        "algorithm_parameters": parameters | changes,
        "train_server_address": f"127.0.0.1:{port}",
        "timeout": 90,
    }
    return values | settings


def version_in(line: str) -> int:
    found = re.search(r"policy version (\d+)", line)
    assert found is not None, line
    return int(found[1])


def learner_of(port: int) -> status_pb2.LearnerStatus:
    transport = GrpcTransport(ClientSettings("test", f"127.0.0.1:{port}"))
    try:
        (learner,) = transport.status(status_pb2.StatusRequest(), timeout=60.0).learners
        return learner
    finally:
        transport.close()
