"""Machines are started and ended with the programs of others, here fakes that record their arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from cli.commands import Here, wait_until
from rl4sys.clusters import head_scripts
from rl4sys.clusters.cluster_file import KINDS, read_cluster_file
from rl4sys.clusters.new_file import NewCluster, write_cluster_files
from rl4sys.clusters.operations import Cluster, CommandFailed
from rl4sys.clusters.submission import new_submission

from .fake_programs import FakePrograms

KNOWN = {"gce": {"project": "p"}, "kuberay": {"image": "r/i:1"}, "slurm": {"partition": "cpu"}}
TRAIN = ("--", "train", "--algorithm", "ppo", "--env", "CartPole-v1", "--seed", "1,2,3")
STORED = (*TRAIN, "--storage", "s3://bucket/runs")


def new_file(tmp_path: Path, kind: str) -> str:
    path = tmp_path / f"cluster-{kind}"
    write_cluster_files(NewCluster(kind, **KNOWN.get(kind, {})), path, force=False)
    return str(path)


@pytest.fixture
def ec2(tmp_path: Path) -> str:
    return new_file(tmp_path, "ec2")


@pytest.fixture(autouse=True)
def _no_waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines are asked again at once, and most commands are taken as good: a dry run takes seconds."""
    monkeypatch.setattr("rl4sys.clusters.operations._RECONNECT_SECONDS", 0.0)
    if "dry_run" not in request.fixturenames:
        monkeypatch.setattr("rl4sys.clusters.submission.count_trials_of", lambda submission: 3)


@pytest.fixture
def dry_run() -> None:
    """Commands are tried here first, as for users."""


def test_a_run_starts_machines_follows_the_command_and_ends_the_machines(
    rl4sys: Here, programs: FakePrograms, ec2: str, dry_run: None
) -> None:
    code, _, err = rl4sys("cluster", "run", ec2, "--yes", *STORED)
    assert (code, "failed" in err) == (0, False)
    assert programs.verbs == ["ray get-head-ip", "ray up", "ray exec", "ray exec", "ray exec", "ray down"]
    assert "trials    3" in err
    assert "machines  head: 1 × m6i.large, on demand" in err
    assert "machines  worker: up to 2 × m6i.2xlarge, spot" in err
    assert "hours     at most 24, so at most 72 machine hours" in err


def test_the_command_reaches_the_head_as_it_was_typed(rl4sys: Here, programs: FakePrograms, ec2: str) -> None:
    words = ["train", "--algorithm", "ppo", "--env", "CartPole-v1", "--storage", "s3://b", "note='a b $HOME'"]
    assert rl4sys("cluster", "submit", ec2, "--", *words).code == 0
    script = programs.calls[-1][-1].partition(" && ray job")[0].replace(str(Path("~/rl4sys-work")), os.getcwd())
    subprocess.run(["bash", "-c", script], check=True)
    (written,) = Path().glob("rl4sys-*.sh")
    line = written.read_text().partition(" && ")[2]
    echoed = subprocess.run(
        ["bash", "-c", line.replace("exec rl4sys", "printf '%s\\n'")], capture_output=True, text=True
    )
    assert echoed.stdout.splitlines() == [*words, "--on", "ray", "--address", "auto", "where.autoscaling=true"]


def test_machines_are_ended_if_starting_them_fails(rl4sys: Here, programs: FakePrograms, ec2: str) -> None:
    programs.answer("ray up", 7)
    code, _, err = rl4sys("cluster", "up", ec2, "--yes")
    assert (code, programs.verbs) == (2, ["ray get-head-ip", "ray up", "ray down"])
    assert "failed with exit code 7" in err


def test_a_cluster_that_runs_already_is_not_touched(rl4sys: Here, programs: FakePrograms, tmp_path: Path) -> None:
    (programs.directory / "rules.jsonl").write_text("")
    code, _, err = rl4sys("cluster", "up", new_file(tmp_path, "gce"), "--yes")
    assert (code, programs.verbs) == (2, ["ray get-head-ip"])
    assert "runs already" in err


