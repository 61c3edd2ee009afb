"""An algorithm in a user's own file learns on a server, in worker processes and in threads."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.server.clients import ScriptedClient, eventually, join_request

from rl4sys.config import ConfigError
from rl4sys.server import InProcessTransport, TrainingService
from rl4sys.server.config import load_config, server_options

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_algorithm"
REINFORCE = {
    "algorithm": {"name": "reinforce", "lr": 1e-2},
    "network": {"actor": {"hidden_dims": [8]}, "critic": {"hidden_dims": [8]}},
    "buffer": {"size": 16},
}


def write(directory: Path, **values: Any) -> Path:
    path = directory / "server.yaml"
    path.write_text(yaml.safe_dump({"experiments": {"default": REINFORCE}, "durability": "os", **values}))
    return path


@pytest.mark.parametrize("workers", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_an_algorithm_of_a_plugin_learns_on_a_server(tmp_path: Path, workers: str) -> None:
    # Relative to the config, and found from any working directory.
    (tmp_path / "reinforce.py").symlink_to(EXAMPLE / "reinforce.py")
    config = load_config(write(tmp_path, plugins=["reinforce.py"], workers=workers, data="data"), {})
    service = TrainingService(config.data, server_options(config).service)
    try:
        client = ScriptedClient(InProcessTransport(service), join_request("a", None))
        first = client.weights(want=0)
        client.push(range(4))
        eventually(lambda: service.current_status().learners[0].version >= 1)
        assert (client.weights() != first).any()
    finally:
        service.drain()


@pytest.mark.parametrize("workers", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_plugin_that_cannot_be_loaded_is_refused_at_the_start(tmp_path: Path, workers: str) -> None:
    (tmp_path / "own.py").write_text("1 / 0")
    options = server_options(load_config(write(tmp_path, plugins=["own.py"], workers=workers), {}))
    with pytest.raises(ConfigError, match=r"plugins: The plug-in '.*own\.py' cannot be loaded: ZeroDivisionError"):
        TrainingService(tmp_path / "data", options.service)


def test_workers_load_algorithms_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rl4sys.server.workers.learner_config import load_learner_plugins, resolve

    (tmp_path / "installed_algorithm.py").write_text(
        "from rl4sys.algorithms import register_algorithm\n"
        "from rl4sys.algorithms.ppo import PPOConfig\n"
        "@register_algorithm('installed')\n"
        "class Installed(PPOConfig):\n    '''Like PPO.'''\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    point = importlib.metadata.EntryPoint("installed", "installed_algorithm", "rl4sys.algorithms")
    monkeypatch.setattr("rl4sys.config.registry.installed", lambda: (point,))
    load_learner_plugins(())
    assert type(resolve("installed", {}).algorithm).__name__ == "Installed"
