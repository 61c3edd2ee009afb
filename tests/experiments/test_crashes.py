"""An error in the code of a user leaves its traceback and the state before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import pytest

from rl4sys.environments.making import UnsuitableArguments
from rl4sys.environments.names import UnknownEnvironment
from rl4sys.experiments import Run, RunDirectory
from rl4sys.experiments.components import Components
from rl4sys.laboratory.run_index.records import read_record

from .runs import PPO, small


class Fragile(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole that fails while `fails` is true, or cannot be made while `is_broken` is."""

    fails = False
    is_broken = False

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        super().__init__(environment)
        if Fragile.is_broken:
            raise LookupError("my file is missing")

    def step(self, action: Any) -> Any:
        if Fragile.fails:
            raise ZeroDivisionError("my bug")
        return self.env.step(action)


gymnasium.register("Fragile-v0", lambda: Fragile(gymnasium.make("CartPole-v1")), max_episode_steps=500)


@pytest.fixture(autouse=True)
def _works_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fragile, "fails", False)
    monkeypatch.setattr(Fragile, "is_broken", False)


def test_an_error_in_an_environment_leaves_its_traceback_and_a_checkpoint(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path, environment__name="Fragile-v0", training__checkpoint_frequency=1000))
    original = run.step

    def step() -> None:
        Fragile.fails = run.steps == 96
        original()

    run.step = step  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError) as raised:
        run.train()
    report = (run.directory.path / "error.txt").read_text()
    assert "step 96" in report
    assert 'raise ZeroDivisionError("my bug")' in report
    assert f"at {__file__}:" in raised.value.__notes__[0]
    Fragile.fails = False
    resumed = Run.resume(run.directory)
    assert (resumed.steps, resumed.inexact) == (96, ("step 96: an error interrupted the episodes, which begin again",))
    assert resumed.train().finished


def test_a_failing_last_evaluation_does_not_lose_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run.create(small(PPO, tmp_path, training__eval_frequency=0))
    monkeypatch.setattr(Components, "evaluate", lambda *given: 1 // 0)
    result = run.train()
    assert (result.finished, result.evaluation, run.directory.result.is_file()) == (True, None, True)
    assert "its last evaluation failed: ZeroDivisionError" in caplog.text


def test_an_error_between_turns_leaves_an_exact_checkpoint(tmp_path: Path) -> None:
    whole = Run.create(small(PPO, tmp_path)).train()
    run = Run.create(small(PPO, tmp_path, training__checkpoint_frequency=1000))
    with pytest.raises(ZeroDivisionError):
        run.train(stop=lambda: run.steps == 96 and bool(1 // 0))
    resumed = Run.resume(run.directory)
    assert (resumed.steps, resumed.inexact) == (96, ())
    assert resumed.train().fingerprint["learner"] == whole.fingerprint["learner"]


def test_an_error_in_the_first_steps_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    Fragile.fails = True
    with pytest.raises(ZeroDivisionError) as raised:
        Run.create(small(PPO, tmp_path, environment__name="Fragile-v0"))
    (path,) = tmp_path.iterdir()
    assert 'raise ZeroDivisionError("my bug")' in (path / "error.txt").read_text()
    assert f"at {__file__}:" in raised.value.__notes__[0]
    record = read_record(tmp_path, path.name)
    assert (record.status, record.cause, record.steps) == ("failed", "ZeroDivisionError: my bug", 0)
    with pytest.raises(ZeroDivisionError):
        Run.resume(RunDirectory(path))
    Fragile.fails = False
    resumed = Run.resume(RunDirectory(path))
    assert (resumed.components.grade.name, resumed.train().finished) == ("E1", True)


def test_an_error_in_the_constructor_leaves_a_run_that_begins_when_it_is_corrected(tmp_path: Path) -> None:
    whole = Run.create(small(PPO, tmp_path / "whole", environment__name="Fragile-v0")).train()
    Fragile.is_broken = True
    with pytest.raises(LookupError) as raised:
        Run.create(small(PPO, tmp_path / "broken", environment__name="Fragile-v0"))
    (path,) = (tmp_path / "broken").iterdir()
    assert 'raise LookupError("my file is missing")' in (path / "error.txt").read_text()
    assert f"at {__file__}:" in raised.value.__notes__[0]
    record = read_record(path.parent, path.name)
    assert (record.status, record.cause, record.steps) == ("failed", "LookupError: my file is missing", 0)
    with pytest.raises(LookupError):
        Run.resume(RunDirectory(path))
    Fragile.is_broken = False
    resumed = Run.resume(RunDirectory(path))
    assert (resumed.inexact, resumed.train().fingerprint) == ((), whole.fingerprint)


def test_a_run_that_could_not_begin_may_get_another_environment(tmp_path: Path) -> None:
    Fragile.is_broken = True
    with pytest.raises(LookupError):
        Run.create(small(PPO, tmp_path, environment__name="Fragile-v0"))
    (path,) = tmp_path.iterdir()
    resumed = Run.resume(RunDirectory(path), overrides=["environment.name=CartPole-v1"])
    assert (resumed.config.environment.name, resumed.inexact, resumed.train().finished) == ("CartPole-v1", (), True)


def test_settings_that_are_refused_leave_no_run(tmp_path: Path) -> None:
    with pytest.raises(UnknownEnvironment):
        Run.create(small(PPO, tmp_path / "runs", environment__name="Nowhere-v0"))
    assert not (tmp_path / "runs").exists()


def test_a_crashed_run_counts_the_steps_of_its_checkpoint(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path, training__log_frequency=1000, training__eval_frequency=0))
    with pytest.raises(ZeroDivisionError):
        run.train(stop=lambda: run.steps == 96 and bool(1 // 0))
    assert read_record(tmp_path, run.directory.path.name).steps == 96


class Confused(gymnasium.Env[Any, Any]):
    """Its constructor uses a wrong type."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Discrete(3) + 1


gymnasium.register("Confused-v0", Confused)


def test_a_wrong_type_in_a_constructor_is_not_blamed_on_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError) as raised:
        Run.create(small(PPO, tmp_path, environment__name="Confused-v0"))
    assert f"at {__file__}:" in raised.value.__notes__[0]


def test_an_argument_that_a_constructor_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsuitableArguments, match="unexpected keyword argument 'colour'"):
        Run.create(small(PPO, tmp_path, environment__name="Confused-v0", environment__kwargs={"colour": "red"}))
