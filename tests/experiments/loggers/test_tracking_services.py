"""Weights & Biases and MLflow, the real packages, without a network: a killed and resumed run has every step once."""

from __future__ import annotations

import csv
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.runs import PPO, small
from rl4sys.experiments import LoggedRun, MetricRecord, Run
from rl4sys.experiments.loggers.files import CsvLogger
from rl4sys.experiments.loggers.wandb import WandbConfig, chosen_mode
from rl4sys.experiments.metrics import read_metrics


def interrupted_and_resumed(tmp_path: Path, **logging: Any) -> Run:
    """A run resumed at a checkpoint from before the last records: some steps are logged twice."""
    run = Run.create(small(PPO, tmp_path, training__checkpoint_frequency=64, training__eval_frequency=0, **logging))
    run.train(stop=lambda: run.steps >= 160)
    resumed = Run.resume(run.directory, step=64)
    resumed.train()
    return resumed


def steps_of(run: Run) -> list[int]:
    return sorted({record["step"] for record in read_metrics(run.directory.metrics)})


def test_a_csv_file_has_every_step_of_a_resumed_run_once(tmp_path: Path) -> None:
    run = interrupted_and_resumed(tmp_path, logging__csv=True)
    with (run.directory.path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    records = list(read_metrics(run.directory.metrics))
    assert [int(row["step"]) for row in rows] == [record["step"] for record in records]
    for row, record in zip(rows, records, strict=True):
        given = {name: float(row[name]) for name in record["metrics"]}
        assert given == record["metrics"]


def test_a_csv_file_grows_columns_and_forgets_a_row_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    first = CsvLogger(path, 0)
    first.log(MetricRecord(1, {"loss": 0.5}, {}))
    first.log(MetricRecord(2, {"loss": 0.25, "return, mean": float("nan")}, {}))
    first.close()
    with path.open("a") as file:
        file.write("3,0.1")
    again = CsvLogger(path, 2)
    again.log(MetricRecord(3, {"loss": 0.125}, {}))
    again.close()
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["step", "loss", "return, mean"],
            ["1", "0.5", ""],
            ["2", "0.25", "nan"],
            ["3", "0.125", ""],
        ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_mlflow_has_every_step_of_a_resumed_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    section = {"enabled": True, "experiment": "mine", "tags": {"who": "me"}}
    run = interrupted_and_resumed(tmp_path, logging__mlflow=section)
    client = tracking.MlflowClient(f"file:{tmp_path / 'mlruns'}")
    (found,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert (found.info.run_name, found.info.status) == (run.directory.path.name, "FINISHED")
    assert found.data.tags["who"] == "me"
    assert found.data.params["algorithm.name"] == "ppo"
    entropy = client.get_metric_history(found.info.run_id, "train/entropy")
    assert [point.step for point in entropy] == steps_of(run)
    values = [record["metrics"] for record in read_metrics(run.directory.metrics)]
    assert [point.value for point in entropy] == [v["train/entropy"] for v in values if "train/entropy" in v]


def offline_steps(directory: Path) -> Iterator[int]:
    """The steps in the files that `wandb sync` would send, in the order in which they were written."""
    from wandb.proto import wandb_internal_pb2

    for file in sorted(directory.glob("wandb/offline-run-*/*.wandb")):
        for data in log_records(file.read_bytes()):
            record = wandb_internal_pb2.Record.FromString(data)
            if record.WhichOneof("record_type") == "history":
                yield record.history.step.num


def log_records(data: bytes) -> Iterator[bytes]:
    """The records of a file in LevelDB's log format: blocks of 32 KiB, each part with checksum, length and kind."""
    place, whole = 7, b""
    while place + 7 <= len(data):
        if 32_768 - place % 32_768 < 7:
            place += 32_768 - place % 32_768
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield whole
            whole = b""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::ResourceWarning")
def test_weights_and_biases_offline_has_every_step_of_a_resumed_run_once(tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb")
    section = {"enabled": True, "mode": "offline", "artifacts": True}
    run = interrupted_and_resumed(tmp_path, logging__wandb=section)
    files = list(run.directory.path.glob("wandb/offline-run-*/*.wandb"))
    # Two processes' worth of files of one run, which Weights & Biases knows by its id.
    assert {file.name for file in files} == {f"run-{run.directory.path.name}.wandb"}
    # Its own process writes them.
    wandb.teardown()
    assert list(offline_steps(run.directory.path)) == steps_of(run)


@pytest.mark.parametrize("name", ["it's mine: a, b", "x" * 200, "größer"])
def test_services_get_a_name_that_they_take(name: str) -> None:
    one, other = (LoggedRun(Path("runs") / each, 0, {}).id for each in (name, f"{name}?"))
    assert re.fullmatch(r"[A-Za-z0-9_.=+-]{1,128}", one)
    assert one != other
    assert LoggedRun(Path("runs/ppo-lr=0.1-seed0-20260101-120000"), 0, {}).id == "ppo-lr=0.1-seed0-20260101-120000"


def fake(login: bool = True, base_url: str = "http://127.0.0.1:9") -> Any:
    settings = SimpleNamespace(base_url=base_url)
    return SimpleNamespace(setup=lambda: SimpleNamespace(settings=settings), login=lambda prompt: login)


def test_without_a_network_weights_and_biases_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert chosen_mode(WandbConfig(), fake()) == "offline"
    monkeypatch.setattr("rl4sys.experiments.loggers.wandb._answers", lambda host, port: (host, port) == ("wb", 443))
    assert chosen_mode(WandbConfig(), fake(base_url="https://wb")) == "online"
    assert chosen_mode(WandbConfig(), fake(login=False, base_url="https://wb")) == "offline"


def test_what_the_user_says_about_the_mode_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert chosen_mode(WandbConfig(), fake()) is None
    assert chosen_mode(WandbConfig(mode="online"), fake()) == "online"


OWN = '''
from pathlib import Path
from rl4sys import register_logger
from rl4sys.experiments import LoggedRun, LoggerConfig, MetricRecord

@register_logger("tally")
class TallyConfig(LoggerConfig):
    """Counts records."""

    file: str = "tally"
    """The file to write."""

    def build(self, run: LoggedRun) -> "Tally":
        return Tally(run.directory / self.file, run.step)

class Tally:
    def __init__(self, path: Path, step: int) -> None:
        self.path, self.lines = path, [f"from {step}"]

    def log(self, record: MetricRecord) -> None:
        self.lines.append(str(record.step))

    def close(self) -> None:
        with self.path.open("a") as file:
            file.write(" ".join(self.lines) + "\\n")
'''


def test_a_logger_of_a_plugin_gets_every_record(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    own = {"plugins": [str(tmp_path / "own.py")], "logging__others": [{"name": "tally", "file": "t"}]}
    run = Run.create(small(PPO, tmp_path, training__eval_frequency=0, **own))
    run.train(stop=lambda: run.steps >= 96)
    Run.resume(run.directory).train()
    lines = (run.directory.path / "t").read_text().splitlines()
    assert lines[0] == "from 0 32 64 96"
    assert lines[1].startswith("from 96 128 160")


def test_a_missing_service_is_refused_with_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"logging.mlflow.enabled: .*pip install 'rl4sys\[mlflow\]'"):
        Run.create(small(PPO, tmp_path, logging__mlflow={"enabled": True}))
