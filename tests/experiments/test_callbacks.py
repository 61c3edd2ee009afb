from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import rl4sys
from rl4sys.collection import Collected
from rl4sys.environments import EpisodeSummary
from rl4sys.experiments import CALLBACKS, Callback, CallbackConfig, Result, Run, register_callback
from rl4sys.learning import Evaluation

from .runs import PPO, small


class Counting(Callback):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_step(self, run: Run, collected: Collected) -> str | None:
        self.calls.append("step")
        return None

    def on_episode(self, run: Run, episode: EpisodeSummary) -> str | None:
        self.calls.append("episode")
        return None

    def on_update(self, run: Run, metrics: Mapping[str, float]) -> str | None:
        self.calls.append("update")
        assert "policy_loss" in metrics
        return None

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> str | None:
        self.calls.append("evaluation")
        return None


class EnoughEpisodes(Callback):
    def on_episode(self, run: Run, episode: EpisodeSummary) -> str | None:
        return "enough episodes" if run.steps >= 64 else None


def test_a_callback_hears_of_everything(tmp_path: Path) -> None:
    callback = Counting()
    Run.create(small(PPO, tmp_path)).train(callbacks=[callback])
    assert callback.calls.count("step") == 8
    assert callback.calls.count("update") == 8
    assert callback.calls.count("evaluation") == 2
    assert callback.calls.count("episode") > 3


def test_a_callback_ends_a_run_as_a_success_that_can_be_trained_on(tmp_path: Path) -> None:
    run = rl4sys.train(small(PPO, tmp_path).model_dump(mode="json"), callbacks=[EnoughEpisodes()])
    kept = Result.read(run.directory.result)
    assert kept is not None
    assert kept.finished
    assert kept.solved == "enough episodes"
    assert kept.steps < 256
    assert rl4sys.resume(run.directory.path).steps == 256


def test_a_config_names_callbacks(tmp_path: Path) -> None:
    @register_callback("enough")
    class EnoughConfig(CallbackConfig):
        """Ends a run early."""

        def build(self) -> Callback:
            return EnoughEpisodes()

    try:
        run = Run.create(small(PPO, tmp_path, callbacks=[{"name": "enough"}]))
        assert run.train().solved == "enough episodes"
    finally:
        CALLBACKS._types.pop("enough")


def test_an_error_in_a_callback_ends_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    class Failing(Callback):
        def on_update(self, run: Run, metrics: Mapping[str, float]) -> str | None:
            raise RuntimeError("mine")

    run = Run.create(small(PPO, tmp_path))
    with pytest.raises(RuntimeError, match="mine"):
        run.train(callbacks=[Failing()])
    assert Run.resume(run.directory).train().finished


def test_an_alert_can_say_that_a_run_is_solved(tmp_path: Path) -> None:
    alert = {"when": "evaluation/return > 1", "name": "good enough", "do": ["solved"]}
    result = Run.create(small(PPO, tmp_path, alerts=[alert])).train()
    assert result.finished
    assert result.solved is not None
    assert result.solved.startswith("good enough: at step 128")