@pytest.mark.parametrize("failing", ["mkdir", "job submit", "job logs"])
def test_machines_are_ended_if_the_command_fails(rl4sys: Here, programs: FakePrograms, ec2: str, failing: str) -> None:
    programs.answer(failing, 1)
    code, _, err = rl4sys("cluster", "run", ec2, "--yes", *STORED)
    assert (code, programs.verbs[-1]) == (1 if failing == "job logs" else 2, "ray down")
    assert err.splitlines()[-1].startswith("error: ")


def test_a_broken_connection_is_made_again(rl4sys: Here, programs: FakePrograms, ec2: str) -> None:
    programs.answer("grep -Eq", 0, "still running")
    rules = programs.directory / "rules.jsonl"
    flaky = programs.directory / "ray"
    flaky.write_text(
        flaky.read_text().replace(
            "for line in",
            f"if 'logs' in text and not os.path.exists('{rules}.once'):\n"
            f"    open('{rules}.once', 'w').close()\n    sys.exit(255)\nfor line in",
        )
    )
    assert rl4sys("cluster", "run", ec2, "--yes", *STORED).code == 0
    assert sum("job logs" in " ".join(call) for call in programs.calls) == 2


def test_the_question_whether_a_command_runs_does_not_contain_its_answer() -> None:
    # `ray exec` prints the script as well as its output.
    assert "still running" not in head_scripts.is_running("some-id")


def test_machines_that_do_not_end_are_named(rl4sys: Here, programs: FakePrograms, ec2: str) -> None:
    programs.answer("ray down", 1)
    code, _, err = rl4sys("cluster", "down", ec2)
    assert (code, programs.verbs) == (2, ["ray down"] * 3)
    assert "machines of 'rl4sys' may still run and cost" in err


def test_an_interrupt_ends_the_machines(programs: FakePrograms, ec2: str, tmp_path: Path) -> None:
    sleeping = programs.directory / "ray"
    sleeping.write_text(sleeping.read_text() + "if 'logs' in text:\n    import time\n    time.sleep(600)\n")
    command = [sys.executable, "-m", "rl4sys.cli", "cluster", "run", ec2, "--yes", *STORED]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        wait_until(lambda: any("logs" in " ".join(call) for call in programs.calls), process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert (process.returncode, programs.verbs[-1]) == (130, "ray down")


def test_the_hours_end_a_command(programs: FakePrograms, ec2: str) -> None:
    sleeping = programs.directory / "ray"
    sleeping.write_text(sleeping.read_text() + "if 'logs' in text:\n    import time\n    time.sleep(600)\n")
    submission = new_submission(STORED[1:], "ec2", None, datetime(2026, 1, 1))
    with pytest.raises(CommandFailed, match="did not end within the hours"):
        Cluster(read_cluster_file(Path(ec2)), print).run(submission, seconds=0.1)
    assert programs.verbs[-1] == "ray down"


@pytest.mark.parametrize("kind", KINDS)
def test_print_only_shows_files_and_commands_and_runs_nothing(
    rl4sys: Here, programs: FakePrograms, tmp_path: Path, kind: str
) -> None:
    path = new_file(tmp_path, kind)
    code, out, err = rl4sys("cluster", "run", path, "--print-only", *STORED)
    assert (code, programs.calls) == (0, [])
    assert Path(path).read_text().rstrip() in out
    assert "nothing was started" in err
    program = {"kuberay": "kubectl delete", "sky": "sky down", "slurm": "scancel"}.get(kind, "ray down")
    assert program in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("gce", ["ray get-head-ip", "ray up", "ray exec", "ray exec", "ray exec", "ray down"]),
        ("kuberay", ["kubectl get", "kubectl apply", "kubectl wait", *["kubectl exec"] * 3, "kubectl delete"]),
        ("sky", ["sky launch", "sky exec", "sky down"]),
        ("slurm", ["sbatch --wait", "scancel --user=root"]),
    ],
)
def test_every_kind_has_its_own_commands(
    rl4sys: Here,
    programs: FakePrograms,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    expected: list[str],
) -> None:
    monkeypatch.setenv("LOGNAME", "root")
    assert rl4sys("cluster", "run", new_file(tmp_path, kind), "--yes", *STORED).code == 0
    assert programs.verbs == expected


