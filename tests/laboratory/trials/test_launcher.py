"""Orders are carried out in real processes, which are pinned, heard, stopped, and never outlive their parent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands import wait_until
from rl4sys.cores import usable_cores
from rl4sys.laboratory.trials.launcher import Ended, News, Order, Outcome, Reported, carry_out
from rl4sys.laboratory.trials.local_launcher import LocalLauncher, shares

TESTS = Path(__file__).parents[2]


class Heard:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.news: list[News] = []

    def started(self, order: Order) -> None:
        self.orders.append(order.key)

    def take(self, news: News) -> None:
        self.news.append(news)

    def facts(self, name: str) -> list[object]:
        return [news.facts[name] for news in self.news if isinstance(news, Reported) and name in news.facts]

    def endings(self) -> dict[str, Ended]:
        return {news.key: news for news in self.news if isinstance(news, Ended)}


@pytest.fixture(autouse=True)
def _tasks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def children() -> list[str]:
    """Processes that this one has started, those included that are over and were not waited for."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def order(place: Path, task: str, key: str = "one") -> Order:
    return Order(key, f"laboratory.trials.tasks:{task}", {"answer": 42}, place / key)


@pytest.mark.parametrize(
    ("cores", "jobs", "each", "expected"),
    [
        ([0, 1, 2, 3], 2, None, ((0, 1), (2, 3))),
        ([0, 1, 2, 3, 4], 2, None, ((0, 1, 2), (3, 4))),
        ([4, 7], 1, None, ((4, 7),)),
        ([4, 7], 3, None, ((4,), (7,), (4,))),
        ([0, 1, 2, 3], 2, 1, ((0,), (1,))),
        ([0, 1, 2, 3], 3, 2, ((0, 1), (2, 3), (0, 1))),
        ([0, 1], 1, 8, ((0, 1),)),
    ],
)
def test_jobs_share_the_cores(
    cores: list[int], jobs: int, each: int | None, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert shares(cores, jobs, each) == expected


def test_a_job_keeps_to_its_core_and_its_threads(tmp_path: Path) -> None:
    heard, before = Heard(), os.sched_getaffinity(0)
    launcher = LocalLauncher(len(usable_cores()))
    orders = [order(tmp_path, "look_around", str(job)) for job in usable_cores()]
    carry_out(launcher, orders, heard, lambda: False)
    assert sorted(heard.facts("cores")) == [[core] for core in usable_cores()]
    assert set(heard.facts("threads")) == {"1"}
    assert heard.facts("values")[0] == {"answer": 42}
    assert {ended.outcome for ended in heard.endings().values()} == {Outcome.FINISHED}
    assert os.sched_getaffinity(0) == before


def test_what_a_job_prints_is_kept_in_its_directory(tmp_path: Path) -> None:
    carry_out(LocalLauncher(1), [order(tmp_path, "look_around")], Heard(), lambda: False)
    assert (tmp_path / "one" / "output.txt").read_text() == "hello from a task\n"


def test_what_a_job_warns_of_is_told_at_once(tmp_path: Path) -> None:
    heard = Heard()
    carry_out(LocalLauncher(1), [order(tmp_path, "warn")], heard, lambda: False)
    assert heard.facts("warning") == ["Alert: slow"]
    assert "WARNING: Alert: slow" in (tmp_path / "one" / "output.txt").read_text()


def test_a_failure_has_its_cause_and_stops_nobody_else(tmp_path: Path) -> None:
    heard = Heard()
    orders = [order(tmp_path, task, task) for task in ("fail", "die", "look_around")]
    carry_out(LocalLauncher(1), orders, heard, lambda: False)
    endings = heard.endings()
    assert endings["fail"] == Ended("fail", Outcome.FAILED, "ValueError: no such luck")
    assert endings["die"].outcome is Outcome.FAILED
    assert "it was killed by SIGKILL" in (endings["die"].cause or "")
    assert endings["look_around"].outcome is Outcome.FINISHED
    assert "Traceback" in (tmp_path / "fail" / "output.txt").read_text()


def test_a_wish_to_stop_ends_those_at_work_and_starts_no_others(tmp_path: Path) -> None:
    heard = Heard()
    orders = (order(tmp_path, "wait", key) for key in ("first", "second"))
    carry_out(LocalLauncher(1), orders, heard, lambda: bool(heard.facts("pid")))
    assert heard.orders == ["first"]
    assert heard.endings() == {"first": Ended("first", Outcome.STOPPED)}


def test_an_exception_leaves_no_process_behind(tmp_path: Path) -> None:
    heard = Heard()

    def orders() -> Iterator[Order]:
        yield order(tmp_path, "wait")
        raise KeyboardInterrupt

    before = children()
    with pytest.raises(KeyboardInterrupt):
        carry_out(LocalLauncher(2), orders(), heard, lambda: False)
    assert heard.orders == ["one"]
    assert children() == before


@pytest.mark.slow
def test_a_job_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from laboratory.trials.test_launcher import Heard, order\n"
        "from rl4sys.laboratory.trials.launcher import carry_out\n"
        "from rl4sys.laboratory.trials.local_launcher import LocalLauncher\n"
        "class Shown(Heard):\n"
        "    def take(self, news): print(news.facts['pid'], flush=True)\n"
        f"carry_out(LocalLauncher(1), [order(Path({str(tmp_path)!r}), 'wait')], Shown(), lambda: False)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        wait_until(lambda: not Path(f"/proc/{child}").exists(), bystander, seconds=30)
    finally:
        bystander.kill()
        bystander.wait()
    assert not Path(f"/proc/{child}").exists()
