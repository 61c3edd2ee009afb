from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.runs import PPO
from experiments.trained import copied, trained_run
from rl4sys.checkpoints import CheckpointDamaged, Checkpoints
from rl4sys.experience import ArraySpec
from rl4sys.experiments import RunDirectory, RunNotFound
from rl4sys.experiments.policies.trained_policy import PolicyNotFound, find_policy
from rl4sys.policy import DiscreteAction, PolicyFileDamaged, PortablePolicy
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.fold import Fold


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained_run(PPO, tmp_path_factory.mktemp("trained"), environment__normalize_obs=True)


def blob(run: RunDirectory, step: int | None) -> bytes:
    state = Checkpoints(run.checkpoints, 2).load_policy(step).state
    return state["learner"]["store"]["blob"].tobytes()  # type: ignore[index,call-overload,union-attr]


def test_a_run_is_its_best_checkpoint_unless_the_latest_is_wanted(run: RunDirectory) -> None:
    best, latest = find_policy(run.path), find_policy(run.path, best=False)
    assert best.policy.steps == Checkpoints(run.checkpoints, 2).best()
    assert latest.policy.steps == 256
    assert latest.policy.weights.tobytes() == blob(run, 256)
    assert latest.environment is not None
    assert latest.environment.name == "CartPole-v1"
    assert "observation.mean" in [tensor.name for tensor in latest.policy.exploit.program.tensors]


def test_the_beginning_of_a_name_is_enough(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.path.parent)
    assert find_policy("ppo-Cart").origin == Path(run.path.name)


@pytest.mark.parametrize("inside", ["", "state.json", "arrays.safetensors", "manifest.json"])
def test_a_checkpoint_or_a_file_in_it_is_that_checkpoint(run: RunDirectory, inside: str) -> None:
    step = Checkpoints(run.checkpoints, 2).steps()[0]
    found = find_policy(run.checkpoints / f"{step:012d}" / inside)
    assert found.policy.steps == step
    assert found.policy.weights.tobytes() == blob(run, step)
    assert found.environment is not None


def test_links_and_the_folder_of_checkpoints_are_understood(run: RunDirectory) -> None:
    assert find_policy(run.checkpoints / "latest").policy.steps == 256
    assert find_policy(run.checkpoints, best=False).policy.steps == 256
    assert find_policy(run.config, best=False).policy.steps == 256


@pytest.mark.parametrize("name", ["latest.rl4sys", "latest"])
def test_a_policy_that_a_run_saved_is_found_with_and_without_its_suffix(run: RunDirectory, name: str) -> None:
    found = find_policy(run.policies / name)
    assert found.policy.weights.tobytes() == blob(run, 256)
    assert found.environment == find_policy(run.path).environment


def old_policy_folder(run: RunDirectory) -> Path:
    """The policy of a run as versions before 0.2 wrote it."""
    policy = PortablePolicy.read(run.policies / "latest.rl4sys")
    (run.policies / "latest.rl4sys").unlink()
    folder = run.policies / "latest"
    folder.mkdir()
    (folder / "explore.json").write_text(policy.explore.to_json())
    (folder / "exploit.json").write_text(policy.exploit.to_json())
    (folder / "weights.f32").write_bytes(policy.weights.tobytes())
    manifest = {"version": policy.version, "steps": policy.steps, "sha256": policy.sha256}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_policy_folder_of_an_older_version_is_read(run: RunDirectory, tmp_path: Path) -> None:
    found = find_policy(old_policy_folder(copied(run, tmp_path)))
    assert (found.policy.steps, found.policy.weights.tobytes()) == (256, blob(run, 256))
    assert found.environment is not None


def test_a_file_carries_its_environment(run: RunDirectory, tmp_path: Path) -> None:
    find_policy(run.path).policy.write(tmp_path / "a.rl4sys")
    found = find_policy(tmp_path / "a.rl4sys")
    assert found.environment == find_policy(run.path).environment
    assert found.training is None


def test_the_training_network_holds_what_was_published(run: RunDirectory) -> None:
    found = find_policy(run.path)
    assert found.training is not None
    np.testing.assert_array_equal(found.training.weights(), found.policy.weights)


def test_a_learner_of_a_server_is_found(tmp_path: Path) -> None:
    observation = (ArraySpec("observation", "float32", (4,)),)
    setup = LearnerSetup("balance", "ppo", {}, observation, DiscreteAction(2), max_segment_steps=64)
    setup.write(tmp_path)
    with pytest.raises(FileNotFoundError, match="has not saved one yet"):
        find_policy(tmp_path)
    fold = Fold(tmp_path, 0, lambda event: None)
    fold.save()
    fold.close()
    found = find_policy(tmp_path)
    assert (found.name, found.environment) == ("balance", None)
    assert found.policy.weights.tobytes() == fold.learner.store.newest.blob.tobytes()


def test_a_damaged_checkpoint_is_passed_over_for_a_run_and_refused_by_itself(run: RunDirectory, tmp_path: Path) -> None:
    damaged = copied(run, tmp_path)
    place = damaged.checkpoints / f"{256:012d}"
    (place / "arrays.safetensors").write_bytes(b"")
    found = find_policy(damaged.path, best=False)
    assert found.policy.steps < 256
    assert "arrays.safetensors" in found.skipped[0]
    with pytest.raises(CheckpointDamaged, match=r"step 256 cannot be read.*Give .* for the newest good one"):
        find_policy(place)


def test_damaged_policy_files_are_refused(run: RunDirectory, tmp_path: Path) -> None:
    folder = old_policy_folder(copied(run, tmp_path))
    (folder / "weights.f32").write_bytes(b"\0" * 8)
    with pytest.raises(PolicyFileDamaged, match="Give the run itself"):
        find_policy(folder)


def test_a_missing_policy_is_refused_with_suggestions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cartpole.rl4sys").touch()
    with pytest.raises(PolicyNotFound, match=r"Did you mean cartpole\.rl4sys\? Write one with"):
        find_policy("cartpol.rl4sys")
    (tmp_path / "a.onnx").touch()
    with pytest.raises(PolicyNotFound, match="made for other programs"):
        find_policy("a.onnx")
    with pytest.raises(RunNotFound, match="There is no run 'ppo'"):
        find_policy("ppo")
