"""Modules under the paths of the original RL4Sys."""

from __future__ import annotations

import csv
import logging
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rl4sys
from rl4sys.client import RL4SysAction, RL4SysAgent, RL4SysTrajectory
from rl4sys.original import start_server
from rl4sys.original.server import server
from rl4sys.original.utils import cpu_prof, logging_config, mem_prof, step_per_sec_log, step_statistic, util

PATHS = (
    *("rl4sys.client.agent", "rl4sys.common.action", "rl4sys.common.trajectory", "rl4sys.utils.util"),
    *("rl4sys.utils.logging_config", "rl4sys.utils.mem_prof", "rl4sys.examples.lunar.lunar_lander"),
)


def test_the_original_paths_lead_to_the_same_classes() -> None:
    from rl4sys.common.action import RL4SysAction as Action  # type: ignore[import-not-found]
    from rl4sys.common.trajectory import RL4SysTrajectory as Trajectory  # type: ignore[import-not-found]

    from rl4sys.client.agent import RL4SysAgent as Agent

    assert (Agent, Action, Trajectory) == (RL4SysAgent, RL4SysAction, RL4SysTrajectory)


def test_the_original_modules_of_a_client_import_no_training_libraries() -> None:
    heavy = {"torch", "pydantic", "gymnasium", "rl4sys.server"}
    program = f"import sys, {', '.join(PATHS)}; print(*sorted(sys.modules.keys() & {heavy!r}))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_importing_rl4sys_imports_none_of_them() -> None:
    program = "import sys, rl4sys, rl4sys.client; print([name for name in sys.modules if 'original.' in name])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_shims_live_in_one_place() -> None:
    assert [Path(path).name for path in rl4sys.__path__] == ["rl4sys", "original"]


@pytest.mark.parametrize(
    ("arguments", "passed_on"),
    [
        (["--debug", "--port", "7"], ["--listen", "127.0.0.1:7", "--debug"]),
        ([], ["--listen", "127.0.0.1:50051"]),
        (["--listen", "0.0.0.0:9", "--insecure"], ["--listen", "0.0.0.0:9", "--insecure"]),
        (["--listen=unix:/s", "--data", "d"], ["--listen=unix:/s", "--data", "d"]),
    ],
)
def test_the_options_of_the_original_server(
    arguments: list[str], passed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(server, "serve_until_stopped", lambda given: calls.append(given) or 0)
    assert server.main(arguments) == 0
    assert start_server.main([*arguments, "--workers", "10"]) == 0
    assert calls == [passed_on, passed_on]


def test_a_server_that_cannot_start_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "serve_until_stopped", lambda given: 2)
    with pytest.raises(SystemExit, match="2"):
        start_server.start_server(port=1)


def test_the_original_servicer_is_explained() -> None:
    with pytest.raises(ImportError, match="rl4sys serve"):
        from rl4sys.original.server.server import MyRLServiceServicer  # noqa: F401


@pytest.fixture(autouse=True)
def _no_other_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configuring logging closes all handlers, and that of absl would close what pytest captures output with."""
    monkeypatch.setattr(logging, "_handlerList", [])


def test_a_structured_log_line_has_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    try:
        config = logging_config.RL4SysLogConfig.get_default_config("DEBUG", structured_logging=True)
        logging_config.RL4SysLogConfig.setup_logging(config_dict=config)
        logger = util.StructuredLogger("Lander", debug=True)
        logger.info("landed", reward=np.float32(1.5), where=Path("pad"))
        logging.getLogger("other").warning("plain")
    finally:
        root.level, root.handlers = before
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith('Lander - INFO - landed - {"reward": 1.5, "where": "pad"}')
    assert second.endswith("other - WARNING - plain - {}")
    assert logger.is_debug_enabled()


def test_a_log_file_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RL4SYS_LOG_FILE", str(tmp_path / "log"))
    monkeypatch.setenv("RL4SYS_LOG_LEVEL", "warning")
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    try:
        logging_config.setup_rl4sys_logging()
        util.StructuredLogger("Lander").error("crashed", speed=3)
        util.StructuredLogger("Lander").info("not shown")
    finally:
        for handler in root.handlers:
            handler.close()
        root.level, root.handlers = before
    assert (tmp_path / "log").read_text().endswith("Lander - ERROR - crashed\n")


def test_an_action_survives_as_bytes() -> None:
    action = RL4SysAction(np.ones((1, 3)), 2, 1.5, True, {"log_prob": np.float32(-0.5)}, mask=[1, 0, 1])
    again = util.deserialize_action(util.serialize_action(action))
    assert (again.obs.tolist(), again.act.tolist(), again.rew, again.done) == ([1, 1, 1], [2], 1.5, True)
    assert (again.mask.tolist(), again.data) == ([1, 0, 1], {"log_prob": -0.5})
    empty = util.deserialize_action(util.serialize_action(RL4SysAction()))
    assert (empty.obs, empty.act, empty.rew, empty.mask, empty.data) == (None, None, None, None, {})


@pytest.mark.parametrize("kind", [mem_prof.MemoryProfiler, cpu_prof.CPUProfiler])
def test_a_profiler_writes_samples_in_the_background(kind: type, tmp_path: Path) -> None:
    sampled = threading.Event()
    profiler = kind("test", str(tmp_path), log_interval=0.001)
    profiler.start_background_profiling(callback=lambda values: sampled.set())
    assert sampled.wait(10)
    with pytest.raises(RuntimeError, match="running already"):
        profiler.start_background_profiling()
    assert profiler.stop_background_profiling()
    assert not profiler.is_profiling()
    (path,) = tmp_path.rglob("*.csv")
    first = next(csv.DictReader(path.read_text().splitlines()))
    assert all(float(value) >= 0 for value in first.values())


def test_steps_per_second_are_written_and_summarised(tmp_path: Path) -> None:
    with step_per_sec_log.StepPerSecLogger("test", str(tmp_path)) as logger:
        logger.log(12.5)
    assert Path(logger.get_csv_path()).read_text().splitlines()[1].endswith(",12.5")
    assert step_statistic.compute_field_statistics([{"a": 1.0}, {"a": 3.0}]) == {"a": (2.0, 1.0)}
