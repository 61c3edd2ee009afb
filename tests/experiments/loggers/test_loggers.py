from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer.record_writer import RecordWriter

from experiments.runs import PPO, small
from rl4sys.experiments import LOGGERS, MetricRecord, Run
from rl4sys.experiments.loggers.composite import Loggers
from rl4sys.experiments.loggers.files import TensorBoardLogger
from rl4sys.experiments.loggers.section import LoggingSection
from rl4sys.experiments.metrics import read_metrics


class Broken:
    """A logger that always fails."""

    def log(self, record: MetricRecord) -> None:
        raise ConnectionError("no route to host")

    def close(self) -> None:
        raise ConnectionError("still no route")


def test_a_failing_logger_is_left_out_and_training_continues(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = Run.create(small(PPO, tmp_path)).train([Broken()])
    assert result.finished
    assert caplog.text.count("Broken failed and is left out from now on: no route to host") == 1


def test_a_metrics_file_without_room_does_not_stop_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = Run.create(small(PPO, tmp_path))
    run._parts.metrics._file.close()
    run._parts.metrics._file = Path("/dev/full").open("ab", buffering=0)  # noqa: SIM115  # the run closes it
    assert run.train().finished
    assert caplog.text.count("MetricsFile failed and is left out from now on: [Errno 28] No space left") == 1


def test_a_logger_that_cannot_start_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = Run.create(small(PPO, tmp_path, logging__tensorboard=True))
    (run.directory.path / "tensorboard").write_text("a file where a directory should be")
    assert run.train().finished
    assert "The logger 'tensorboard' could not start and is left out" in caplog.text


def test_tensorboard_shows_each_point_of_a_resumed_run_once(tmp_path: Path) -> None:
    now = iter(range(1_000))
    for start, steps in ((0, (10, 20, 30)), (20, (30, 40))):
        board = TensorBoardLogger(tmp_path, start, clock=lambda: float(next(now)))
        for step in steps:
            board.log(MetricRecord(step, {"return": float(step)}, {}))
        board.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("return")] == [(s, s) for s in (10, 20, 30, 40)]


def test_tensorboard_without_room_is_left_out_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board = TensorBoardLogger(tmp_path, 0)
    board.close()
    board._writer = RecordWriter(Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115  # as full as can be
    loggers = Loggers([board])
    for step in range(3):
        loggers.log(MetricRecord(step, {"return": 1.0}, {}))
    loggers.close()
    board.close()
    assert caplog.text.count("TensorBoardLogger failed and is left out from now on: [Errno 28] No space left") == 1


class FakeWandb(ModuleType):
    """What of Weights & Biases a run uses."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.settings: dict[str, Any] = {}
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.artifacts: list[str] = []
        self.videos: dict[str, str] = {}
        self.finished = 0

    def Artifact(self, name: str, type: str) -> FakeWandb:
        self.artifacts.append(f"{type} {name}")
        return self

    def add_file(self, path: str) -> None:
        assert Path(path).is_file()

    def log_artifact(self, artifact: FakeWandb) -> None:
        assert artifact is self

    def init(self, **settings: Any) -> FakeWandb:
        self.settings = settings
        return self

    def Video(self, path: str, format: str) -> str:
        assert Path(path).is_file()
        return f"{format} {path}"

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        if step is None:
            self.videos |= values
        else:
            self.logged.append((step, values))

    def finish(self) -> None:
        self.finished += 1


def test_weights_and_biases_gets_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = FakeWandb()
    wandb.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    section = {"enabled": True, "project": "mine", "tags": ["a"], "mode": "offline", "artifacts": True}
    run = Run.create(small(PPO, tmp_path, logging__wandb=section))
    run.train()
    assert wandb.settings["project"] == "mine"
    assert wandb.settings["config"]["algorithm"]["name"] == "ppo"
    assert [step for step, _ in wandb.logged] == [line["step"] for line in read_metrics(run.directory.metrics)]
    assert wandb.finished == 1
    assert (wandb.settings["group"], wandb.settings["tags"]) == ("ppo-CartPole-v1", ["a"])
    assert wandb.artifacts == [f"policy {run.directory.path.name}-{which}" for which in ("best", "latest")]


@pytest.mark.parametrize("wanted", [True, False])
def test_weights_and_biases_gets_the_videos_of_a_run_that_asks_for_it(
    wanted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = FakeWandb()
    wandb.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    section = {"enabled": True, "mode": "offline", "videos": wanted}
    run = Run.create(small(PPO, tmp_path, logging__wandb=section, training__video_frequency=128))
    run.train()
    files = sorted((run.directory.path / "videos").glob("*.mp4"))
    assert files
    assert wandb.videos == ({f"videos/{file.stem}": f"mp4 {file}" for file in files} if wanted else {})
    assert wandb.finished == 1


def test_tensorboard_knows_the_settings_of_a_run(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path, logging__tensorboard=True))
    run.train()
    board = EventAccumulator(str(run.directory.path / "tensorboard")).Reload()
    data = board.SummaryMetadata("_hparams_/session_start_info").plugin_data
    assert data.plugin_name == "hparams"
    assert b"algorithm.minibatch_size" in data.content


def test_built_in_loggers_are_registered_like_those_of_plugins(tmp_path: Path) -> None:
    assert {"csv", "mlflow", "tensorboard", "wandb"} <= set(LOGGERS)
    run = Run.create(small(PPO, tmp_path, logging__others=[{"name": "csv"}]))
    run.train()
    assert (run.directory.path / "metrics.csv").is_file()


def test_a_fallback_drops_only_the_loggers_that_are_not_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    section = LoggingSection.model_validate(
        {"csv": True, "wandb": {"enabled": True}, "others": [{"name": "mlflow"}, {"name": "csv"}]}
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    kept = section.installed(allow_fallback=True)
    assert (kept.tensorboard, kept.csv, kept.wandb.enabled) == (False, True, False)
    assert kept.others == section.others[1:]
    assert "logging.wandb.enabled: the package 'wandb' is not installed; training without this logger." in caplog.text
