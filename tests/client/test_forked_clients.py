"""Processes that are forked from one with an agent connect for themselves."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer

from rl4sys.client import Agent, ForkedAgent
from rl4sys.policy import kernel_set

CHILD_SECONDS = 30
"""A child that hangs ends itself after so long, with a signal."""


def in_child(work: Callable[[], None]) -> int:
    """Fork, and run this in the child; returns its process id."""
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(CHILD_SECONDS)
    try:
        work()
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def code_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def decide_alone(runtime: str) -> None:
    with agent_on(FakeServer(), client_id="child", runtime=runtime) as agent:
        with agent.episode() as episode:
            steps(episode, 20)
            episode.end(seen(20))
        assert agent.health().decisions == 20
        assert agent.flush()


@pytest.mark.parametrize("runtime", sorted({"numpy", "auto" if kernel_set() == "numpy" else "native"}))
def test_a_child_of_a_connected_parent_connects_and_decides(runtime: str) -> None:
    with agent_on(FakeServer(), runtime=runtime) as agent, agent.episode() as episode:
        steps(episode, 5)
        assert code_of(in_child(lambda: decide_alone(runtime))) == 0
        steps(episode, 5, first=5)
        assert agent.health().decisions == 10


@pytest.mark.timeout(180)
def test_two_hundred_forks_of_a_deciding_program_do_not_hang() -> None:
    def refused(agent: Agent) -> None:
        try:
            agent.health()
        except ForkedAgent:
            return
        raise AssertionError("The agent of the parent was used.")

    with agent_on(FakeServer()) as agent:
        running: list[int] = []
        for number in range(200):
            with agent.episode() as episode:
                steps(episode, 3)
                running.append(in_child(lambda: refused(agent)))
                episode.reward(float(number))
                episode.end(seen(3))
            if len(running) == 4:
                assert code_of(running.pop(0)) == 0
        assert [code_of(child) for child in running] == [0] * len(running)
        assert agent.flush()
        assert agent.health().decisions == 600
