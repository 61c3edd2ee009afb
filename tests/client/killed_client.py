"""A client with an outbox on disk whose server never answers; it prints how many segments the outbox has."""

from __future__ import annotations

import sys
import threading

from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer
from tests.client.waiting import until

if __name__ == "__main__":
    server = FakeServer()
    server.before = lambda call: threading.Event().wait(1000) if call == "push" else None
    agent = agent_on(server, outbox=sys.argv[1])
    for episode_number in range(20):
        with agent.episode() as episode:
            steps(episode, 3, first=10 * episode_number)
            episode.end(seen(10 * episode_number + 3))
    until(lambda: agent._queue.waiting == 0)
    print(agent.health().backlog, flush=True)
    threading.Event().wait(1000)
