"""Time of one decision, compared with torch and Stable-Baselines3, the share of the latency histogram, and of imports.

Run `python benchmarks/runtime.py`; times are microseconds of one call. The comparison with Stable-Baselines3 needs
a virtual environment with it in `benchmarks/.venv-sb3`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.client.agents import agent_on, seen
from tests.client.fake_server import FakeServer

from rl4sys.client import episode, episode_record, native_acting
from rl4sys.client.decision_times import SAMPLED
from rl4sys.experience import ArraySpec, StreamKey
from rl4sys.policy import DiscreteAction, Head, KeyedNoise, NumpyPolicy, PolicySpec, ProgramBuilder, layout_of

SB3_PYTHON = Path(__file__).parent / ".venv-sb3" / "bin" / "python"
OBSERVATION, HIDDEN, CHOICES = 8, 64, 4
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

IMPORTS = """
import json, time
begin = time.perf_counter()
import rl4sys, rl4sys.experience, rl4sys.weights, rl4sys.policy
seconds = time.perf_counter() - begin
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"seconds": seconds, "megabytes": int(status["VmRSS"].split()[0]) / 1024}))
"""

SB3 = """
import json, sys, time
import gymnasium, numpy, torch
from stable_baselines3 import PPO

class Still(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (8,))
    action_space = gymnasium.spaces.Discrete(4)

torch.set_num_threads(1)
model = PPO("MlpPolicy", Still(), device="cpu")
observation = numpy.ones(8, numpy.float32)
times = []
for _ in range(int(sys.argv[1])):
    begin = time.perf_counter_ns()
    model.predict(observation)
    times.append(time.perf_counter_ns() - begin)
times = numpy.array(times[len(times) // 10 :]) / 1000
print(json.dumps({"median": float(numpy.median(times)), "p99": float(numpy.percentile(times, 99))}))
"""

Times = dict[str, float]
RUNTIMES = ("native", "numpy") if importlib.util.find_spec("rl4sys_native") else ("numpy",)
_NEVER = 1 << 30
"""Decisions of which one is timed, to time none of them."""


def timed(repeats: int, call: Callable[[int], object]) -> Times:
    """Median and 99th percentile of `call`, which gets its number; the first tenth is a warm-up."""
    times = []
    for number in range(repeats):
        begin = perf_counter_ns()
        call(number)
        times.append(perf_counter_ns() - begin)
    steady = np.array(times[repeats // 10 :]) / 1000
    return {"median": float(np.median(steady)), "p99": float(np.percentile(steady, 99))}


def policy_spec() -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("state", "float32", (OBSERVATION,)),))
    register = "state"
    for layer in range(2):
        register = builder.activation(builder.linear(register, HIDDEN, f"actor.{layer}"), "tanh")
    logits = builder.linear(register, CHOICES, "actor.action")
    return PolicySpec(DiscreteAction(CHOICES), builder.program(), Head("categorical", (logits,)))


def numpy_times(rows: int, repeats: int) -> Times:
    spec, rng = policy_spec(), np.random.default_rng(0)
    policy = NumpyPolicy(spec, 0.1 * rng.standard_normal(layout_of(spec.program).size))
    noise = KeyedNoise(0, [StreamKey("benchmark", lane=lane) for lane in range(rows)], policy.noise_size)
    observation = {"state": rng.random((rows, OBSERVATION), np.float32)}
    return timed(repeats, lambda step: policy.act(observation, noise.at(step)))


def torch_times(rows: int, repeats: int) -> Times:
    import torch

    torch.set_num_threads(1)
    layers = [torch.nn.Linear(OBSERVATION, HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.Linear(HIDDEN, CHOICES)]
    network = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1], torch.nn.Tanh(), layers[2])
    state = np.random.default_rng(0).random((rows, OBSERVATION), np.float32)

    def act(_: int) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            choices = torch.distributions.Categorical(logits=network(torch.from_numpy(state)))
            action = choices.sample()
            return action.numpy(), choices.log_prob(action).numpy()

    return timed(repeats, act)


def histogram_share(rounds: int, decisions: int) -> dict[str, float]:
    """Microseconds of CPU time of `episode.act` with the latency histogram and without, by runtime, and its share.

    One decision of some is timed and goes a longer way, so means are compared: of many short rounds in turn, of which
    the median counts.
    """
    found = {}
    for runtime in RUNTIMES:
        costs: dict[int, list[float]] = {SAMPLED: [], _NEVER: []}
        for number in range(2 * rounds):
            sampled = (SAMPLED, _NEVER)[number % 2]
            for module in (episode, episode_record, native_acting):
                module.SAMPLED = sampled
            costs[sampled].append(act_cost(runtime, decisions))
        with_it, without = (float(np.median(each)) for each in costs.values())
        found |= {f"{runtime}, with": with_it, f"{runtime}, without": without, runtime: with_it / without - 1.0}
    return found


def act_cost(runtime: str, decisions: int) -> float:
    """Microseconds of CPU time of one `act` of a new agent."""
    observation = seen(1)
    with agent_on(FakeServer(), runtime=runtime) as agent, agent.episode() as opened:
        for _ in range(decisions // 10):
            opened.act(observation)
        began = thread_time_ns()
        for _ in range(decisions):
            opened.act(observation)
        return (thread_time_ns() - began) / decisions / 1000


def last_line_of(python: str, program: str, *arguments: str, environment: dict[str, str] | None = None) -> Times:
    """The last line that a program prints in a new process, as JSON."""
    command, variables = [python, "-c", program, *arguments], os.environ | (environment or {})
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=variables).stdout
    found: Times = json.loads(output.splitlines()[-1])
    return found


def import_cost() -> Times:
    """The median of five, so that a cold disk or another process does not count."""
    costs = [last_line_of(sys.executable, IMPORTS) for _ in range(5)]
    return {name: float(np.median([cost[name] for cost in costs])) for name in costs[0]}


def measure(repeats: int) -> dict[str, Times]:
    results = {"import": import_cost(), "histogram": histogram_share(rounds=20, decisions=repeats // 4)}
    for rows in (1, 8):
        results[f"numpy, {rows} row(s)"] = numpy_times(rows, repeats)
        results[f"torch, {rows} row(s)"] = torch_times(rows, repeats // 4)
    if SB3_PYTHON.exists():
        results["sb3 predict, 1 row(s)"] = last_line_of(str(SB3_PYTHON), SB3, str(repeats // 4), environment=ONE_THREAD)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    results = measure(options.repeats)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    cost, histogram, ours = results.pop("import"), results.pop("histogram"), results["numpy, 1 row(s)"]["median"]
    print(f"import of the client core: {cost['seconds']:.3f} s (target 0.3), {cost['megabytes']:.0f} MB (target 60)")
    print(f"{'':24}{'median µs':>12}{'p99 µs':>12}{'× numpy, 1 row':>18}")
    for name, times in results.items():
        print(f"{name:24}{times['median']:12.1f}{times['p99']:12.1f}{times['median'] / ours:18.1f}")
    for runtime in RUNTIMES:
        means = f"{histogram[f'{runtime}, with']:.2f} µs of CPU with it, {histogram[f'{runtime}, without']:.2f} without"
        print(f"latency histogram, {runtime} runtime: {histogram[runtime]:.1%} of act ({means}; target 2 %)")
    print("targets: numpy median ≤ 25 µs for one row, and sb3 at least 8 times slower")


if __name__ == "__main__":
    main()
