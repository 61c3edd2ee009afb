"""Runs in storage, as a user types the commands."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from cli.commands import Here, write_config
from experiments.runs import PPO, values
from laboratory.example_runs import stopped_after, train
from rl4sys.cli.job_on_ray import command_there

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


def test_storage_that_cannot_be_written_to_is_refused_before_a_run_is_made(rl4sys: Here, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    url = f"file://{tmp_path}/file/below"
    code, out, err = rl4sys("train", "--algorithm", "ppo", "--env", "CartPole-v1", "--storage", url)
    assert (code, out, err.startswith(f"error: {url} cannot be written to: ")) == (2, "", True), err
    assert not (tmp_path / "runs").exists()


def test_a_run_is_kept_in_storage_while_it_trains(rl4sys: Here, tmp_path: Path) -> None:
    write_config(tmp_path / "small.yaml", values(PPO, Path("runs")))
    code, _, err = rl4sys("train", "small.yaml", "--storage", f"file://{tmp_path}/store")
    assert (code, f"storage   file://{tmp_path}/store/ppo-CartPole-v1-seed0-" in err) == (0, True), err
    (copy,) = json.loads(rl4sys("pull", f"file://{tmp_path}/store", "--runs", "copies", "--json").out)
    assert json.loads((Path(copy) / "result.json").read_text())["finished"]


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (("--address", "auto"), "add --on ray"),
        (("--gpus", "1"), "Use: rl4sys train --algorithm ppo --env CartPole-v1 device=cuda\n"),
        (("--gpus=2",), "Use: rl4sys train --algorithm ppo --env CartPole-v1 device=cuda --ranks 2\n"),
        (
            ("where.gpus=1",),
            "Use: rl4sys train --algorithm ppo --env CartPole-v1 where.gpus=1 where.gpus=0 device=cuda\n",
        ),
        (("--on", "ray", "--detach"), "--detach needs the address of a cluster's dashboard"),
        (("--on", "ray", "--address", "http://127.0.0.1:1"), "Give --storage"),
        (("--on", "ray", "--address", "127.0.0.1:1"), "No Ray cluster answers at 127.0.0.1:1"),
        (("--on", "ray", "--address", "somewhere"), "expected auto, HOST:6379 or http://HOST:8265"),
        (("--on", "mars"), "expected one of 'local', 'ray', 'slurm'"),
        (("--on", "slurm", "--storage", "s3://lab/runs"), "--on slurm keeps runs in a directory"),
    ],
)
def test_places_that_do_not_exist_are_refused_in_one_line(
    rl4sys: Here, tmp_path: Path, options: tuple[str, ...], answer: str
) -> None:
    code, out, err = rl4sys("train", "--algorithm", "ppo", "--env", "CartPole-v1", *options)
    assert (code, out, answer in err, err.count("\n")) == (2, "", True, 1), err
    assert not (tmp_path / "runs").exists()


def test_a_job_joins_the_cluster_it_runs_on(rl4sys: Here) -> None:
    given = ("sweep", "my sweep.yaml", "--address", "http://head:8265", "--detach", "--cpus", "2")
    assert command_there(given) == "rl4sys sweep 'my sweep.yaml' --cpus 2 --on ray --address auto"
    assert command_there(("tune", "--address=http://head:8265")) == "rl4sys tune --on ray --address auto"
    where = ("--on", "ray", "--address", "http://127.0.0.1:1", "--storage", "s3://lab/runs")
    code, _, err = rl4sys("train", "--algorithm", "ppo", "--env", "CartPole-v1", *where)
    assert (code, "No Ray cluster answers at http://127.0.0.1:1" in err) == (2, True), err


def test_a_dry_run_says_where_runs_would_train_without_ray(rl4sys: Here) -> None:
    place = ("--on", "ray", "--address", "auto", "--cpus", "2", "--storage", "s3://lab/runs", "--dry-run")
    code, _, err = rl4sys("train", "--algorithm", "ppo", "--env", "CartPole-v1", "--seed", "1,2", *place)
    assert code == 0
    assert "2 run(s) on ray at auto with 2 CPU each, kept in s3://lab/runs; nothing was started." in err
