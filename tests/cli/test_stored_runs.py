"""Runs in storage, as a user types the commands."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from cli.commands import Here
from laboratory.example_runs import stopped_after, train

torch.set_num_threads(1)


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    return Here(monkeypatch, capsys)


def test_a_run_is_pushed_resumed_and_pulled_by_its_url(rl4sys: Here, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store/first"
    run = stopped_after(128, tmp_path / "there")
    code, out, _ = rl4sys("push", str(run), url)
    assert (code, f"rl4sys resume {url}" in out) == (0, True)
    code, _, err = rl4sys("resume", url)
    assert (code, "resuming  at step 128" in err) == (0, True)
    code, out, _ = rl4sys("pull", f"file://{tmp_path}/store", "--runs", "copies", "--json")
    (copy,) = json.loads(out)
    assert (code, copy) == (0, f"copies/{run.name}")
    whole = train(tmp_path / "whole")
    fingerprints = [json.loads((Path(path) / "result.json").read_text())["fingerprint"] for path in (copy, whole)]
    assert fingerprints[0] == fingerprints[1]


def test_commands_take_the_url_of_a_run(rl4sys: Here, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store/first"
    run = train(tmp_path / "there")
    rl4sys("push", str(run), url)
    assert json.loads(rl4sys("show", url, "--json").out)["status"] == "finished"
    code, out, _ = rl4sys("evaluate", url, "--episodes", "1", "--json")
    assert (code, json.loads(out)["episodes"]) == (0, 1)


@pytest.mark.parametrize("command", ["pull", "resume", "show"])
def test_a_url_without_a_run_is_refused_in_one_line(rl4sys: Here, tmp_path: Path, command: str) -> None:
    code, out, err = rl4sys(command, f"file://{tmp_path}/nothing")
    assert (code, out, err) == (2, "", f"error: There is no run in file://{tmp_path}/nothing.\n")
