"""Cost of learning for a live system: a client in this process, a real server and its learner in others.

Run `python benchmarks/live.py`. LunarLander-v3, PPO with its default settings (64×64), all on this machine. The client
decides natively where the extension is installed; `--runtime numpy` measures it without, and `--runtime both` measures
both one after the other. The goals of a runtime are printed at the end, each with whether it is met.

- loop: steps per second of the environment with the agent acting and recording while the server trains, as a share of
  the bare loop (`env.step(env.action_space.sample())`), the two alternating;
- decision: microseconds of `episode.act` in that loop, then with the server hung (stopped), killed, and replaced by one
  that sends garbage;
- paced: time that the agent adds to a system that computes for about a millisecond between two decisions, compared with
  the matrix products alone;
- experience: the share of pushed steps that the learner used, and why the rest was not used;
- bytes: of a step sent to the server, and of a model update sent back, for two actors; resident memory of a client
  without an environment.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, perf_counter_ns
from typing import Any

import gymnasium
import numpy as np

import rl4sys
from rl4sys.client import Agent
from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.client.settings import load_settings
from rl4sys.wire.generated import status_pb2
from serving import Serving, serving

ACTORS = {"8→32→16→8→4": [32, 16, 8], "8→64→64→4": [64, 64]}
GARBAGE = bytes(range(256)) * 64
CLIENT_ALONE = """
import re, sys
from pathlib import Path
import numpy as np
import rl4sys
settings = {"client_id": "alone", "server": sys.argv[1], "runtime": sys.argv[2]}
settings |= {"algorithm": "PPO", "observation": 8, "action": 4}
with rl4sys.connect(settings) as agent:
    row = np.zeros(8, np.float32)
    for _ in range(20):
        with agent.episode() as episode:
            for _ in range(200):
                episode.act(row)
                episode.reward(1.0)
            episode.end(row)
    agent.flush()
    # Not getrusage: its peak includes that of the parent.
    print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


class Counting(GrpcTransport):
    """Counts the bytes of messages in both directions."""

    pushed = 0
    updates: list[int]

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.updates = []

    def push(self, request: Any, timeout: float) -> Any:
        self.pushed += request.ByteSize()
        return super().push(request, timeout)

    def watch(self, request: Any) -> Any:
        return _CountedWatching(super().watch(request), self.updates)


class _CountedWatching:
    def __init__(self, watching: Any, updates: list[int]) -> None:
        self._watching, self._updates = watching, updates

    def __iter__(self) -> Iterator[Any]:
        for news in self._watching:
            self._updates.append(news.ByteSize())
            yield news

    def cancel(self) -> None:
        self._watching.cancel()


@contextmanager
def connected(
    address: str, name: str, hidden: list[int] | None = None, runtime: str = "auto"
) -> Iterator[tuple[Agent, Counting]]:
    """An agent with a new learner."""
    values: dict[str, Any] = {"client_id": name, "server": address, "algorithm": "PPO", "observation": 8, "action": 4}
    values |= {"timeout": 60.0, "runtime": runtime}
    if hidden is not None:
        values["network"] = {"actor": {"hidden_dims": hidden}}
    settings = load_settings(values)
    transport = Counting(settings)
    try:
        with rl4sys.connect(settings, transport=transport) as agent:
            yield agent, transport
    finally:
        transport.close()


def bare(env: gymnasium.Env[Any, Any], steps: int) -> float:
    """Seconds of a loop with random actions."""
    begin = perf_counter()
    env.reset()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return perf_counter() - begin


