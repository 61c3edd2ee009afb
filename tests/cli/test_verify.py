from __future__ import annotations

import json
from pathlib import Path

import pytest

from .commands import Here


@pytest.fixture
def run(rl4sys: Here, config: Path) -> Path:
    assert rl4sys("train", str(config)).code == 0
    (directory,) = Path("runs").glob("ppo-*")
    return directory


def test_an_equal_run_is_reported_in_two_lines(rl4sys: Here, run: Path) -> None:
    code, out, _ = rl4sys("verify", "ppo-Cart")
    assert code == 0
    assert out.splitlines() == [
        "equal     bit for bit from step 0 to step 256",
        "compared  9 entries of the hash log and 10 metric records",
    ]


def test_a_difference_is_reported_with_a_cause_and_fails(rl4sys: Here, run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["packages"]["torch"] = "1.0"
    (run / "manifest.json").write_text(json.dumps(manifest))
    lines = (run / "hashes.jsonl").read_text().splitlines()
    entry = json.loads(lines[2])
    part = next(iter(entry["algorithm"]))
    entry["algorithm"][part] = "another"
    (run / "hashes.jsonl").write_text("\n".join([*lines[:2], json.dumps(entry), *lines[3:]]) + "\n")
    code, out, _ = rl4sys("verify", str(run))
    assert code == 1
    assert "different after step 32, at the latest at step 64" in out
    assert f"algorithm     {part}" in out
    assert "likely cause  torch was 1.0, now" in out


def test_verify_prints_json(rl4sys: Here, run: Path) -> None:
    facts = json.loads(rl4sys("verify", str(run), "--from", "128", "--steps", "64", "--json").out)
    assert (facts["equal"], facts["first_step"], facts["last_step"], facts["difference"]) == (True, 128, 192, None)


@pytest.mark.slow
def test_exact_resume_is_checked(rl4sys: Here, run: Path) -> None:
    code, out, _ = rl4sys("verify", "--resume", str(run), "--steps", "96")
    assert code == 0
    # The rollout after the checkpoint of step 96 ended with a checkpoint of its own.
    assert out.startswith("exact     killed, resumed at step 128, equal bit for bit at step 192")


def test_resume_and_from_exclude_each_other(rl4sys: Here, run: Path) -> None:
    code, _, err = rl4sys("verify", "--resume", str(run), "--from", "latest")
    assert code == 2
    assert "leave one of them out" in err
