"""The numbers in the README are those of benchmarks/RESULTS.md and of the pages of the algorithms."""

from __future__ import annotations

import re

import pytest

from .documents import ROOT

README = (ROOT / "README.md").read_text("utf-8")
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8")
NUMBER = r"([\d,]+(?:\.\d+)?)"
SPEEDS = {
    "ppo-cartpole": "PPO {} (CartPole)",
    "ppo-lunarlander": "{} (LunarLander)",
    "dqn-cartpole": "DQN {}",
    "sac-halfcheetah": "SAC {}",
    "td3-halfcheetah": "TD3 {}",
    "ddpg-halfcheetah": "DDPG {}",
}


def measured(pattern: str) -> list[float]:
    """The numbers of the first line in the results that matches."""
    found = re.search(pattern, RESULTS)
    assert found is not None, f"RESULTS.md has no line like {pattern}"
    return [float(number.replace(",", "")) for number in found.groups()]


@pytest.mark.parametrize("task", SPEEDS)
def test_training_speeds_are_the_measured_ones(task: str) -> None:
    ratios = sorted(float(ratio) for ratio in re.findall(rf"{task}: synchronous ([\d.]+)× sb3", RESULTS))
    lowest, highest = f"{ratios[0]:.1f}×", f"{ratios[-1]:.1f}×"
    expected = SPEEDS[task].format(lowest if lowest == highest else f"{lowest} to {highest}")
    assert expected in README


def test_latencies_memory_and_throughput_are_the_measured_ones() -> None:
    in_cpp, in_python = measured(rf"act: median µs +{NUMBER} +{NUMBER}")
    slowest_in_cpp, slowest_in_python = measured(rf"act: p99 µs +{NUMBER} +{NUMBER}")
    native, slowest_native = measured(rf"runtime +native[\s\S]*?decision +\{{'median µs': {NUMBER}, 'p99 µs': {NUMBER}")
    (predict,) = measured(rf"sb3 predict, 1 row\(s\) +{NUMBER}")
    (memory,) = measured(rf"client alone, MB +{NUMBER}")
    (stored,) = measured(rf"four fast clients\n +steps/s +{NUMBER}")
    expected = [
        f"| {in_cpp:.1f} µs median, {slowest_in_cpp:.1f} µs p99 |",
        f"| {native:.1f} µs median, {slowest_native:.0f} µs p99, in a loop of LunarLander while the server trains |",
        f"| {in_python:.0f} µs median, {slowest_in_python:.0f} µs p99 |",
        f"| {predict:.0f} µs median |",
        f"| {memory:.0f} MB |",
        f"| {1_000 * int(stored / 1_000):,} steps/s from four clients |",
    ]
    assert [line for line in expected if line not in README] == []


@pytest.mark.parametrize("algorithm", ["ppo", "sac", "td3", "ddpg"])
def test_scores_on_pendulum_are_the_means_over_seeds(algorithm: str) -> None:
    page = (ROOT / "docs" / "algorithms" / f"{algorithm}.md").read_text("utf-8")
    row = re.search(r"^\| Pendulum-v1 \| \w+ \| −(\d+) [^|]*\| ([−\d., ]+) \|$", page, re.MULTILINE)
    assert row is not None
    seeds = [float(number) for number in row[2].replace("−", "-").split(", ")]
    line = next(line for line in README.splitlines() if f"docs/algorithms/{algorithm}.md" in line)
    assert f"Pendulum −{-sum(seeds) / len(seeds):.0f} (−{row[1]})" in line
