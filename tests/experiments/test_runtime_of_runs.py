"""A run is resumed with the kernel set that it began with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.native import needs_native

from rl4sys.config import ConfigError
from rl4sys.experiments import Run, RunDirectory
from rl4sys.policy import NUMPY, kernel_set, native_extension

from .runs import PPO, small


@pytest.fixture
def without_native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    native_extension.cache_clear()
    monkeypatch.setitem(sys.modules, "rl4sys_native", None)
    yield
    native_extension.cache_clear()


def interrupted(directory: Path, runtime: str) -> RunDirectory:
    run = Run.create(small(PPO, directory, training__runtime=runtime))
    run.train(stop=lambda: run.steps >= 64)
    return run.directory


def test_a_run_begins_with_numpy_whatever_is_installed_and_resumes_with_it(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.train(stop=lambda: run.steps >= 64)
    assert run.directory.read_manifest()["kernels"] == NUMPY
    with Run.resume(run.directory) as resumed:
        assert resumed.components.kernels == NUMPY
        assert resumed.inexact == ()


@needs_native
def test_a_native_run_resumes_exactly(tmp_path: Path) -> None:
    whole = Run.create(small(PPO, tmp_path / "whole", training__runtime="native")).train()
    directory = interrupted(tmp_path / "parts", "native")
    assert directory.read_manifest()["kernels"] == kernel_set()
    resumed = Run.resume(directory)
    assert resumed.train().fingerprint == whole.fingerprint
    assert resumed.inexact == ()


@needs_native
def test_a_native_run_is_not_resumed_where_its_kernels_are_missing(tmp_path: Path) -> None:
    directory = interrupted(tmp_path, "native")
    directory.write_manifest(directory.read_manifest() | {"kernels": "native-sve9"})
    with pytest.raises(ConfigError, match=r"began with the kernel set 'native-sve9'.*training\.runtime=numpy"):
        Run.resume(directory)


@needs_native
def test_another_runtime_may_be_chosen_and_is_noted_as_inexact(tmp_path: Path) -> None:
    directory = interrupted(tmp_path, "native")
    with Run.resume(directory, overrides=["training.runtime=numpy"]) as resumed:
        assert resumed.components.kernels == NUMPY
        assert any(f"the kernel set was {kernel_set()}, now numpy" in reason for reason in resumed.inexact)
    assert directory.read_manifest()["kernels"] == NUMPY


@pytest.mark.usefixtures("without_native")
def test_a_native_run_does_not_begin_without_the_extension(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.runtime: rl4sys-native is not installed: pip install"):
        Run.create(small(PPO, tmp_path, training__runtime="native"))
