from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.laboratory.example_runs import written

from rl4sys.laboratory.run_index.index import Index, NoRuns, discard
from rl4sys.ui.index_thread import IndexNotReady, IndexThread


@pytest.fixture
def thread(tmp_path: Path) -> Iterator[IndexThread]:
    written(tmp_path / "ppo-0", [1.0])
    thread = IndexThread(tmp_path, clock=iter(range(1_000_000)).__next__)
    yield thread
    thread.close()


def test_questions_from_any_thread_are_answered_by_one(thread: IndexThread) -> None:
    names: list[str] = []
    askers = [
        threading.Thread(target=lambda: names.append(thread.ask(lambda index: threading.current_thread().name)))
        for _ in range(5)
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(set(names)) == 1


def test_an_index_that_another_process_replaced_is_opened_again(thread: IndexThread, tmp_path: Path) -> None:
    assert thread.ask(Index.count) == 1
    discard(tmp_path)
    Index(tmp_path).close()
    written(tmp_path / "ppo-1", [1.0])
    assert thread.ask(Index.count) == 2


def test_a_directory_that_vanishes_and_comes_back_is_read_again(tmp_path: Path) -> None:
    thread = IndexThread(tmp_path / "runs")
    try:
        with pytest.raises(NoRuns):
            thread.ask(Index.count)
        written(tmp_path / "runs" / "ppo-0")
        assert thread.ask(Index.count) == 1
    finally:
        thread.close()


def test_a_question_that_takes_too_long_is_reported(thread: IndexThread) -> None:
    done = threading.Event()
    try:
        with pytest.raises(IndexNotReady, match="reading the index"):
            thread.ask(lambda index: done.wait(), timeout=0.01)
    finally:
        done.set()
