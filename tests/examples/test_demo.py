"""`make demo` with few steps."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from .processes import DEMO, ended, named_after, start

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_a_short_demo_finishes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary, output = tmp_path / "temporary", tmp_path / "demo"
    temporary.mkdir()
    with start(DEMO, "--steps", "9000", "--output", output, temporary=temporary) as demo:
        said, _ = demo.communicate(timeout=240)
    assert demo.returncode == 0, said
    assert not named_after(temporary)
    assert not list(temporary.iterdir())
    assert (output / "learning.png").read_bytes().startswith(PNG)
    summary = json.loads((output / "summary.json").read_text())
    assert f"{summary['landings']} of 20" in said
    messages = [json.loads(line) for line in (output / "history.jsonl").read_text().splitlines()]
    last = [each for each in messages if each["kind"] == "flight"][-1]
    assert last["steps"] >= 9_000
    assert last["versions"] >= 2
    assert last["sent"] > last["steps"] * 20
    assert last["drops"] == last["waiting"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_stopping_the_demo_ends_all_its_processes(number: signal.Signals, tmp_path: Path) -> None:
    with start(DEMO, "--output", tmp_path / "demo", temporary=tmp_path) as demo:
        assert demo.stdout is not None
        # The first line of the flight: the server, its worker and the client are running.
        for line in demo.stdout:
            if "learner" in line:
                break
        assert len(named_after(tmp_path)) >= 4
        demo.send_signal(number)
        code = demo.wait(timeout=60)
    assert code == (-signal.SIGKILL if number is signal.SIGKILL else 130)
    assert ended(tmp_path, seconds=60)


def test_an_output_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    with start(DEMO, "--output", tmp_path, temporary=tmp_path) as demo:
        said, _ = demo.communicate(timeout=60)
    assert demo.returncode == 2
    assert said == ""
