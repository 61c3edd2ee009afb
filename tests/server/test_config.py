from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.server.clients import ScriptedClient, acknowledged, join_request
from tests.server.loopback import StubTransport

from rl4sys.config import ConfigError, reference
from rl4sys.records import Durability
from rl4sys.server import ImpossibleSetup, ServiceLimits
from rl4sys.server.config import ServerConfig, load_config, server_options
from rl4sys.server.options import Rates


def write(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(values))
    return path


def test_without_a_file_everything_has_a_default() -> None:
    assert load_config(None, {}) == ServerConfig()


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "server.yaml", {"listen": "127.0.0.1:1", "durability": "os", "limits": {"max_learners": 3}})
    config = load_config(file, {"listen": "127.0.0.1:2"})
    assert (config.listen, config.durability, config.limits.max_learners) == ("127.0.0.1:2", Durability.OS, 3)


def test_paths_in_a_file_are_relative_to_it_and_those_of_the_command_line_are_not(tmp_path: Path) -> None:
    file = write(tmp_path / "server.yaml", {"data": "learners", "token_file": "/etc/tokens", "tls_cert": "a.pem"})
    config = load_config(file, {"tls_key": Path("here.pem")})
    assert (config.data, config.token_file) == (tmp_path / "learners", Path("/etc/tokens"))
    assert (config.tls_cert, config.tls_key) == (tmp_path / "a.pem", Path("here.pem"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lisen": "127.0.0.1:1"}, "lisen: unknown key; did you mean 'listen'"),
        ({"limits": {"max_learner": 1}}, r"limits\.max_learner: unknown key; did you mean 'max_learners'"),
        ({"limits": {"client_rates": {"steps_per_second": 0}}}, "more than 0"),
        ({"workers": "thread"}, "did you mean 'threads'"),
        ({"metrics_port": 70_000}, "at most 65535"),
        ({"log_format": "xml"}, "one of 'text', 'json'"),
        ({"experiments": {"a": 3}}, r"experiments\.a"),
    ],
)
def test_a_mistake_is_named_with_its_file(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = write(tmp_path / "server.yaml", values)
    with pytest.raises(ConfigError, match=message) as failed:
        server_options(load_config(file, {}))
    assert "server.yaml" in str(failed.value)


def test_a_config_file_is_also_refused_if_it_opens_the_server_to_other_machines(tmp_path: Path) -> None:
    file = write(tmp_path / "server.yaml", {"listen": "0.0.0.0:1"})
    with pytest.raises(ImpossibleSetup, match="--insecure"):
        server_options(load_config(file, {}))
    server_options(load_config(file, {"insecure": True}))


def test_the_packaged_config_is_found_by_name_and_offers_its_experiments() -> None:
    options = server_options(load_config(Path("lunar_lander.yaml"), {}))
    options.service.offers.require_sound("threads")
    assert options.service.offers.find("landing_dqn").algorithm == "dqn"


def test_every_setting_has_a_docstring() -> None:
    page = reference(ServerConfig, "The training server")
    for kind in (ServerConfig, ServiceLimits, Rates):
        for name, field in kind.model_fields.items():
            assert field.description, name
            assert name in page


@pytest.mark.slow
@pytest.mark.parametrize("program", [["rl4sys.server"], ["rl4sys.cli", "serve"]])
def test_both_commands_serve_a_config_file_in_a_process_without_torch(program: list[str], tmp_path: Path) -> None:
    experiments = {"default": {"algorithm": {"name": "ppo"}, "network": {"actor": {"hidden_dims": [8]}}}}
    values = {"listen": "127.0.0.1:0", "data": "data", "experiments": experiments, "log_format": "json"}
    file = write(tmp_path / "server.yaml", values)
    # sitecustomize: the serving process itself reports its imports.
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, pathlib, sys\n"
        "place = pathlib.Path(__file__).with_name(str(os.getpid()))\n"
        "atexit.register(lambda: place.write_text(' '.join(sys.modules)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", *program, "--config", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
    ) as server:
        assert server.stdout is not None
        try:
            port = int(re.fullmatch(r"serving (\d+)\n", server.stdout.readline())[1])  # type: ignore[index]
            client = ScriptedClient(StubTransport(port), join_request("a", None))
            assert acknowledged(client.push(range(3))) == [0, 1, 2]
        finally:
            server.terminate()
            try:
                out, err = server.communicate(timeout=60)
            finally:
                server.kill()
    assert (server.returncode, out) == (0, "")
    imported = (tmp_path / str(server.pid)).read_text().split()
    assert "rl4sys.server.service.training_service" in imported
    assert "torch" not in imported
    lines = [json.loads(line) for line in err.splitlines()]
    assert {"Draining."} < {line["message"] for line in lines}
    assert (tmp_path / "data" / "server.log").read_text().splitlines() == err.splitlines()
