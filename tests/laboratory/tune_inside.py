"""Scenarios with Ray Tune, each in a process of its own. Prints JSON.

python -m laboratory.tune_inside SCENARIO DIRECTORY
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler, PopulationBasedTraining

import rl4sys
from experiments.runs import PPO, values
from rl4sys.experiments import Result, RunDirectory

METRIC = {"metric": "evaluation/return", "mode": "max"}


def base(**training: int) -> dict[str, Any]:
    kind = values(PPO, Path("elsewhere"))
    return {**kind, "training": {**kind["training"], **training}}


def facts(run: str) -> dict[str, Any]:
    directory = RunDirectory(Path(run))
    result = Result.read(directory.result)
    assert result is not None
    return {"fingerprint": result.fingerprint, "inexact": directory.read_manifest()["inexact"]}


def save_and_restore(place: Path) -> Any:
    """One iteration, saved; another process's trial continues."""
    first, second = (rl4sys.RunTrainable({"config": base()}) for _ in range(2))
    results = [first.train()]
    first.save(str(place / "saved"))
    second.restore(str(place / "saved"))
    results.append(second.train())
    kept = ("timesteps_total", "evaluation/return")
    return facts(results[-1]["run"]) | {"results": [{name: result[name] for name in kept} for result in results]}


def exploit(place: Path) -> Any:
    """A trial continues from the checkpoint of another, once with its own settings and once without."""
    first = rl4sys.RunTrainable({"config": base(), "algorithm.lr": 1e-3})
    first.train()
    first.save(str(place / "saved"))
    runs = []
    for rate in (1e-3, 4e-3):
        other = rl4sys.RunTrainable({"config": base(), "algorithm.lr": rate})
        other.restore(str(place / "saved"))
        runs.append(other.train()["run"])
    unchanged, changed = (facts(run) for run in runs)
    settings = rl4sys.experiments.load_experiment(RunDirectory(Path(runs[1])).config)
    weights = {"unchanged": unchanged["fingerprint"]["learner"], "changed": changed["fingerprint"]["learner"]}
    return {"inexact": changed["inexact"], "lr": settings.algorithm.lr, **weights}


def plug_in(place: Path) -> Any:
    """An experiment whose plug-in is gone before the trial begins, as on another machine."""
    own = place / "own.py"
    own.write_text(
        "import gymnasium\ngymnasium.register('Own-v0', 'gymnasium.envs.classic_control:CartPoleEnv')\n", "utf-8"
    )
    kind = base()
    order = rl4sys.RunTrainable.order({**kind, "plugins": [str(own)], "environment": {"name": "Own-v0", "num_envs": 2}})
    own.unlink()
    return rl4sys.RunTrainable({"config": order, "algorithm.lr": 1e-3}).train()["timesteps_total"]


def asha(place: Path) -> Any:
    """Four trials, of which ASHA stops some at their first evaluation."""
    scheduler = ASHAScheduler(time_attr="timesteps_total", max_t=256, grace_period=128, reduction_factor=2)
    space = {"config": base(), "algorithm.lr": tune.grid_search([1e-3, 1e-5, 1e-6, 1e-7])}
    results = fit(place, space, scheduler)
    return [result.metrics["timesteps_total"] for result in results]


def population(place: Path) -> Any:
    """Two trials, the worse of which continues from the checkpoint of the other, in the same process."""
    scheduler = PopulationBasedTraining(
        time_attr="training_iteration",
        perturbation_interval=2,
        hyperparam_mutations={"algorithm.lr": tune.loguniform(1e-4, 1e-2)},
        quantile_fraction=0.5,
        synch=True,
    )
    space = {"config": base(total_timesteps=512), "algorithm.lr": tune.grid_search([1e-2, 1e-6])}
    results = fit(place, space, scheduler, reuse_actors=True)
    runs = [result.metrics["run"] for result in results]
    steps = [result.metrics["timesteps_total"] for result in results]
    return {"steps": steps, "inexact": [facts(run)["inexact"] for run in runs]}


def fit(place: Path, space: dict[str, Any], scheduler: Any, *, reuse_actors: bool = False) -> Any:
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    options = tune.TuneConfig(scheduler=scheduler, reuse_actors=reuse_actors, **METRIC)
    kept = tune.RunConfig(storage_path=str(place / "tune"), verbose=0)
    results = tune.Tuner(rl4sys.RunTrainable, param_space=space, tune_config=options, run_config=kept).fit()
    assert not results.errors, results.errors
    ray.shutdown()
    return results


if __name__ == "__main__":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