def test_sky_gets_the_command_as_a_variable(rl4sys: Here, programs: FakePrograms, tmp_path: Path) -> None:
    rl4sys("cluster", "submit", new_file(tmp_path, "sky"), *STORED)
    call = programs.calls[-1]
    assert call[:4] == ["sky", "exec", "--detach-run", "--env"]
    assert call[4].startswith("RL4SYS_COMMAND=rl4sys train --algorithm ppo")


def test_files_are_copied_first(rl4sys: Here, programs: FakePrograms, ec2: str, tmp_path: Path) -> None:
    rl4sys("cluster", "submit", ec2, "--files", str(tmp_path), *STORED)
    assert programs.verbs == ["ray exec", "ray rsync-up", "ray exec"]
    assert programs.calls[1][2:] == [ec2, f"{tmp_path}/", "~/rl4sys-work/"]


@pytest.mark.parametrize("verb", ["status", "logs"])
@pytest.mark.parametrize("kind", KINDS)
def test_status_and_logs_only_look(rl4sys: Here, programs: FakePrograms, tmp_path: Path, kind: str, verb: str) -> None:
    (programs.directory / "rules.jsonl").write_text("")
    (tmp_path / "rl4sys-7.out").write_text("hello")
    assert rl4sys("cluster", verb, new_file(tmp_path, kind)).code == 0
    assert not {"ray up", "ray down", "sky launch", "sky down"} & set(programs.verbs)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--yes", *TRAIN), "share no disk"),
        (("run", "--yes"), "Give a command to run on the cluster after --, one of train, sweep, tune; got nothing"),
        (("submit", "--", "serve"), "got 'serve'"),
        (("run", "--yes", "--", "train", "a.yaml", "--storage", "s3://b"), "Give the directory to copy: --files ."),
        (("run", *STORED), "there is no terminal to ask, so give --yes"),
        (("up",), "there is no terminal to ask, so give --yes"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    rl4sys: Here, programs: FakePrograms, ec2: str, arguments: tuple[str, ...], said: str
) -> None:
    Path("a.yaml").write_text("algorithm: {name: ppo}\n")
    verb, *rest = arguments
    code, _, err = rl4sys("cluster", verb, ec2, *rest)
    assert (code, programs.calls) == (2, [])
    assert said in err


def test_a_command_that_fails_here_is_not_sent(rl4sys: Here, programs: FakePrograms, ec2: str, dry_run: None) -> None:
    code, _, err = rl4sys("cluster", "run", ec2, "--yes", "--", "train", "none.yaml", "--storage", "s3://b")
    assert (code, programs.calls) == (2, [])
    assert "The command fails here already" in err


@pytest.mark.parametrize(("kind", "program"), [("kuberay", "kubectl"), ("sky", "sky"), ("slurm", "sbatch")])
def test_a_missing_program_is_named_with_what_to_install(
    rl4sys: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, program: str
) -> None:
    path = new_file(tmp_path, kind)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = rl4sys("cluster", "submit", path, *STORED)
    assert (code, err.count("\n")) == (2, 1)
    assert f"This needs the command '{program}', which is not installed here" in err


def test_a_file_with_errors_starts_nothing(rl4sys: Here, programs: FakePrograms, tmp_path: Path) -> None:
    write_cluster_files(NewCluster("gce"), tmp_path / "cluster.yaml", force=False)
    code, _, err = rl4sys("cluster", "up", "cluster.yaml", "--yes")
    assert (code, programs.calls) == (2, [])
    assert "'CHANGE-ME-project' is a placeholder; write your own value. (1 more:" in err


def test_slurm_starts_no_machines_ahead(rl4sys: Here, programs: FakePrograms, tmp_path: Path) -> None:
    code, _, err = rl4sys("cluster", "up", new_file(tmp_path, "slurm"))
    assert (code, programs.calls) == (2, [])
    assert "a SLURM job starts its machines itself" in err
