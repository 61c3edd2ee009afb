"""The batch scheduling example, started as users start it, with few and short sequences."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rl4sys.experiments import Run as Training
from rl4sys.experiments import load_experiment

from .processes import EXAMPLES

PNG = b"\x89PNG\r\n\x1a\n"
FEW = ("--sequences", "3", "--length", "40")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The program, called in this process: its exit code and what it printed."""
    # Here `examples` is the package of tests.
    monkeypatch.syspath_prepend(EXAMPLES)
    program = importlib.import_module("batch_scheduling.__main__")

    def called(*arguments: str | Path) -> tuple[int, str, str]:
        try:
            code = program.main([*map(str, arguments)])
        except SystemExit as ending:
            code = ending.code
        return code, *capsys.readouterr()

    return called


def test_rules_are_compared_on_a_written_trace(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.swf.gz"
    code, said, complained = run("generate", "--jobs", "300", "--processors", "64", "--out", trace)
    assert (code, complained) == (0, "")
    assert "300 jobs for 64 processors" in said
    code, said, complained = run("compare", "--trace", trace, "--json", "--out", tmp_path, *FEW)
    assert (code, complained) == (0, "")
    found = json.loads(said)
    assert {"sjf", "f1", "wfp3", "sjf, 16 free"} <= {rule["name"] for rule in found["rules"]}
    for plot in found["plots"].values():
        assert Path(plot).read_bytes().startswith(PNG)


def test_the_table_shows_all_metrics_together(run: Run, tmp_path: Path) -> None:
    code, said, complained = run(
        "compare", "--protocol", "commit", "--heuristics", "fcfs", "--out", tmp_path, "--part", "all", *FEW
    )
    assert (code, complained) == (0, "")
    assert all(word in said for word in ("slowdown", "wait", "p99", "longest", "used", "fcfs", "sjf"))


def test_wrong_input_is_refused_in_one_sentence(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.swf"
    broken.write_text("; MaxProcs: 4\n1 2 3\n")
    for arguments, complaint in (
        (("--trace", "missing.swf"), "there is no such file"),
        (("--trace", broken), "broken.swf, line 2, column 4 (run time) is missing"),
        (("--length", "5000"), "Sequences of 5000 jobs were asked for"),
        (("--protocol", "waits"), "invalid choice: 'waits'"),
        (("--heuristics", "f9"), "Unknown heuristic 'f9'"),
        (("--policy", "no_such_run"), "no_such_run"),
        (("--sequences", "0"), "'0' is not a whole number of at least 1"),
    ):
        code, said, complained = run("compare", *arguments)
        assert (code, said) == (2, "")
        assert complaint in complained


@pytest.mark.parametrize("command", ["compare", "generate", "live"])
def test_help_explains_each_command(run: Run, command: str) -> None:
    code, said, _ = run(command, "--help")
    assert code == 0
    assert f"usage: python -m examples.batch_scheduling {command}" in said


def test_the_program_runs_from_the_top_of_the_repository() -> None:
    command = [sys.executable, "-m", "examples.batch_scheduling", "--help"]
    said = subprocess.run(command, cwd=EXAMPLES.parent, check=True, capture_output=True, text=True).stdout
    assert "python -m examples.batch_scheduling compare" in said


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["commit", "wait"])
def test_a_trained_policy_is_compared_with_heuristics(run: Run, protocol: str, tmp_path: Path) -> None:
    small = ["training.total_timesteps=128", "buffer.size=64", "algorithm.minibatch_size=32", "environment.num_envs=2"]
    small += [f"directory={tmp_path}", "threads=1", "training.num_eval_episodes=1", "environment.kwargs.length=20"]
    trained = Training.create(load_experiment(f"ppo_batch_scheduling_{protocol}.yaml", small))
    trained.train()
    policy = trained.directory.path
    code, said, complained = run(
        "compare", "--protocol", protocol, "--policy", policy, "--json", "--out", tmp_path, "--max-wait", "1e6", *FEW
    )
    assert (code, complained) == (0, "")
    found = json.loads(said)
    assert "learned" in [rule["name"] for rule in found["rules"]]
    assert Path(found["plots"]["learning"]).read_bytes().startswith(PNG)


@pytest.mark.slow
def test_two_clients_learn_one_policy_through_a_server(run: Run, tmp_path: Path) -> None:
    small = ("--decisions", "900", "--buffer", "256", "--length", "24", "--most", "16", "--max-wait", "3600")
    code, said, complained = run("live", "--json", "--out", tmp_path, *small)
    assert (code, complained) == (0, "")
    found = json.loads(said)
    assert Path(found["plot"]).read_bytes().startswith(PNG)
    assert found["clients"].keys() == {"cluster-a", "cluster-b"}
    for client in found["clients"].values():
        assert client["decisions"] == 900
        assert client["guarded"] > 0
        assert client["sequences"] > 10
    assert [each.name for each in (tmp_path / "server" / "learners").iterdir()] == ["shared~batch-scheduler"]