def deciding(agent: Agent, env: gymnasium.Env[Any, Any], steps: int, times: list[int]) -> float:
    """Seconds of the same loop with the agent; appends the nanoseconds of each decision to `times`."""
    begin = perf_counter()
    observation, _ = env.reset()
    episode = agent.episode()
    for _ in range(steps):
        start = perf_counter_ns()
        action = episode.act(observation)
        times.append(perf_counter_ns() - start)
        observation, reward, terminated, truncated, _ = env.step(action)
        episode.reward(float(reward))
        if terminated or truncated:
            episode.end(observation, rl4sys.Ending.TERMINATED if terminated else rl4sys.Ending.TRUNCATED)
            observation, _ = env.reset()
            episode = agent.episode()
    episode.end(observation, rl4sys.Ending.TRUNCATED)
    return perf_counter() - begin


def decision_times(times: list[int]) -> dict[str, float]:
    steady = np.array(times[len(times) // 10 :]) / 1000
    return {
        "median µs": float(np.median(steady)),
        "p99 µs": float(np.percentile(steady, 99)),
        "max µs": float(steady.max()),
    }


def loops(agent: Agent, server: Serving, steps: int, rounds: int) -> dict[str, Any]:
    env = gymnasium.make("LunarLander-v3")
    env.action_space.seed(0)
    env.reset(seed=0)
    deciding(agent, env, steps // 4, [])
    times: list[int] = []
    alone, together = [], []
    cpu = server.cpu_seconds()
    for _ in range(rounds):
        alone.append(bare(env, steps))
        together.append(deciding(agent, env, steps, times))
    cpu = server.cpu_seconds() - cpu
    return {
        "bare steps/s": steps / float(np.median(alone)),
        "share of the bare loop": float(np.median(alone)) / float(np.median(together)),
        "µs of server CPU per step": cpu / (steps * rounds) * 1e6,
        "decision": decision_times(times),
    }


def disturbed(agent: Agent, steps: int) -> dict[str, float]:
    env = gymnasium.make("LunarLander-v3")
    env.reset(seed=1)
    times: list[int] = []
    deciding(agent, env, steps, times)
    return decision_times(times)


def paced(agent: Agent, decisions: int) -> dict[str, float]:
    """The same computation alone, before a decision, and before the matrix products of one in numpy, in short blocks.

    Blocks are short because the machine is shared: its speed can change by half within a second, and adjacent blocks
    see the same speed. Background threads run during all kinds of blocks, so all their CPU time is counted.
    """
    work, bare = _work_of(0.001), _bare_decision()
    observation = np.zeros(8, np.float32)
    episode = agent.episode()

    def decide() -> None:
        episode.act(observation)
        episode.reward(0.0)

    block, spent = 20, {"nothing": 0.0, "bare": 0.0, "agent": 0.0}
    kinds: dict[str, Callable[[], object]] = {"nothing": lambda: None, "bare": bare, "agent": decide}
    cpu, own = time.process_time(), time.thread_time()
    for _ in range(decisions // block):
        for kind, after in kinds.items():
            begin = perf_counter()
            for _ in range(block):
                work()
                after()
            spent[kind] += perf_counter() - begin
    behind = (time.process_time() - cpu) - (time.thread_time() - own)
    episode.end(observation, rl4sys.Ending.TRUNCATED)
    added = (spent["agent"] - spent["nothing"]) / decisions * 1e6
    return {
        "computation ms": spent["nothing"] / decisions * 1000,
        "added µs": added,
        "added by bare numpy µs": (spent["bare"] - spent["nothing"]) / decisions * 1e6,
        "µs of background threads": behind / decisions * 1e6,
        "% of a millisecond": (added + behind / decisions * 1e6) / 10,
    }


def _bare_decision() -> Callable[[], object]:
    """The matrix products of 8→64→64→4 and a sampled action: no checks, no recording, no versions."""
    rng = np.random.default_rng(0)
    sizes = (8, 64, 64, 4)
    layers = [
        (rng.normal(size=(rows, columns)).astype(np.float32), np.zeros(columns, np.float32))
        for rows, columns in itertools.pairwise(sizes)
    ]
    observation = np.zeros((1, 8), np.float32)

    def decide() -> int:
        row = observation
        for number, (weight, bias) in enumerate(layers):
            row = row @ weight + bias
            if number < 2:
                row = np.tanh(row)
        return int(np.argmax(row + rng.gumbel(size=4)))

    return decide


def _work_of(seconds: float) -> Callable[[], int]:
    count = 1_000
    while True:
        begin = perf_counter()
        sum(range(count))
        if perf_counter() - begin > seconds / 2:
            break
        count *= 2
    begin = perf_counter()
    for _ in range(20):
        sum(range(count))
    count = int(count * seconds / ((perf_counter() - begin) / 20))
    return lambda: sum(range(count))


def used(agent: Agent, server: Serving) -> dict[str, Any]:
    """The share of pushed steps that were learned from, after the learner has read all of them."""
    agent.flush(60.0)
    transport = GrpcTransport(load_settings({"client_id": "status", "server": server.address}))
    try:
        while True:
            (learner,) = [
                each
                for each in transport.status(status_pb2.StatusRequest(), 10.0).learners
                if each.learner == agent.settings.client_id
            ]
            if learner.queued_segments == 0:
                break
            time.sleep(0.2)
    finally:
        transport.close()
    return {
        "stored steps": learner.stored_steps,
        "used %": 100 * learner.learned_steps / learner.stored_steps,
        "unused": dict(learner.unused_steps),
        "updates": learner.updates,
    }


@contextmanager
def garbage_on(port: int) -> Iterator[None]:
    """Sends meaningless bytes to every connection."""
    listener = socket.create_server(("127.0.0.1", port))
    listener.settimeout(0.1)
    over = threading.Event()

    def answer() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(1.0)
                try:
                    connection.sendall(GARBAGE)
                except OSError:
                    continue

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        listener.close()


def update_bytes(server: Serving, hidden: list[int], versions: int = 8) -> float:
    """The mean size of a new version, as it arrives with its announcement."""
    env = gymnasium.make("LunarLander-v3")
    env.reset(seed=2)
    with connected(server.address, f"actor-{'-'.join(map(str, hidden))}", hidden) as (agent, transport):
        while len(transport.updates) < versions + 1:
            deciding(agent, env, 2_000, [])
        # The first one is a full copy.
        return float(np.mean(transport.updates[1:]))


def hot(agent: Agent, decisions: int) -> dict[str, float]:
    """Decisions one after the other, with nothing in between but a reward."""
    observation = np.zeros(8, np.float32)
    times: list[int] = []
    with agent.episode() as episode:
        for _ in range(decisions):
            start = perf_counter_ns()
            episode.act(observation)
            times.append(perf_counter_ns() - start)
            episode.reward(0.0)
        episode.end(observation, rl4sys.Ending.TRUNCATED)
    return decision_times(times)


def import_seconds() -> float:
    """The median time of `import rl4sys` in a new process, beyond that of an empty one."""
    times: dict[str, list[float]] = {"pass": [], "import rl4sys; rl4sys.connect": []}
    for _ in range(7):
        for code, found in times.items():
            begin = perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found.append(perf_counter() - begin)
    empty, whole = (float(np.median(found)) for found in times.values())
    return whole - empty


def measure(steps: int, rounds: int, runtime: str) -> dict[str, Any]:
    results: dict[str, Any] = {}
    with serving() as server, connected(server.address, "lander", None, runtime) as (agent, transport):
        results["client"] = {"runtime": agent.health().runtime, "import s": import_seconds()}
        results["loop"] = loops(agent, server, steps, rounds)
        results["experience"] = stored = used(agent, server)
        pushed = transport.pushed
        results["paced"] = paced(agent, min(8_000, steps))
        # Last: the server asks for a smaller share of episodes from a client that decides this often.
        results["hot"] = hot(agent, steps)
        results["wire"] = {"bytes per step": pushed / stored["stored steps"]}
        for name, hidden in ACTORS.items():
            results["wire"][f"bytes per update, {name}"] = update_bytes(server, hidden)
        alone = subprocess.run(
            [sys.executable, "-c", CLIENT_ALONE, server.address, runtime], capture_output=True, text=True, check=True
        )
        results["memory"] = {"client alone, MB": float(alone.stdout)}
        normal = disturbed(agent, steps)
        os.kill(server.process.pid, signal.SIGSTOP)
        hung = disturbed(agent, steps)
        os.kill(server.process.pid, signal.SIGCONT)
        agent.flush(30.0)
        again = disturbed(agent, steps)
        server.process.kill()
        server.process.wait()
        killed = disturbed(agent, steps)
        with garbage_on(server.port):
            garbage = disturbed(agent, steps)
        results["decisions"] = {
            "server answers": normal,
            "server hung": hung,
            "server answers again": again,
            "server killed": killed,
            "server sends garbage": garbage,
        }
    return results


def goals(results: dict[str, Any]) -> list[tuple[str, float, str, float]]:
    """What is asked for: name, measured, `≤` or `≥`, goal."""
    is_native = results["client"]["runtime"] != "numpy"
    loop, decision, decisions = results["loop"], results["loop"]["decision"], results["decisions"]
    normal = min(decisions["server answers"]["p99 µs"], decisions["server answers again"]["p99 µs"])
    worst = max(decisions[name]["p99 µs"] for name in ("server hung", "server killed", "server sends garbage"))
    found = [
        ("share of the bare loop", loop["share of the bare loop"], "≥", 0.80 if is_native else 0.65),
        ("µs of server CPU per step", loop["µs of server CPU per step"], "≤", 10.0),
        ("decision in the loop, median µs", decision["median µs"], "≤", 30.0),
        ("decision in the loop, p99 µs", decision["p99 µs"], "≤", 60.0 if is_native else 150.0),
        ("paced, % of a millisecond", results["paced"]["% of a millisecond"], "≤", 2.0 if is_native else 4.0),
        ("used experience, %", results["experience"]["used %"], "≥", 90.0),
        ("bytes per step", results["wire"]["bytes per step"], "≤", 60.0),
        ("bytes per update of 8→32→16→8→4", results["wire"]["bytes per update, 8→32→16→8→4"], "≤", 3_000.0),
        ("client alone, MB", results["memory"]["client alone, MB"], "≤", 80.0),
        ("import, s", results["client"]["import s"], "≤", 0.3),
        ("p99 without a server / with one", worst / normal, "≤", 1.2),
    ]
    return [("decision hot, median µs", results["hot"]["median µs"], "≤", 2.0), *found] if is_native else found


def show(results: dict[str, Any]) -> None:
    """Print everything measured with one runtime, then the goals."""
    for part, numbers in results.items():
        if part == "decisions":
            continue
        print(part)
        for name, value in numbers.items():
            print(f"  {name:36}{value:12,.2f}" if isinstance(value, int | float) else f"  {name:36}{value}")
    print(f"{'episode.act':24}{'median µs':>12}{'p99 µs':>12}{'max µs':>12}")
    for name, times in results["decisions"].items():
        print(f"  {name:22}" + "".join(f"{value:12.1f}" for value in times.values()))
    print(f"goals with {results['client']['runtime']}")
    for name, value, sign, goal in goals(results):
        is_met = value <= goal if sign == "≤" else value >= goal
        print(f"  {name:36}{value:12,.2f}  {sign} {goal:<10,.6g}{'met' if is_met else 'missed'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20_000, help="steps of each loop")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--runtime", choices=("auto", "numpy", "native", "both"), default="auto", help="of the client; both in turn"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    runtimes = ("numpy", "native") if options.runtime == "both" else (options.runtime,)
    results = [measure(options.steps, options.rounds, runtime) for runtime in runtimes]
    if options.json:
        print(json.dumps(results if options.runtime == "both" else results[0], indent=2))
        return
    for each in results:
        show(each)


if __name__ == "__main__":
    main()
