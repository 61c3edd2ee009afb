"""The commands about many runs, as a user types them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cli.commands import Here, finish, start, wait_until, write_config
from experiments.runs import PPO, values
from laboratory.example_runs import stopped_after, train, written
from rl4sys.laboratory.run_index.index import FILE
from rl4sys.laboratory.run_index.training_process import this_process

COMMANDS = ("list", "show", "compare", "export", "cleanup", "tag", "note")
torch.set_num_threads(1)


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command, in a directory with two written runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    written(Path("runs/ppo-good"), [10.0, 450.0], seed=1)
    written(Path("runs/dqn-bad"), [90.0, 30.0], algorithm="dqn", seed=2)
    return Here(monkeypatch, capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(rl4sys: Here, command: str) -> None:
    code, out, err = rl4sys(command, "--help")
    assert (code, err) == (0, "")
    assert f"Examples rl4sys {command}" in " ".join(out.split())
    assert "--debug" in out


def test_runs_are_listed_filtered_and_sorted(rl4sys: Here) -> None:
    code, out, _ = rl4sys("list", "--sort", "reward")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["run", "ppo-good", "dqn-bad"]
    _, out, _ = rl4sys("list", "--sort", "-reward")
    assert [line.split()[0] for line in out.splitlines()] == ["run", "dqn-bad", "ppo-good"]
    _, out, _ = rl4sys("list", "--filter", "algorithm=ppo", "env=CartPole-v1", "return>400")
    assert [line.split()[0] for line in out.splitlines()] == ["run", "ppo-good"]
    (facts,) = json.loads(rl4sys("list", "best=90", "--json").out)
    assert (facts["id"], facts["status"], facts["best"], facts["last"]) == ("dqn-bad", "finished", 90.0, 30.0)
    assert facts["directory"] == "runs/dqn-bad"


def test_a_run_on_another_machine_is_listed_with_when_it_was_heard_of(rl4sys: Here) -> None:
    run = written(Path("runs/ppo-far"), [3.0], finished=False)
    process = replace(this_process(run, now=5.0), host="node7", heard=time.time() - 8)
    process.write(run)
    out = rl4sys("list", "name=ppo*", "status=running").out
    assert re.search(r"running 0?.*on node7, last heard (8|9) s ago", out), out
    assert re.search(r"status +running on node7, last heard \d+ s ago, ", rl4sys("show", "ppo-far").out)


def test_no_match_prints_a_message_or_empty_json(rl4sys: Here) -> None:
    code, out, err = rl4sys("list", "seed=77")
    assert (code, out, "no matching runs in runs" in err) == (0, "", True)
    assert rl4sys("list", "seed=77", "--json").out == "[]\n"


def test_cleanup_says_which_runs_could_no_longer_be_resumed(rl4sys: Here) -> None:
    run = stopped_after(96, Path("runs"))
    _, _, err = rl4sys("cleanup", "--keep-best", "0", "--keep-recent", "0d", "--dry-run")
    assert f"1 unfinished run(s) could not be resumed any more: {run.name}. Keep one with: rl4sys tag RUN +keep" in err
    (found,) = json.loads(rl4sys("cleanup", "--keep-best", "0", "--keep-recent", "0", "--dry-run", "--json").out)[
        "runs"
    ]
    assert found["unresumable"] is True


def test_absolute_paths_work_from_any_directory(rl4sys: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    runs = [str(tmp_path / "runs" / name) for name in ("ppo-good", "dqn-bad")]
    assert rl4sys("show", runs[0]).code == rl4sys("compare", *runs).code == rl4sys("plot", *runs).code == 0
    assert rl4sys("tag", runs[1], "+bad").out == "dqn-bad: bad\n"
    assert json.loads(rl4sys("show", runs[1], "--json").out)["tags"] == ["bad"]


def test_a_beginning_and_last_name_the_newest_run_for_reading_but_not_for_changing(rl4sys: Here) -> None:
    written(Path("runs/ppo-new-20990101-120000"), [7.0])
    code, out, err = rl4sys("show", "ppo")
    assert (code, "runs/ppo-new-2099" in out) == (0, True)
    assert "note: 'ppo' matches 2 runs; this is the newest of them, runs/ppo-new-20990101-120000" in err
    assert rl4sys("show", "last").out == out
    code, _, err = rl4sys("tag", "ppo", "+good")
    assert (code, "'ppo' matches 2 runs; give more of the name" in err) == (2, True)


def test_a_missing_runs_directory_is_an_error_with_advice(rl4sys: Here) -> None:
    code, _, err = rl4sys("list", "--runs", "nowhere")
    assert (code, "There is no directory 'nowhere'" in err) == (2, True)


def test_an_invalid_condition_is_one_line(rl4sys: Here) -> None:
    code, _, err = rl4sys("list", "algoritm=ppo")
    assert (code, err.count("\n"), "did you mean 'algorithm'?" in err) == (2, 1, True)


def test_a_stopped_run_is_shown_with_its_resume_command_and_resumes(rl4sys: Here) -> None:
    path = stopped_after(96, Path("runs"))
    _, out, err = rl4sys("list", "status=interrupted")
    assert "interrupted 38%" in out
    assert f"resume with: rl4sys resume {path}" in err
    _, out, _ = rl4sys("show", "ppo-CartPole")
    assert f"resume with  rl4sys resume {path}" in out
    assert rl4sys("resume", str(path)).code == 0
    assert json.loads(rl4sys("show", "ppo-CartPole", "--json").out)["status"] == "finished"


@pytest.mark.slow
def test_a_killed_run_is_shown_as_interrupted(tmp_path: Path) -> None:
    write_config(tmp_path / "small.yaml", values(PPO, Path("runs")))
    process = start("train", "small.yaml", "training.total_timesteps=1e7", cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("runs/*/checkpoints/0*64")), process)
    (running,) = json.loads(finish(start("list", "--json", cwd=tmp_path)).out)
    process.send_signal(signal.SIGKILL)
    assert finish(process).code == -signal.SIGKILL
    (killed,) = json.loads(finish(start("list", "--json", cwd=tmp_path)).out)
    assert (running["status"], running["resume"]) == ("running", None)
    assert (killed["status"], killed["resume"]) == ("interrupted", f"rl4sys resume runs/{killed['id']}")
    assert killed["steps"] >= running["steps"] > 0


def test_show_prints_everything(rl4sys: Here) -> None:
    path = train(Path("runs"), seed=4)
    rl4sys("tag", path.name, "+good")
    rl4sys("note", path.name, "first try")
    _, out, _ = rl4sys("show", path.name)
    for text in ("finished, 256 of 256 steps", "seed         4", "tags         good", "first try", "train/policy_loss"):
        assert text in out
    facts = json.loads(rl4sys("show", str(path), "--json").out)
    assert facts["settings"]["algorithm"]["name"] == "ppo"
    assert facts["metrics"]["evaluation/return"] == facts["last"]


def test_tags_are_added_and_removed_even_if_they_look_like_options(rl4sys: Here) -> None:
    assert rl4sys("tag", "ppo", "+good", "+bad", "+hd").out == "ppo-good: bad good hd\n"
    assert rl4sys("tag", "ppo", "-bad", "-hd").out == "ppo-good: good\n"
    assert rl4sys("tag", "ppo").out == "ppo-good: good\n"
    assert [run["id"] for run in json.loads(rl4sys("list", "tag=good", "--json").out)] == ["ppo-good"]
    assert rl4sys("tag", "ppo", "two words").code == 2


def test_notes_are_kept_in_order(rl4sys: Here) -> None:
    rl4sys("note", "dqn", "first")
    _, out, _ = rl4sys("note", "dqn", "second [bold]")
    assert [line.split("  ")[1] for line in out.splitlines()] == ["first", "second [bold]"]
    assert "has no notes" in rl4sys("note", "ppo").err


def test_tags_notes_and_plots_are_reported_as_json(rl4sys: Here) -> None:
    assert json.loads(rl4sys("tag", "ppo", "+good", "--json").out) == {"run": "runs/ppo-good", "tags": ["good"]}
    (note,) = json.loads(rl4sys("note", "ppo", "first", "--json").out)["notes"]
    assert note["text"] == "first"
    assert json.loads(rl4sys("plot", "ppo", "--json", "-o", "curve.png").out) == {"plot": "curve.png"}


@pytest.mark.slow
def test_comparing_real_runs_prints_tables_and_writes_a_plot(rl4sys: Here) -> None:
    for seed in (0, 1):
        train(Path("runs"), seed=seed, experiment__name="slow", algorithm__lr=1e-5)
        train(Path("runs"), seed=seed, experiment__name="fast", algorithm__lr=1e-2)
    code, out, err = rl4sys("compare", "slow", "fast", "--metrics", "return,loss", "-o", "curves.png")
    assert code == 0
    assert "algorithm.lr  1e-05  0.01" in out
    assert "train/value_loss" in out
    assert "Probability of improvement" in out
    assert "fewer than three seeds" in err
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(rl4sys("compare", "slow", "fast", "--json").out)
    assert [group["label"] for group in facts["groups"]] == ["slow", "fast"]
    assert [score["seeds"] for score in facts["scores"]] == [2, 2]


@pytest.mark.parametrize(
    ("format_", "beginning"),
    [("latex", "% needs"), ("markdown", "## Results"), ("csv", "id,name,"), ("json", "{"), ("html", "<!doctype html>")],
)
def test_runs_are_exported(rl4sys: Here, format_: str, beginning: str) -> None:
    code, out, _ = rl4sys("export", "ppo", "dqn", "--format", format_)
    assert code == 0
    assert out.startswith(beginning)
    rl4sys("export", "ppo", "dqn", "--format", format_, "--output", "deep/file")
    assert Path("deep/file").read_text() == out


def test_runs_without_an_evaluation_are_exported_as_csv(rl4sys: Here) -> None:
    written(Path("runs/new"))
    code, out, _ = rl4sys("export", "new", "--format", "csv")
    assert (code, len(out.splitlines())) == (0, 2)


def test_tables_are_printed_if_the_plot_cannot_be_written(rl4sys: Here) -> None:
    Path("plain").touch()
    code, out, err = rl4sys("compare", "ppo", "dqn", "-o", "plain/curves.png")
    assert (code, out.startswith("Results"), err.count("error: ")) == (2, True, 1)


def test_damaged_labels_do_not_hide_a_run_and_are_not_overwritten(rl4sys: Here) -> None:
    Path("runs/ppo-good/labels.json").write_text("nonsense")
    shown, tagged = rl4sys("show", "ppo"), rl4sys("tag", "ppo", "+x")
    assert (shown.code, "finished" in shown.out, "labels.json is damaged" in shown.err) == (0, True, True)
    assert (tagged.code, "repair it, or remove it" in tagged.err) == (2, True)
    assert Path("runs/ppo-good/labels.json").read_text() == "nonsense"


def test_without_a_writable_index_runs_are_read_each_time(rl4sys: Here) -> None:
    Path("runs", FILE).mkdir()
    for _ in range(2):
        code, out, _ = rl4sys("list", "--json")
        assert (code, len(json.loads(out))) == (0, 2)


def test_an_unknown_format_is_refused(rl4sys: Here) -> None:
    assert "expected one of latex, markdown, csv, tidy, json, html" in rl4sys("export", "ppo", "--format", "pdf").err


def test_cleanup_asks_for_confirmation_and_removes(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ppo-good", "dqn-bad"):
        Path("runs", name, "checkpoints", "000000000100").mkdir()
        Path("runs", name, "checkpoints", "000000000100", "weights").write_bytes(bytes(3_000_000))
    clean = ("cleanup", "--keep-best", "1", "--keep-recent", "0")
    dry = rl4sys(*clean, "--dry-run")
    assert "dqn-bad  checkpoints  3.0 MB" in dry.out
    assert "nothing was removed" in dry.err
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    refused = rl4sys(*clean)
    assert refused.code == 1
    assert Path("runs/dqn-bad/checkpoints/000000000100/weights").is_file()
    assert "cannot ask for confirmation" in rl4sys(*clean, "--json").err
    assert rl4sys(*clean, "--yes").out.endswith("removed 3.0 MB from 1 run(s)\n")
    assert not Path("runs/dqn-bad/checkpoints/000000000100/weights").exists()
    assert Path("runs/ppo-good/checkpoints/000000000100/weights").is_file()
    assert json.loads(rl4sys(*clean, "--yes", "--json").out) == {"runs": [], "bytes": 0, "removed": True}


def test_cleanup_continues_if_one_run_cannot_be_cleaned(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ppo-good", "dqn-bad"):
        Path("runs", name, "videos").mkdir()
        Path("runs", name, "videos", "film").write_bytes(bytes(200_000))
    rmtree = shutil.rmtree

    def guarded(path: Path) -> None:
        if "dqn-bad" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", guarded)
    code, out, err = rl4sys("cleanup", "--keep-best", "0", "--keep-recent", "0", "--yes")
    assert (code, out.splitlines()[-1]) == (1, "removed 0.2 MB from 1 run(s)")
    assert "skipped: dqn-bad: Permission denied: runs/dqn-bad/videos" in err
    assert not Path("runs/ppo-good/videos").exists()


def test_the_index_is_rebuilt_when_it_is_missing_stale_or_damaged(rl4sys: Here) -> None:
    assert len(json.loads(rl4sys("list", "--json").out)) == 2
    Path("runs", FILE).unlink()
    assert len(json.loads(rl4sys("list", "--json").out)) == 2
    written(Path("runs/third"), [3.0])
    shutil.rmtree("runs/dqn-bad")
    assert {run["id"] for run in json.loads(rl4sys("list", "--json").out)} == {"ppo-good", "third"}
    Path("runs", FILE).write_bytes(b"no database" * 1_000)
    code, out, err = rl4sys("list", "--json")
    assert (code, len(json.loads(out)), "rebuilt from the runs" in err) == (0, 2, True)


LIGHT = """
import sys
sys.argv = ["rl4sys", "list"]
from rl4sys.cli.main import main
try:
    main()
finally:
    heavy = ("torch", "numpy", "gymnasium", "omegaconf", "matplotlib", "rich", "rl4sys.cli.train")
    print([name for name in heavy if name in sys.modules])
"""


def test_listing_imports_nothing_heavy(rl4sys: Here, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]")


def test_show_says_why_a_run_was_solved(rl4sys: Here) -> None:
    alert = {"when": "evaluation/return > 1", "name": "good enough", "do": ["solved"]}
    run = str(train(Path("runs"), alerts=[alert]))
    assert "solved       good enough: at step 128" in rl4sys("show", run).out
    assert json.loads(rl4sys("show", run, "--json").out)["solved"].startswith("good enough: at step 128")
