from pathlib import Path
from typing import Any

from rl4sys.experiments import ExperimentConfig, Run, load_experiment

CONFIG = Path(__file__).parents[2] / "examples" / "own_algorithm" / "reinforce_cartpole.yaml"


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
