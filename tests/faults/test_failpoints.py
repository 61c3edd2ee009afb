"""A process is killed at every failpoint and started again: nothing is lost, repeated or changed by a bit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.records.failpoint_files import FAILPOINTS
from tests.storms import scaled

from rl4sys import failpoints

Ask = Callable[..., dict[str, Any]]
POINTS = (*FAILPOINTS, *failpoints.FAILPOINTS)
LIVES = ("outbox", "PPO", "DQN", "reset", "life cycle")
BACKUP = [name for name in POINTS if "backup" in name]
RESET = [name for name in POINTS if "successor" in name]
SLEEP_AND_FORK = [*RESET, *BACKUP, "before learn", "before save", "after save", "before restore", "after restore"]
OUTBOX = [name for name in POINTS if name.split()[1] in ("parcel", "settlement", "parcels", "outbox")]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Sends a trial to a process that kills its own children."""
    command = [sys.executable, "-m", "tests.faults.trials", str(tmp_path_factory.mktemp("trials"))]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:

        def answer(**question: Any) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            found: dict[str, Any] = json.loads(process.stdout.readline())
            return found

        yield answer


@pytest.mark.slow
def test_every_failpoint_is_listed_and_reached(ask: Ask) -> None:
    reached = {name for life in LIVES for name in ask(life=life)["reached"]}
    assert reached == set(POINTS)
    assert len(POINTS) == len(set(POINTS)) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("life", LIVES)
def test_a_kill_at_any_failpoint_loses_repeats_and_changes_nothing(
    ask: Ask, life: str, tally: Callable[[str, int], None]
) -> None:
    own = {"outbox": OUTBOX, "reset": RESET, "life cycle": SLEEP_AND_FORK}.get(life)
    names = own or [name for name in POINTS if name in ask(life=life)["reached"]]
    # By default each point is tried with one of the two algorithms; storms try both.
    turns = scaled(1, 50)
    if turns == 1 and not own:
        names = [name for place, name in enumerate(names) if place % 2 == (life == "DQN")]
    tally("kills at named failpoints", turns * len(names))
    problems = []
    for name in names:
        for turn in range(turns):
            result = ask(life=life, name=name, turn=turn)
            if result["problem"]:
                problems.append(f"{life}, {name}, time {result['count']}: {result['problem']}")
    assert not problems, "\n".join(problems)
