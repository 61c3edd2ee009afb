"""C++ clients of a real server: alone, beside a Python client, during restarts, and with TLS and tokens."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cpp.programs import Server, attempt, needs_cpp, running, tool, write_config
from tests.pem_files import make_certificate, needs_openssl

from rl4sys.client import Ending, connect

pytestmark = [needs_cpp, pytest.mark.slow]


def last_line(text: str) -> dict[str, Any]:
    """The health that the tool printed at its end."""
    health: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return health


def require_each_once(server: Server, acknowledged: dict[str, int]) -> None:
    """Every acknowledged segment is in the log exactly once."""
    names = Counter((entry.client, entry.epoch, entry.sequence) for entry in server.entries())
    assert max(names.values()) == 1
    assert Counter(client for client, _, _ in names) == acknowledged


def act(agent: Any, episodes: int) -> None:
    rng = np.random.default_rng(2)
    for _ in range(episodes):
        with agent.episode() as episode:
            for _ in range(20):
                seen = rng.uniform(-1, 1, 2)
                choice = episode.act(seen)
                episode.reward(float(choice == (seen[0] > 0)))
            episode.end(rng.uniform(-1, 1, 2), Ending.TRUNCATED)


def test_learned_versions_reach_a_cpp_client_and_its_segments_the_log(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server)
        health = last_line(tool("run", config, "20", "3", "90"))
        assert health["version"] >= 3
        assert health["drops"] == {}
        assert health["damaged_patches"] == 0
        require_each_once(server, {"cpp": health["acknowledged"]})
        steps = sum(entry.steps for entry in server.entries())
        assert steps == health["decisions"] - health["unrecorded_decisions"]


def test_clients_in_two_languages_share_a_policy(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server)
        settings = json.loads(config.read_text()) | {"client_id": "python"}
        with running("run", config, "40", "2", "90") as cpp:
            assert cpp.stdout is not None
            assert cpp.stdout.readline() == "ready\n"
            with connect(settings) as agent:
                act(agent, 30)
                assert agent.flush(60)
                health = agent.health()
            output, complaints = cpp.communicate(timeout=120)
        assert cpp.returncode == 0, complaints
        assert health.learner == last_line(output)["learner"]
        acknowledged = {"cpp": last_line(output)["acknowledged"], "python": health.acknowledged}
        require_each_once(server, acknowledged)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["drained", "killed"])
def test_a_server_restart_loses_nothing_and_stores_nothing_twice(tmp_path: Path, how: signal.Signals) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server, outbox="outbox")
        with running("run", config, "300", "2", "120") as cpp:
            assert cpp.stdout is not None
            assert cpp.stdout.readline() == "ready\n"
            server.stop(how)
            server.start()
            output, complaints = cpp.communicate(timeout=180)
        assert cpp.returncode == 0, complaints
        health = last_line(output)
        assert health["drops"] == {}
        assert health["backlog"] == 0
        require_each_once(server, {"cpp": health["acknowledged"]})
        assert sum(entry.steps for entry in server.entries()) == health["decisions"] - health["unrecorded_decisions"]


def test_the_original_api_learns_too(tmp_path: Path) -> None:
    values = {
        "client_id": "original",
        "algorithm_name": "PPO",
        "algorithm_parameters": {"act_dim": 2, "input_size": 2, "batch_size": 20, "traj_per_epoch": 4},
        "max_traj_length": 50,
        "timeout": 60,
        "send_frequency": 2,
    }
    with Server(tmp_path) as server:
        path = tmp_path / "conf.json"
        path.write_text(json.dumps(values | {"train_server_address": f"127.0.0.1:{server.port}"}))
        health = last_line(tool("run-original", path, "6"))
        assert health["acknowledged"] == 6
        require_each_once(server, {"original": 6})


def test_each_client_starts_from_the_policy_that_the_other_cached(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server, cache="cache")
        settings = json.loads(config.read_text()) | {"client_id": "python", "cache": str(tmp_path / "cache")}
        with connect(settings) as agent:
            act(agent, 1)
    away = json.loads(config.read_text()) | {"timeout": 0.3}
    config.write_text(json.dumps(away))
    done = attempt("run", config, "1", "0", "20", "0.2")
    assert done.stdout.startswith("ready"), done.stderr
    assert last_line(done.stdout)["decisions"] == 20
    with connect(away | {"client_id": "python", "cache": str(tmp_path / "cache")}) as agent:
        assert agent.health().version is not None
        agent.close(0.0)


@needs_openssl
def test_a_client_connects_with_mutual_tls_and_a_token(tmp_path: Path) -> None:
    (certificate, key), tokens = make_certificate(tmp_path, "cert"), tmp_path / "tokens"
    tokens.write_text("a-long-token-for-this-test-only cpp policies=shared\n")
    options = ["--tls-cert", str(certificate), "--tls-key", str(key), "--token-file", str(tokens)]
    # It is self-signed, so it can be the authority for clients as well.
    with Server(tmp_path, *options, "--tls-client-ca", str(certificate)) as server:
        tls = {"ca": "cert.pem", "cert": "cert.pem", "key": "cert.key"}
        (tmp_path / "token").write_text("a-long-token-for-this-test-only\n")
        safe = {"tls": tls, "token_file": "token"}
        config = write_config(tmp_path / "agent.json", server, **safe)
        assert last_line(tool("run", config, "3", "0", "60"))["acknowledged"] > 0
        write_config(config, server, tls=tls, token="another")
        refused = attempt("run", config, "1", "0", "20")
        assert refused.returncode == 1
        assert "refuses client 'cpp'" in refused.stderr
        # A server that the client does not trust, and a client without a certificate.
        for lacking, why in (
            ({"cert": "cert.pem", "key": "cert.key"}, "The certificate of the server is not trusted"),
            ({"ca": "cert.pem"}, "No answer from the server"),
        ):
            write_config(config, server, **(safe | {"timeout": 1, "tls": lacking}))
            unknown = attempt("run", config, "1", "0", "20")
            assert unknown.returncode == 1
            assert why in unknown.stderr
