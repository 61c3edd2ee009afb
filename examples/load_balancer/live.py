"""The live service: proxy, backends, generator and training server, for as long as a comparison takes."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rl4sys
from rl4sys.environments.balancing.backend_view import FEATURES
from rl4sys.environments.balancing.requests import CLASSES, SPEEDS, Disturbance
from rl4sys.environments.balancing.rules import BASELINE, RULES
from rl4sys.environments.balancing.simulation import Latencies

from .choosers import RuleChooser, fewest_in_flight
from .policy_choosers import PolicyChoosers
from .processes import backend_arguments, read_latencies, serving_port, started
from .proxy import Chooser, Proxy
from .simulated import LEARNED, simulated_baseline
from .switchback import Block, RuleReport, block_seconds, compare, comparison_start, plan

LEARNING = "while learning"
"""The policy that explores and learns: the time before the comparison, and blocks of it if they are asked for."""
EXPLORING = "exploring"
"""The name of such blocks."""


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What to run."""

    rules: Sequence[str]
    """Compared with the learned policy; `exploring` is the one that still learns. The baseline is always compared."""
    seconds: float
    """Of learning, before anything is compared."""
    blocks: int
    """Of each rule."""
    rate: float
    chaos: bool
    seed: int
    out: Path
    """For logs and the server's data."""
    kill_server: bool = False
    """Whether the training server is killed in the middle of the comparison."""


@dataclass(slots=True)
class LiveResult:
    """What came out."""

    reports: list[RuleReport]
    failed: int
    """Requests without an answer."""
    guard: dict[str, dict[str, int]]
    """Decisions of the policy and of the guard by reason, while learning and in the comparison."""
    version: int | None
    """Of the policy that was compared."""
    simulated: Latencies
    """Of the baseline in its blocks, with the same requests in the simulation."""
    at: NDArray[np.float64]
    """When requests were to be sent, in seconds since the start."""
    latencies: NDArray[np.float64]


def run_live(settings: LiveSettings, show: Callable[[Proxy, str, PolicyChoosers], None]) -> LiveResult:
    """Run everything; `show` is called every second with what happens."""
    settings.out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        log = settings.out / "server.log"
        data = settings.out / "server"
        command = ["-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(data)]
        server = stack.enter_context(started(*command, errors=log))
        server_port = serving_port(server, log)
        ports, epoch = [], time.monotonic()
        for number in range(len(SPEEDS)):
            errors = settings.out / f"backend{number}.log"
            arguments = backend_arguments(number, chaos=settings.chaos, began=epoch)
            ports.append(serving_port(stack.enter_context(started(*arguments, errors=errors)), errors))
        learning = client_settings(server_port)
        agents = [
            stack.enter_context(rl4sys.connect(each, fallback=fewest_in_flight))
            for each in (learning, exploiting(learning))
        ]
        policy = PolicyChoosers(*agents, RULES[BASELINE](random.Random(settings.seed)))
        return asyncio.run(_run(settings, ports, policy, epoch, show, server.kill))


def client_settings(port: int) -> dict[str, object]:
    """The settings of the balancer's client that learns."""
    return {
        "client_id": "balancer",
        "policy_id": "balancer",
        "server": f"127.0.0.1:{port}",
        "algorithm": {
            "name": "ppo",
            "gamma": 0.95,
            "lr": 1e-3,
            "entropy_coef": 0.003,
            # Smaller minibatches of this noisy reward leave a policy whose most probable choices are poor.
            "epochs": 4,
            "minibatch_size": 256,
            # About ten seconds of least connections, before anything is left to chance.
            "imitate": {"decisions": 3_000},
        },
        "buffer": {"size": 2048},
        "network": {"actor": {"type": "candidates", "hidden_dims": [32, 32]}},
        "candidates": [len(SPEEDS), FEATURES],
        "observation": {"context": len(CLASSES)},
        "reward_timeout": "10s",
        "timeout": 30,
    }


def exploiting(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings of a second client that follows the same policy, takes its best choices and records nothing."""
    return {**settings, "client_id": "balancer-exploiting", "mode": "exploit"}


async def _run(
    settings: LiveSettings,
    ports: Sequence[int],
    policy: PolicyChoosers,
    epoch: float,
    show: Callable[[Proxy, str, PolicyChoosers], None],
    kill_server: Callable[[], None],
) -> LiveResult:
    """`epoch`: when the periods of the disturbance began."""
    rng = random.Random(settings.seed)
    disturbance = Disturbance() if settings.chaos else None
    began, block = time.monotonic() + 1.0, block_seconds(disturbance)
    compared_from = comparison_start(began + settings.seconds, epoch, disturbance)
    choosers: dict[str, Chooser] = {
        name: policy.learning if name == EXPLORING else RuleChooser(RULES[name](rng))
        for name in sorted({BASELINE, *settings.rules})
    }
    choosers[LEARNED] = policy.learned
    order = np.random.default_rng(settings.seed)
    blocks = plan(sorted(choosers), settings.blocks, compared_from, order, block)
    proxy = Proxy(ports, policy.learning)
    service = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = service.sockets[0].getsockname()[1]
    total = compared_from - began + block * len(blocks)
    generator = await asyncio.create_subprocess_exec(
        *_generator(port, settings, total, began), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    collecting = asyncio.create_task(generator.communicate())
    is_killed = False
    try:
        while not collecting.done():
            now = time.monotonic()
            name = next((block.rule for block in blocks if block.start <= now < block.end), LEARNING)
            proxy.chooser = choosers.get(name, policy.learning)
            if settings.kill_server and not is_killed and now > (compared_from + began + total) / 2:
                kill_server()
                is_killed = True
            policy.refresh()
            show(proxy, name, policy)
            await asyncio.sleep(min(1.0, _until_change(blocks, now)))
    finally:
        if generator.returncode is None:
            generator.terminate()
        output, _ = await collecting
        service.close()
        proxy.close()
    at, latencies, failed = read_latencies(output.decode())
    whole = [*_blocks_before(compared_from, LEARNING, began, block), *blocks]
    reports = compare(whole, at, latencies, BASELINE, np.random.default_rng(settings.seed))
    own = [Block(each.rule, each.start - epoch, each.end - epoch) for each in blocks if each.rule == BASELINE]
    simulated = simulated_baseline(own, began - epoch, settings.rate, settings.seed, chaos=settings.chaos)
    return LiveResult(reports, failed, policy.counts(), policy.version, simulated, at - began, latencies)


def _generator(port: int, settings: LiveSettings, seconds: float, began: float) -> list[str]:
    arguments = {"port": port, "rate": settings.rate, "seconds": seconds, "seed": settings.seed, "began": began}
    named = [part for name, value in arguments.items() for part in (f"--{name}", str(value))]
    return [sys.executable, "-m", "examples.load_balancer.generator", *named]


def _blocks_before(end: float, rule: str, start: float, seconds: float) -> list[Block]:
    """The whole blocks of one rule in a span of time, the last of which ends with it."""
    count = int((end - start) // seconds)
    return [Block(rule, end - seconds * (n + 1), end - seconds * n) for n in reversed(range(count))]


def _until_change(blocks: Sequence[Block], now: float) -> float:
    """Seconds until another rule decides."""
    return min((block.start - now for block in blocks if block.start > now), default=1.0)
