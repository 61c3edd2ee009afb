"""Places where runs cannot train are refused in one sentence, before anything is started."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from experiments.runs import PPO as PPO_RUN
from experiments.runs import values
from rl4sys.collection import cluster_address

from .commands import Here

PPO = ("train", "--algorithm", "ppo", "--env", "CartPole-v1")
COLLECT = ("training.pipelined=true", "training.collection=ray")
PLUGIN = (
    "import gymnasium\n\nif 'Own-v0' not in gymnasium.registry:\n"
    "    gymnasium.register('Own-v0', 'gymnasium.envs.classic_control:CartPoleEnv')\n"
)
STUDY = "base_config: base.yaml\nspace: {algorithm.lr: [0.001, 0.01]}\ntrials: 2\n"
SWEEP = "base_config: base.yaml\nsweep: {algorithm.lr: [0.001]}\n"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a process that accepts connections and never answers."""
    monkeypatch.setattr(cluster_address, "_PROBE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def refusal(rl4sys: Here, *words: str) -> str:
    """The one line that a command is refused with, having made nothing."""
    code, out, err = rl4sys(*words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert not Path("runs").exists()
    return err


@pytest.mark.parametrize(
    "words",
    [
        (*PPO, "--on", "ray"),
        (*PPO, "--on", "ray", "--address", "http://127.0.0.1:1", "--storage", "s3://lab/runs"),
        (*PPO, *COLLECT),
        ("sweep", "ppo_sweep.yaml", "--on", "ray"),
        ("serve", "--workers", "ray", "--data", "data", "--listen", "127.0.0.1:0"),
    ],
)
def test_ray_that_is_not_installed_is_named(
    rl4sys: Here, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'rl4sys[" in refusal(rl4sys, *words)


@pytest.mark.parametrize(
    "words",
    [
        (*PPO, "--on", "ray", "--address", "{silent}"),
        (*PPO, "--on", "ray", "--address", "http://{silent}", "--storage", "s3://lab/runs"),
        (*PPO, *COLLECT, "where.address={silent}"),
        ("sweep", "ppo_sweep.yaml", "where.on=ray", "where.address={silent}"),
        ("serve", "--workers", "ray", "--address", "{silent}", "--data", "data", "--listen", "127.0.0.1:0"),
    ],
)
def test_a_process_that_is_no_cluster_is_not_waited_for(rl4sys: Here, silent: str, words: tuple[str, ...]) -> None:
    err = refusal(rl4sys, *(word.format(silent=silent) for word in words))
    assert "No Ray cluster answers at " in err
    assert "Check that it is running" in err


def test_another_server_of_grpc_is_not_asked_again(rl4sys: Here) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        err = refusal(rl4sys, *PPO, "--on", "ray", "--address", f"127.0.0.1:{port}")
    finally:
        server.stop(None)
    assert f"No Ray cluster answers at 127.0.0.1:{port} (the answer is not that of a Ray cluster)" in err


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (("--on", "ray", "--cpus", "1000"), "A run asks for 1000 CPU, but no node of the cluster has more than"),
        (("--on", "ray", "--gpus", "1"), "A run asks for 1 GPU, but no node of the cluster has more than 0"),
        (("--cpus", "1000"), "--cpus 1000: this machine has "),
        (("--storage", "/proc/lab/runs"), "--storage /proc/lab/runs cannot be written to: No such file or directory"),
        (("--on", "ray", "--storage", "/proc/lab/runs"), "--storage /proc/lab/runs cannot be written to"),
        (
            ("--storage", "gs://anonymous@lab/runs?endpoint_override=127.0.0.1:1&scheme=http&retry_limit_seconds=0.1"),
            "gs://anonymous@lab/runs cannot be written to",
        ),
        (("--ranks", "3", "environment.num_envs=4", "--on", "ray"), "cannot be shared evenly by 3 ranks"),
        (("device=cuda",), "torch finds no CUDA GPU here"),
    ],
)
def test_what_a_machine_does_not_have_is_refused(rl4sys: Here, options: tuple[str, ...], answer: str) -> None:
    assert answer in refusal(rl4sys, *PPO, *options)


def test_a_cluster_file_of_another_provider_is_refused(rl4sys: Here) -> None:
    Path("azure.yaml").write_text("cluster_name: lab\nprovider: {type: azure}\n")
    assert "provider.type is 'azure'; expected gcp" in refusal(rl4sys, "cluster", "up", "azure.yaml", "--yes")


@pytest.mark.parametrize("processes", [(), ("--processes", "2")])
def test_a_port_that_is_taken_is_named(rl4sys: Here, silent: str, processes: tuple[str, ...]) -> None:
    err = refusal(rl4sys, "serve", "--data", "data", "--listen", silent, *processes)
    assert f"Cannot listen on {silent}: Address already in use. End the process that uses it" in err


@pytest.mark.slow
def test_a_plug_in_that_changed_since_a_sweep_began_is_named(rl4sys: Here) -> None:
    Path("own.py").write_text(PLUGIN)
    base = values(PPO_RUN, Path("runs")) | {"plugins": ["own.py"]}
    base["environment"] = {**base["environment"], "name": "Own-v0"}
    Path("base.yaml").write_text(json.dumps(base))
    Path("my.yaml").write_text(SWEEP)
    assert rl4sys("sweep", "my.yaml").code == 0
    (result,) = Path("runs/my").glob("*/*/result.json")
    result.unlink()
    Path("own.py").write_text(f"{PLUGIN}# changed\n")
    code, _, err = rl4sys("sweep", "my.yaml")
    assert (code, err.count("\n")) == (2, 1), err
    assert "own.py has changed since" in err


def test_a_plug_in_that_changed_since_a_study_began_is_named_also_if_its_trials_are_finished(rl4sys: Here) -> None:
    Path("own.py").write_text(PLUGIN)
    base = values(PPO_RUN, Path("runs")) | {"plugins": ["own.py"]}
    base["environment"] = {**base["environment"], "name": "Own-v0"}
    Path("base.yaml").write_text(json.dumps(base))
    Path("my.yaml").write_text(STUDY)
    run = Path("runs/my/trial-0000/seed0/my-trial-0000")
    run.mkdir(parents=True)
    began = {str(Path("own.py").resolve()): hashlib.sha256(b"other").hexdigest()}
    (run / "manifest.json").write_text(json.dumps({"plugins": began}))
    code, _, err = rl4sys("tune", "my.yaml")
    assert (code, err.count("\n")) == (2, 1), err
    assert "own.py has changed since trial-0000 of runs/my began" in err
