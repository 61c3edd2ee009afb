"""Programs with the calls of the original RL4Sys, run as they are against a training server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest
from tests.programs import Program

from rl4sys.client import ClientSettings
from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.wire.generated import status_pb2

PROGRAMS = Path(__file__).parent / "programs"
UNSQUEEZED = ("lander", "lander_infer", "continuous", "jobs", "jobs_infer", "tuning", "simple")
FLAT = ("graph", "masks")
CONTINUOUS = {"algorithm_name": "PPO_Continuous", "act_dim": 2}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    data = str(tmp_path_factory.mktemp("data"))
    server = Program("rl4sys.server.server", "--debug", "--port", "0", "--data", data, "--workers", "threads")
    try:
        yield int(server.first_line().split()[1])
        server.send_signal(SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()


def config(name: str, port: int, algorithm_name: str = "PPO", act_dim: int = 4) -> dict[str, Any]:
    parameters = {"batch_size": 32, "act_dim": act_dim, "seed": 0, "traj_per_epoch": 4, "lam": 0.95, "input_size": 8}
    return {
        "client_id": name.replace("_", "-"),
        "algorithm_name": algorithm_name,
        "algorithm_parameters": parameters | {"train_pi_iters": 2, "train_v_iters": 2, "max_grad_norm": 0},
        "act_limit": 1.0,
        "max_traj_length": 1000,
        "type": "onpolicy",
        "train_server_address": f"localhost:{port}",
        "send_frequency": 10,
        "connection_timeout_seconds": 60,
        "enable_compression": True,
    }


def stored_steps(port: int, client: str) -> int:
    transport = GrpcTransport(ClientSettings("test", f"127.0.0.1:{port}"))
    try:
        learners = transport.status(status_pb2.StatusRequest(), timeout=60.0).learners
    finally:
        transport.close()
    return next(learner.stored_steps for learner in learners if learner.learner == client)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*UNSQUEEZED, *FLAT])
def test_an_original_program_runs_and_delivers_what_it_adds(name: str, port: int, tmp_path: Path) -> None:
    values = config(name, port, **CONTINUOUS) if name == "continuous" else config(name, port)
    (tmp_path / "conf.json").write_text(json.dumps(values))
    # A process of its own, since most of them leave it to the end of the program to send the rest.
    command = [sys.executable, str(PROGRAMS / f"{name}.py")]
    program = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert program.returncode == 0, program.stderr
    added = re.search(r"^added (\d+)$", program.stdout, re.MULTILINE)
    assert added is not None, program.stdout
    assert stored_steps(port, values["client_id"]) == int(added[1])


@pytest.mark.slow
def test_the_lunar_lander_has_its_documented_options(port: int, tmp_path: Path) -> None:
    pytest.importorskip("Box2D")
    (tmp_path / "luna_conf.json").write_text(json.dumps(config("luna-landing", port)))
    options = "--tensorboard=True --number-of-iterations=3 --number-of-moves=40 --render=False --seed 2 --debug"
    program = Program("rl4sys.examples.lunar.lunar_lander", *options.split(), cwd=tmp_path)
    out, err = program.communicate(120)
    assert program.returncode == 0, err
    moves = re.search(r"3 episodes, (\d+) moves", out)
    assert moves is not None, out
    assert stored_steps(port, "luna-landing") == int(moves[1])
