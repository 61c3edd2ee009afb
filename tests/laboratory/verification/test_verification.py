"""A repetition is compared bit for bit; a difference names the step, the tensor and the cause."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.runs import DQN, PPO, small
from rl4sys.experiments import ExperimentConfig, Run, RunDirectory, load_experiment
from rl4sys.experiments.hash_log import HashEntry, read_hash_log
from rl4sys.laboratory.verification.repetition import NothingToVerify, checkpoint_step, verify
from rl4sys.laboratory.verification.resume import check_resume

CHANCE = """
import random
import gymnasium
import numpy as np

class Moody(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    chance = random.SystemRandom()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 16
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.array([self.chance.uniform(-1, 1)], np.float32), 1.0, self.left == 0, False, {}

gymnasium.register("Moody-v0", entry_point=Moody)
"""


def trained(config: ExperimentConfig) -> RunDirectory:
    run = Run.create(config)
    run.train()
    return run.directory


def edit(path: Path, change: Callable[[dict[str, Any]], None], line: int) -> None:
    """Change one line of a file of JSON lines."""
    lines = path.read_text().splitlines()
    values = json.loads(lines[line])
    change(values)
    lines[line] = json.dumps(values)
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(params=[PPO, DQN], ids=["ppo", "dqn"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> RunDirectory:
    return trained(small(request.param, tmp_path))


def test_a_repetition_is_equal(directory: RunDirectory) -> None:
    result = verify(directory, None, None)
    assert (result.equal, result.first, result.last, result.causes) == (True, 0, 256, ())
    # Also the first weights, before any step; evaluations have records of their own.
    assert (result.marks, result.records) == (9, 10)


def test_a_repetition_from_a_checkpoint_is_equal_and_leaves_the_run_alone(directory: RunDirectory) -> None:
    before = {path: path.read_bytes() for path in directory.path.rglob("*") if path.is_file()}
    result = verify(directory, checkpoint_step(directory, "128"), 64)
    assert (result.equal, result.first, result.last) == (True, 128, 192)
    assert {path: path.read_bytes() for path in directory.path.rglob("*") if path.is_file()} == before


def test_a_tensor_that_differs_is_named_with_its_interval(tmp_path: Path) -> None:
    directory = trained(small(PPO, tmp_path))
    name = next(iter(next(read_hash_log(directory.hash_log)).weights))
    edit(directory.hash_log, lambda mark: mark["weights"].update({name: "another"}), 3)
    difference = verify(directory, None, None).difference
    assert difference is not None
    assert (difference.after, difference.step, difference.parts) == (64, 96, {"weights": (name,)})


def test_a_trajectory_difference_names_the_rollout_and_the_columns(tmp_path: Path) -> None:
    directory = trained(small(DQN, tmp_path))

    def other(mark: dict[str, Any]) -> None:
        mark["trajectory"]["reward"] += 1
        mark["turns"][2:] = [[step, chain + 1] for step, chain in mark["turns"][2:]]

    edit(directory.hash_log, other, 2)
    difference = verify(directory, None, None).difference
    assert difference is not None
    assert (difference.first, difference.parts["trajectory"]) == ("trajectory", ("reward",))
    assert (difference.after, difference.step) == (48, 56)


def test_a_metric_that_differs_is_shown_with_both_values(tmp_path: Path) -> None:
    directory = trained(small(PPO, tmp_path))
    edit(directory.metrics, lambda record: record["metrics"].update({"train/entropy": 9.0}), 1)
    result = verify(directory, None, None)
    assert result.difference is not None
    assert (result.difference.step, result.difference.parts) == (64, {"metrics": ("train/entropy",)})
    assert result.difference.values is not None
    assert result.difference.values[0] == "9.0"


def test_a_run_without_hashes_is_compared_by_its_metrics(tmp_path: Path) -> None:
    directory = trained(small(PPO, tmp_path))
    directory.hash_log.unlink()
    result = verify(directory, None, None)
    assert (result.equal, result.marks, result.records) == (True, 0, 10)
    assert "only metrics" in result.remarks[0]


def _then(**facts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest.update(facts)


CHANGES: Mapping[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "library": (lambda manifest: manifest["packages"].update({"torch": "1.0"}), "torch was 1.0, now "),
    "revision": (_then(git={"revision": "0" * 40, "dirty": False}), "the git revision was 000000000000, now "),
    "grade": (_then(grade="E2"), "the environment's exactness was E2, now E1"),
    "processor": (_then(cpu="ABACUS"), "cpu was ABACUS, now "),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_manifest_entry_is_a_likely_cause(tmp_path: Path, case: str) -> None:
    change, cause = CHANGES[case]
    directory = trained(small(PPO, tmp_path))
    facts = directory.read_manifest()
    change(facts)
    directory.write_manifest(facts)
    edit(directory.hash_log, lambda mark: mark["algorithm"].update({"parameters": "another"}), 1)
    result = verify(directory, None, 64)
    assert any(told.startswith(cause) for told in result.causes), result.causes


def test_another_seed_is_found_in_the_first_rollout_and_named(tmp_path: Path) -> None:
    directory = trained(small(PPO, tmp_path))
    values = directory.config.read_text().replace("seed: 0", "seed: 1")
    directory.config.write_text(values)
    result = verify(directory, None, None)
    assert result.difference is not None
    assert (result.difference.after, result.difference.step, result.last) == (0, 0, 0)
    assert "seed was 0, now 1" in result.causes


def test_an_environment_with_unseeded_randomness_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text(CHANCE)
    values = {"environment__name": "Moody-v0", "plugins": [str(tmp_path / "moody.py")]}
    result = verify(trained(small(PPO, tmp_path, **values)), None, None)
    assert result.difference is not None
    assert result.difference.first == "trajectory"
    assert "observation.observation" in result.difference.parts["trajectory"][0]
    assert result.causes[0].startswith("the environment has grade E3")


def test_a_changed_plugin_is_the_likeliest_cause(tmp_path: Path) -> None:
    plugin = tmp_path / "moody.py"
    plugin.write_text(CHANCE.replace("Moody-v0", "Moody-v1"))
    directory = trained(small(PPO, tmp_path, environment__name="Moody-v1", plugins=[str(plugin)]))
    plugin.write_text(plugin.read_text() + "\n# another text")
    assert verify(directory, None, None).causes[0] == f"the plug-in {plugin} was changed or is gone"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PPO, DQN], ids=["ppo", "dqn"])
def test_exact_resume_is_checked_with_a_real_kill(tmp_path: Path, kind: Mapping[str, Any]) -> None:
    result = check_resume(trained(small(kind, tmp_path)), None)
    assert result.equal
    assert 0 < result.first < result.last
    assert result.marks > 1
    assert result.records > 0


@pytest.mark.slow
def test_a_resume_that_is_not_exact_is_explained(tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text(CHANCE.replace("Moody-v0", "Moody-v2"))
    directory = trained(small(PPO, tmp_path, environment__name="Moody-v2", plugins=[str(tmp_path / "moody.py")]))
    result = check_resume(directory, 64)
    assert not result.equal
    assert any("grade E3" in cause for cause in result.causes)


def test_an_unknown_checkpoint_is_refused_with_a_list_of_the_known_ones(tmp_path: Path) -> None:
    directory = trained(small(PPO, tmp_path))
    assert checkpoint_step(directory, "latest") == 256
    assert checkpoint_step(directory, str(directory.checkpoints / f"{256:012d}")) == 256
    with pytest.raises(NothingToVerify, match=r"has no checkpoint '77'; it has: .*256"):
        checkpoint_step(directory, "77")
    with pytest.raises(NothingToVerify, match=r"has no records after step 256 .* Choose an earlier one"):
        verify(directory, 256, None)


def test_a_checkpoint_that_was_cleaned_up_does_not_count(tmp_path: Path) -> None:
    directory = trained(small(PPO, tmp_path))
    for manifest in directory.checkpoints.glob("*/manifest.json"):
        manifest.unlink()
    with pytest.raises(NothingToVerify, match="has no checkpoint 'latest'; it has none: leave --from out"):
        checkpoint_step(directory, "latest")


def test_a_resumed_run_has_the_hashes_of_an_uninterrupted_one(tmp_path: Path) -> None:
    config = small(DQN, tmp_path)
    whole = list(read_hash_log(trained(config).hash_log))
    run = Run.create(config)
    # In the middle of an interval: the chain of hashes has to be saved, too.
    run.train(stop=lambda: run.steps >= 104)
    Run.resume(run.directory).train()
    assert list(read_hash_log(run.directory.hash_log)) == whole


def test_many_rollouts_between_two_hash_entries_are_thinned(tmp_path: Path) -> None:
    directory = trained(small(DQN, tmp_path, training__log_frequency=250, algorithm__train_frequency=2))
    marks = list(read_hash_log(directory.hash_log))
    assert [mark.step for mark in marks] == [0, 128, 250, 256]
    assert 16 <= len(marks[1].turns) <= 32
    assert isinstance(marks[1], HashEntry)


def test_a_checkpoint_without_hashes_can_be_resumed(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.train(stop=lambda: run.steps >= 128)
    resumed = Run.resume(run.directory)
    resumed._parts.hash_log.restore(None)
    resumed.train()
    assert list(read_hash_log(run.directory.hash_log)) == []
    assert load_experiment(run.directory.config)
