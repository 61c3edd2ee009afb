from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from tests.client.fake_server import small_policy, some_weights
from tests.native import needs_native

from rl4sys.policy import (
    NUMPY,
    NativePolicy,
    NativeUnavailable,
    NumpyPolicy,
    RuntimeChoice,
    kernel_set,
    native_extension,
    native_problem,
    require_kernel_set,
    run_policy,
)
from rl4sys.policy.policy_runtime import _warn_once


@pytest.fixture(autouse=True)
def look_again() -> Iterator[None]:
    """What is installed is looked up once in a process."""
    native_extension.cache_clear()
    _warn_once.cache_clear()
    yield
    native_extension.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, extension: ModuleType | None) -> None:
    monkeypatch.setitem(sys.modules, "rl4sys_native", extension)


@pytest.fixture
def outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    extension = ModuleType("rl4sys_native")
    extension.__version__ = "0.0.1"  # type: ignore[attr-defined]
    pretend(monkeypatch, extension)


def test_numpy_runs_policies_where_nothing_else_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, None)
    assert kernel_set() == NUMPY
    assert isinstance(run_policy(small_policy(), kernels=kernel_set()), NumpyPolicy)


def test_what_is_missing_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, None)
    with pytest.raises(NativeUnavailable, match=r"pip install 'rl4sys\[native\]'.*or `runtime: numpy`"):
        kernel_set(RuntimeChoice.NATIVE)


@pytest.mark.usefixtures("outdated")
def test_another_version_is_named_in_one_line_and_numpy_decides(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert [kernel_set(), kernel_set()] == [NUMPY, NUMPY]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "rl4sys-native 0.0.1 does not belong to rl4sys" in line
    assert "numpy" in line


def test_a_file_for_another_processor_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "rl4sys_native"  # type: ignore[operator]
    broken.mkdir()
    (broken / "__init__.py").write_text("from rl4sys_native import _core\n")
    (broken / f"_core{_suffix()}").write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 200)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in list(sys.modules) if name.partition(".")[0] == "rl4sys_native"]:
        monkeypatch.delitem(sys.modules, name)
    with caplog.at_level(logging.WARNING):
        assert kernel_set() == NUMPY
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("rl4sys-native cannot be loaded on this machine")
    assert "\n" not in line


def _suffix() -> str:
    from importlib.machinery import EXTENSION_SUFFIXES

    return EXTENSION_SUFFIXES[0]


def test_numpy_can_always_be_chosen() -> None:
    assert kernel_set(RuntimeChoice.NUMPY) == NUMPY
    require_kernel_set(NUMPY)


@needs_native
def test_the_native_runtime_is_chosen_where_it_is_installed() -> None:
    kernels = kernel_set()
    assert kernels == kernel_set(RuntimeChoice.NATIVE)
    assert kernels.startswith("native-")
    assert isinstance(run_policy(small_policy(), kernels=kernels), NativePolicy)


@needs_native
def test_a_kernel_set_of_another_machine_is_refused() -> None:
    with pytest.raises(NativeUnavailable, match=r"no kernel set 'native-sve9', only numpy, native-"):
        require_kernel_set("native-sve9")


@needs_native
def test_weights_of_another_architecture_are_refused() -> None:
    policy = NativePolicy(small_policy())
    with pytest.raises(ValueError, match="another architecture"):
        policy.load(np.zeros(3, np.float32))


@needs_native
def test_both_runtimes_explain_an_observation_that_does_not_fit() -> None:
    spec = small_policy()
    errors = []
    for policy in (NumpyPolicy(spec, some_weights(spec)), NativePolicy(spec, some_weights(spec))):
        with pytest.raises(ValueError, match="cannot read this observation") as raised:
            policy.act({"observation": np.zeros((2, 7), np.float32)}, np.zeros((2, 1), np.float32))
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


@needs_native
def test_arrays_that_the_extension_cannot_read_are_refused_and_not_read() -> None:
    assert native_problem() is None
    policy = NativePolicy(small_policy(), some_weights(small_policy()))
    with pytest.raises(ValueError, match=r"2 rows of observation: float32\[8\]"):
        policy.act_on_row({"observation": np.zeros((1, 8), np.float32)}, 1, np.zeros((1, 1), np.float32))


@needs_native
def test_rows_that_are_not_finite_are_named() -> None:
    policy = NativePolicy(small_policy(), some_weights(small_policy()))
    observation = np.zeros((3, 8), np.float32)
    observation[1] = np.nan
    _, finite = policy.act_on_rows({"observation": observation}, np.zeros((3, 1), np.float32))
    assert finite.tolist() == [True, False, True]
