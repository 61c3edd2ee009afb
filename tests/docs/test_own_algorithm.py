from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.experiments import ExperimentConfig, Run, load_experiment
from rl4sys.server.config import load_config, server_options

from .documents import files

CONFIG = Path(__file__).parents[2] / "examples" / "own_algorithm" / "reinforce_cartpole.yaml"
PAGE = CONFIG.parents[2] / "docs" / "own_algorithm.md"


def _config(directory: Path, **training: Any) -> ExperimentConfig:
    overrides = {
        "experiment": {"directory": str(directory), "threads": 1, "seed": 2},
        "training": {"eval_frequency": 0, **training},
        "logging": {"terminal": False, "tensorboard": False},
    }
    return load_experiment(CONFIG, overrides)


def test_the_example_learns_to_balance_the_pole(tmp_path: Path) -> None:
    run = Run.create(_config(tmp_path, total_timesteps=10_000))
    untrained = run.evaluate().mean

    run.train()

    assert untrained < 50.0 < 100.0 < run.evaluate().mean


def test_the_example_resumes_to_the_bit(tmp_path: Path) -> None:
    config = _config(tmp_path, total_timesteps=3_000, log_frequency=256)
    whole = Run.create(config).train()

    interrupted = Run.create(config)
    assert not interrupted.train(stop=lambda: interrupted.steps >= 1_500).finished
    resumed = Run.resume(interrupted.directory).train()

    assert resumed.fingerprint == whole.fingerprint


def test_the_loss_on_the_page_replaces_that_of_sac(tmp_path: Path) -> None:
    source = dict(files(PAGE))["bold_sac.py"]
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
    (tmp_path / "bold_sac.py").write_text(source)
    settings = {"lr": 0.01, "batch_size": 32, "learning_starts": 64, "temperature": 0.1}
    weights = []
    for name in ("sac", "bold_sac"):
        config = load_experiment(
            {
                "experiment": {"directory": str(tmp_path / name), "threads": 1, "seed": 1},
                "plugins": [str(tmp_path / "bold_sac.py")],
                "algorithm": {"name": name, **settings},
                "environment": {"name": "Pendulum-v1"},
                "network": {"actor": {"hidden_dims": [16]}, "critic": {"hidden_dims": [16]}},
                "training": {"total_timesteps": 128, "eval_frequency": 0},
                "logging": {"terminal": False, "tensorboard": False},
            }
        )
        run = Run.create(config)
        assert run.train().finished
        assert run.learner.updates == 64
        weights.append(run.learner.store.newest.blob)
    assert not np.array_equal(*weights)


def test_the_logger_on_the_page_writes_returns(tmp_path: Path) -> None:
    (tmp_path / "tally.py").write_text(dict(files(PAGE))["tally.py"])
    own = {"plugins": [str(CONFIG.with_name("reinforce.py")), str(tmp_path / "tally.py")]}
    config = load_experiment(
        {**_config(tmp_path, total_timesteps=512).model_dump(mode="json"), **own},
        {"logging.others": [{"name": "tally", "file": "t.txt"}]},
    )

    run = Run.create(config)
    run.train()

    step, value = (run.directory.path / "t.txt").read_text().split()
    assert (int(step), float(value)) == (512, run.result.evaluation)


def test_the_server_on_the_page_offers_the_algorithm(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text(dict(files(PAGE))["server.yaml"])
    (tmp_path / "reinforce.py").symlink_to(CONFIG.with_name("reinforce.py"))

    options = server_options(load_config(tmp_path / "server.yaml", {})).service

    options.offers.require_sound("threads", options.plugins)
    assert options.offers.find("default").algorithm == "reinforce"
