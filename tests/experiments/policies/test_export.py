from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance.golden import EPISODES
from experiments.runs import DQN, OFF_POLICY, PETS, PPO
from experiments.trained import trained_run
from policy.specs import mlp, recurrent, weights_for
from rl4sys.experiments import RunDirectory
from rl4sys.experiments.policies.description import ForeignModel, describe_onnx, describe_policy
from rl4sys.experiments.policies.export import export_policy, spec_for_onnx, usual_name
from rl4sys.experiments.policies.greedy import UnsupportedHead
from rl4sys.experiments.policies.latency import bench_onnx, bench_policy
from rl4sys.experiments.policies.parity import NumpyOutputs, ParityBroken, parity
from rl4sys.experiments.policies.trained_policy import TrainedPolicy, find_policy
from rl4sys.policy import PolicySpec, PortablePolicy

PENDULUM = {
    **OFF_POLICY,
    "algorithm": {**OFF_POLICY["algorithm"], "name": "sac"},
    "environment": {"name": "Pendulum-v1", "num_envs": 2, "normalize_obs": True},
}
DISCRETE_SAC = {**PENDULUM, "environment": {"name": "CartPole-v1", "num_envs": 2}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained_run(PPO, tmp_path_factory.mktemp("trained"), environment__normalize_obs=True)


def without_training(spec: PolicySpec) -> TrainedPolicy:
    return TrainedPolicy(Path("made"), PortablePolicy(spec, spec, weights_for(spec), 0, 0), "made")


def test_a_file_of_ours_is_the_policy_of_the_checkpoint(run: RunDirectory, tmp_path: Path) -> None:
    trained = find_policy(run.path)
    exported = export_policy(trained, "rl4sys", tmp_path / "a.rl4sys")
    assert PortablePolicy.read(exported.path).weights.tobytes() == trained.policy.weights.tobytes()
    assert exported.parity.largest < 1e-5
    assert exported.against == "the training network of the checkpoint"
    assert [path.name for path in tmp_path.iterdir()] == ["a.rl4sys"]


def test_a_layer_published_as_zeros_at_first_exports_as_it_was_trained(tmp_path: Path) -> None:
    trained = find_policy(trained_run(DISCRETE_SAC, tmp_path).path)
    assert trained.policy.steps > DISCRETE_SAC["algorithm"]["learning_starts"]
    assert export_policy(trained, "rl4sys", tmp_path / "a.rl4sys").parity.largest < 1e-5


def test_a_policy_that_plans_exports_with_its_model_and_not_to_onnx(tmp_path: Path) -> None:
    trained = find_policy(trained_run(PETS, tmp_path, environment__name="Pendulum-v1").path)
    exported = export_policy(trained, "rl4sys", tmp_path / "a.rl4sys")
    assert exported.parity.largest < 1e-5
    assert PortablePolicy.read(exported.path).exploit.model == trained.policy.exploit.model
    assert [latency.runtime for latency in bench_policy(trained.policy, 1, 10)] == ["numpy", "numpy"]
    with pytest.raises(UnsupportedHead, match="plans every decision"):
        export_policy(trained, "onnx", tmp_path / "a.onnx")


@pytest.mark.parametrize("name", EPISODES)
def test_policies_with_latents_attention_and_memory_of_actions_are_inspected_timed_and_exported(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    spec = EPISODES[name].spec
    made = without_training(spec)
    described = describe_policy(made)
    assert [part["name"] for part in described["memory"]] == [memory.name for memory in spec.program.carry]
    assert [part["size"] for part in described["chance"]] == [chance.size for chance in spec.program.chance]
    assert len(list(bench_policy(made.policy, rows=1, decisions=10))) == 3
    for kind in ("rl4sys", "onnx"):
        assert export_policy(made, kind, tmp_path / f"a.{kind}").parity.largest < 1e-4


@pytest.mark.parametrize("kind", [DQN, PENDULUM], ids=["dqn", "sac"])
def test_every_algorithm_exports_to_onnx(kind: dict[str, object], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    trained = find_policy(trained_run(kind, tmp_path).path)
    exported = export_policy(trained, "onnx", tmp_path / "a.onnx")
    assert exported.parity.largest < 1e-5
    assert exported.size == (tmp_path / "a.onnx").stat().st_size
    assert spec_for_onnx(trained.policy) == trained.policy.explore


@pytest.mark.parametrize("kind", ["rl4sys", "onnx"])
def test_a_policy_that_was_not_trained_is_not_written(run: RunDirectory, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("onnxruntime")
    trained = find_policy(run.path)
    weights = trained.policy.weights.copy()
    weights[-1] += 0.01
    changed = replace(trained, policy=replace(trained.policy, weights=weights))
    with pytest.raises(ParityBroken, match=r"differs from the training network by .* Nothing was written"):
        export_policy(changed, kind, tmp_path / "a")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("spec", [mlp(), recurrent()], ids=["mlp", "recurrent"])
def test_a_difference_is_found_wherever_it_is(spec: PolicySpec) -> None:
    weights = weights_for(spec)
    assert parity(spec, weights, NumpyOutputs(spec, weights)).largest < 1e-5
    for place in range(0, len(weights), 9):
        other = weights.copy()
        other[place] += 0.5
        assert parity(spec, weights, NumpyOutputs(spec, other)).largest > 1e-4, place


def test_nan_is_never_parity() -> None:
    spec = mlp()
    weights = np.full_like(weights_for(spec), np.nan)
    with pytest.raises(ParityBroken, match="by nan"):
        parity(spec, weights, NumpyOutputs(spec, weights)).require(1e6)


def test_the_usual_name_is_that_of_the_run(run: RunDirectory) -> None:
    assert usual_name(find_policy(run.path), "onnx") == Path(f"{run.path.name}.onnx")
    assert usual_name(find_policy(run.path), "rl4sys") == Path(f"{run.path.name}.rl4sys")


def test_facts_add_up(run: RunDirectory) -> None:
    trained = find_policy(run.path)
    values = describe_policy(trained)
    assert values["weights"] == trained.policy.weights.size == sum(tensor["size"] for tensor in values["tensors"])
    assert sum(op["weights"] for op in values["ops"]) == values["weights"]
    assert values["normaliser"] == ["observation"]
    assert (values["heads"]["explore"]["kind"], values["heads"]["exploit"]["kind"]) == ("categorical", "deterministic")
    assert values["sha256"] == trained.policy.sha256


def test_an_onnx_file_tells_the_same_facts(run: RunDirectory, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    trained = find_policy(run.path)
    export_policy(trained, "onnx", tmp_path / "a.onnx")
    values, own = describe_onnx(tmp_path / "a.onnx"), describe_policy(trained)
    assert all(values[name] == own[name] for name in ("version", "steps", "sha256", "ops", "weights", "action"))
    assert values["onnx"]["outputs"] == ["action", "logits"]
    foreign = onnx.helper.make_model(onnx.helper.make_graph([], "empty", [], []))
    onnx.save(foreign, str(tmp_path / "b.onnx"))
    with pytest.raises(ForeignModel, match="was not exported by rl4sys"):
        describe_onnx(tmp_path / "b.onnx")


def test_decisions_are_timed_in_every_runtime(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    made = without_training(recurrent())
    found = list(bench_policy(made.policy, rows=2, decisions=20))
    assert [(one.runtime, one.policy) for one in found] == [
        ("numpy", "exploit"),
        ("numpy", "explore"),
        ("onnxruntime", "exploit"),
    ]
    assert all(0 < one.median <= one.p99 for one in found)
    export_policy(made, "onnx", tmp_path / "a.onnx")
    assert [one.runtime for one in bench_onnx(tmp_path / "a.onnx", rows=1, decisions=20)] == ["onnxruntime"]
