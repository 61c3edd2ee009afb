"""One-step episodes (bandits): what the server spends on each, and whether a fast client loses any.

Run `python benchmarks/short_episodes.py`; the C++ client takes part if it is built. The server is a separate process
that syncs what it acknowledges to the disk; 8 numbers are observed, 4 choices.

- server: microseconds of CPU of the whole server (ingest process and learner) per episode, from the first push until
  the learner has taken in the last one: in packs of 1,000, and each alone, 256 in a push, in turn. DQN does not update
  meanwhile (`learning_starts`), so this is what receiving, checking, storing, reading and keeping them costs. PPO makes
  its batches of 4,096 steps and learns from each in one pass (`epochs: 1`), which counts, too;
- batch: microseconds of CPU per episode for holding 2,048 of them and putting them together as a batch of PPO;
- rate: a client that ends 20,000 episodes a second, as far as the machine allows, its microseconds of CPU per episode
  with encoding and sending, and how many episodes were dropped. In Python with each runtime that is installed, one
  decision after the other (`act`) and 100 at once (`act_many`).

Each line ends with whether its goal is met: at most 10 µs of the server per episode in packs, at most 25 µs of a
client in Python, no drops and 20,000 episodes a second.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import rl4sys
from rl4sys.client import Agent
from rl4sys.experience import ArraySpec, Ending, Segment, SegmentPack, StreamKey
from rl4sys.policy import DiscreteAction, native_problem
from rl4sys.replay import OnceFresh, TrajectoryBuffer
from rl4sys.wire import SegmentFormat, decode_checked_pack, decode_policy, encode_pack, encode_segment
from rl4sys.wire.generated import status_pb2, training_pb2
from serving import Serving, serving

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.server.clients import join_request
from tests.server.loopback import StubTransport

OBSERVATION = (ArraySpec("observation", "float32", (8,)),)
NEVER = 10**9
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "DQN": ("DQN", {"algorithm": {"learning_starts": NEVER}, "buffer": {"size": 100_000}}),
    "PPO": (
        "PPO",
        {"algorithm": {"epochs": 1, "minibatch_size": 4_096, "max_age": NEVER}, "buffer": {"size": 4_096}},
    ),
}
PACK, ALONE = 1_000, 256
RATE = 20_000
SERVER_COST, CLIENT_COST = 10.0, 25.0
AT_ONCE = 100
CPP = Path(__file__).parents[1] / "cpp/build/release/benchmarks/rl4sys_short_episodes_benchmark"
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of_all(server: Serving) -> float:
    """CPU seconds of the server with its learners."""
    return sum(_cpu(pid) for pid in _family(server.process.pid))


def _family(pid: int) -> list[int]:
    children = {int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in _words(task / "children")}
    return [pid, *(each for child in children for each in _family(child))]


def _words(path: Path) -> list[str]:
    return path.read_text().split()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def bandit(number: int, version: int = 0, **extras: float) -> Segment:
    """One decision and its reward."""
    rng = np.random.default_rng(number)
    return Segment(
        StreamKey("bandit", "agent", number % 4),
        number,
        0,
        version,
        Ending.TERMINATED,
        {"observation": rng.standard_normal((2, 8)).astype(np.float32)},
        rng.integers(0, 4, 1),
        rng.standard_normal(1).astype(np.float32),
        {name: np.full(1, value, np.float32) for name, value in extras.items()},
        {},
    )


class Bandits:
    """A client that pushes prepared one-step episodes, as fast as they are acknowledged."""

    def __init__(self, server: Serving, method: str) -> None:
        self._transport = StubTransport(server.port)
        request = join_request(f"bandit-{method}", METHODS[method], "", OBSERVATION, DiscreteAction(4))
        self._joined = self._transport.join(request, 90)
        form = SegmentFormat.from_message(self._joined.schema)
        extras = {spec.name: -1.0 for spec in decode_policy(self._joined.explore).noted}
        segments = [bandit(number, **extras) for number in range(PACK)]
        self._alone, self._pack = [encode_segment(form, each) for each in segments], encode_pack(form, segments)
        self._sent = 0

    def push_packed(self, packs: int) -> int:
        for _ in range(packs):
            self._push([training_pb2.PushedSegment(sequence=self._sent, segment=self._pack, count=PACK)])
            self._sent += PACK
        return packs * PACK

    def push_alone(self, pushes: int) -> int:
        for _ in range(pushes):
            numbers = range(self._sent, self._sent + ALONE)
            self._push([training_pb2.PushedSegment(sequence=n, segment=self._alone[n % PACK]) for n in numbers])
            self._sent += ALONE
        return pushes * ALONE

    def wait(self) -> None:
        """Wait until the learner has taken everything in."""
        while any(each.queued_segments for each in self._transport.status(status_pb2.StatusRequest(), 30).learners):
            time.sleep(0.05)

    def _push(self, segments: list[training_pb2.PushedSegment]) -> None:
        joined = self._joined
        request = training_pb2.PushRequest(
            session=joined.session, epoch=1, schema_hash=joined.schema_hash, segments=segments
        )
        while True:
            reply = self._transport.push(request, 60)
            if sum(part.last - part.first + 1 for part in reply.acknowledged):
                return
            time.sleep(0.1)

    def close(self) -> None:
        self._transport.close()


def server_cost(method: str, rounds: int, episodes: int) -> None:
    with serving() as server:
        client = Bandits(server, method)
        client.push_packed(1)
        client.push_alone(1)
        client.wait()
        costs = np.array([[_cost(server, client, packed, episodes) for packed in (True, False)] for _ in range(rounds)])
        client.close()
    together, alone = np.median(costs, axis=0)
    print(
        f"server, {method}: {together:.1f} µs of CPU per episode in packs, {alone:.1f} µs alone, "
        f"ratio {np.median(costs[:, 0] / costs[:, 1]):.3f}: {verdict(together <= SERVER_COST)}"
    )


def _cost(server: Serving, client: Bandits, packed: bool, episodes: int) -> float:
    begin = cpu_of_all(server)
    # Alone they take so long that fewer will do.
    sent = client.push_packed(episodes // PACK) if packed else client.push_alone(episodes // 8 // ALONE)
    client.wait()
    return (cpu_of_all(server) - begin) / sent * 1e6


def batch_cost(rounds: int) -> None:
    form = SegmentFormat.of(_ppo_policy())
    segments = [bandit(number, log_prob=-1.0) for number in range(2_048)]
    data = [encode_pack(form, segments[begin : begin + 512]) for begin in range(0, 2_048, 512)]
    packs = [decode_checked_pack(form, each, client="bandit", count=512) for each in data]
    times = np.array([(_assembled(packs), _assembled(segments)) for _ in range(rounds)]) / len(segments) * 1e6
    together, alone = np.median(times, axis=0)
    print(f"batch: {together:.2f} µs of CPU per episode in packs, {alone:.2f} µs alone")


def _ppo_policy() -> Any:
    from rl4sys.server.learners.learner_setup import LearnerSetup
    from rl4sys.server.workers.learner_config import build_learner, resolve

    setup = LearnerSetup("bandit", "PPO", {}, OBSERVATION, DiscreteAction(4), 1_000)
    return build_learner(resolve("PPO", {}), setup).algorithm.policies.explore


def _assembled(parts: list[SegmentPack] | list[Segment]) -> float:
    buffer = TrajectoryBuffer(OnceFresh(steps=2_048, max_age=1))
    begin = time.thread_time()
    for part in parts:
        if isinstance(part, Segment):
            buffer.add(part)
            continue
        taken = buffer.absorb(part)
        if taken < len(part):
            buffer.add(part.segment(taken))
    (_,) = buffer.due()
    return time.thread_time() - begin


def verdict(is_met: bool) -> str:
    return "met" if is_met else "missed"


def python_rate(seconds: float, runtime: str, at_once: bool) -> None:
    rows = np.random.default_rng(0).standard_normal((AT_ONCE, 8)).astype(np.float32)
    name, parameters = METHODS["DQN"]
    with serving() as server:
        settings = {"client_id": "fast", "server": server.address, "observation": 8, "action": 4, "timeout": 90.0}
        settings |= {"algorithm": {"name": name, **parameters["algorithm"]}, "buffer": parameters["buffer"]}
        settings["runtime"] = runtime
        with rl4sys.connect(settings) as agent:
            begin, cpu, ended = time.monotonic(), time.process_time(), 0
            while (now := time.monotonic() - begin) < seconds:
                if ended > RATE * now:
                    time.sleep(ended / RATE - now)
                (_end_together if at_once else _end_each)(agent, rows)
                ended += AT_ONCE
            taken = time.monotonic() - begin
            agent.flush(120.0)
            used, health = time.process_time() - cpu, agent.health()
    rate, cost, drops = ended / taken, used / ended * 1e6, sum(health.drops.values())
    is_met = rate >= 0.99 * RATE and cost <= CLIENT_COST and drops == 0
    print(
        f"rate, Python, {health.runtime}, {'act_many' if at_once else 'act'}: {ended:,} episodes, {rate:,.0f}/s, "
        f"{cost:.1f} µs of client CPU each, {health.acknowledged:,} acknowledged, {health.thinned_episodes:,} not "
        f"recorded, dropped {drops:,} {dict(health.drops)}: {verdict(is_met)}"
    )


def _end_together(agent: Agent, rows: Any) -> None:
    episodes = [agent.episode() for _ in rows]
    agent.act_many(episodes, rows)
    for episode in episodes:
        episode.reward(1.0)
        episode.end()


def _end_each(agent: Agent, rows: Any) -> None:
    for row in rows:
        episode = agent.episode()
        episode.act(row)
        episode.reward(1.0)
        episode.end()


def cpp_rate(seconds: float) -> None:
    with serving() as server, tempfile.TemporaryDirectory() as directory:
        name, parameters = METHODS["DQN"]
        config = Path(directory) / "client.json"
        config.write_text(
            f'{{"client_id": "fast", "server": "{server.address}", "observation": 8, "action": 4, "timeout": 90, '
            f'"algorithm": {{"name": "{name}", "learning_starts": {NEVER}}}, '
            f'"buffer": {{"size": {parameters["buffer"]["size"]}}}}}'
        )
        done = subprocess.run([CPP, config, str(RATE), str(seconds)], capture_output=True, text=True, check=True)
    print(f"rate, C++: {done.stdout.strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    for method in METHODS:
        server_cost(method, arguments.rounds, arguments.episodes)
    batch_cost(arguments.rounds)
    for runtime in ["numpy"] if native_problem() else ["numpy", "native"]:
        for at_once in (False, True):
            python_rate(arguments.seconds, runtime, at_once)
    if CPP.exists():
        cpp_rate(arguments.seconds)
    else:
        print(f"rate, C++: not measured, {CPP.name} is not built")


if __name__ == "__main__":
    main()
