from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rl4sys.policy import NumpyPolicy, PolicyFileDamaged, PortablePolicy

from .specs import mlp, noise_for, weights_for


def written(path: Path) -> PortablePolicy:
    spec = mlp()
    policy = PortablePolicy(spec, spec, weights_for(spec), version=7, steps=1_000, environment={"name": "Any-v0"})
    policy.write(path)
    return policy


def test_a_policy_file_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    policy = written(tmp_path / "deep" / "a.rl4sys")
    read = PortablePolicy.read(tmp_path / "deep" / "a.rl4sys")
    assert read.weights.tobytes() == policy.weights.tobytes()
    assert (read.explore, read.exploit) == (policy.explore, policy.exploit)
    assert (read.version, read.steps, read.environment) == (7, 1_000, {"name": "Any-v0"})
    assert read.sha256 == policy.sha256
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["a.rl4sys"]


def test_a_policy_from_a_file_acts_like_the_one_that_was_written(tmp_path: Path) -> None:
    policy = written(tmp_path / "a.rl4sys")
    read = PortablePolicy.read(tmp_path / "a.rl4sys")
    before, after = NumpyPolicy(policy.explore, policy.weights), NumpyPolicy(read.explore, read.weights)
    observation = {"state": np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)}
    noise = noise_for(before, 50)
    np.testing.assert_array_equal(before.act(observation, noise).action, after.act(observation, noise).action)


def test_any_changed_byte_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "a.rl4sys"
    written(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(PolicyFileDamaged, match="rl4sys policy export RUN"):
            PortablePolicy.read(path)


@pytest.mark.parametrize("cut", [0, 10, 200, -4, -1])
def test_a_file_that_ends_early_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.rl4sys"
    written(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(PolicyFileDamaged, match="is not a valid policy file"):
        PortablePolicy.read(path)


def test_weights_of_another_program_are_refused(tmp_path: Path) -> None:
    spec = mlp()
    PortablePolicy(spec, spec, weights_for(spec)[:-1], 0, 0).write(tmp_path / "a.rl4sys")
    with pytest.raises(PolicyFileDamaged, match="its program takes 44"):
        PortablePolicy.read(tmp_path / "a.rl4sys")


def test_the_file_that_the_cpp_tests_read_is_what_python_writes() -> None:
    path = Path(__file__).parents[2] / "cpp/tests/policy/small.rl4sys"
    policy = PortablePolicy.read(path)
    assert policy.to_bytes() == path.read_bytes()
    assert policy.weights.tolist() == [2.0, 0.0, 0.0, 2.0, 0.5, 0.0]
