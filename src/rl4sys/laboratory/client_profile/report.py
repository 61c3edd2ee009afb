"""Compares the levels of a profile: what deciding, recording and sending cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rl4sys.client.client_level import ClientLevel
from rl4sys.client.profiler import bucket_time
from rl4sys.laboratory.client_profile.recording import ProfileFailed, Recording
from rl4sys.laboratory.comparison.statistics import Estimate

RESOLVED = 0.05
"""The widest interval of relative throughput that says something."""
_RESAMPLES = 20_000
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True, slots=True)
class LevelReport:
    """One level over all its blocks."""

    level: ClientLevel
    throughput: Estimate
    """Decisions per second relative to the level `off` of the same round; the geometric mean over rounds."""
    decisions: int
    decisions_per_second: float
    act_microseconds: dict[str, float]
    """Quantiles of the time in `act`, and its maximum."""
    caller_cpu_microseconds: float
    """Processor time per decision of the threads of the system, its own work included."""
    background_cpu_microseconds: float
    """Processor time per decision of the threads of the client and of gRPC."""
    sent_bytes_per_second: float
    sent_messages_per_second: float
    received_bytes_per_second: float
    received_messages_per_second: float
    waits_per_second: float
    preemptions_per_second: float
    backlog: float
    """Segments waiting to be sent or acknowledged, the mean at the end of blocks."""
    version_age: float | None
    """Seconds since the version in use arrived, the mean at the end of blocks."""

    @property
    def is_resolved(self) -> bool:
        """Whether the interval of the throughput is narrow enough to say something."""
        low, high = self.throughput.low, self.throughput.high
        return low is not None and high is not None and high - low <= RESOLVED

    def json_values(self) -> dict[str, Any]:
        """The level for `--json`."""
        return asdict(self) | {"throughput": self.throughput.json_values(), "is_resolved": self.is_resolved}


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What the client of one process costs."""

    clients: Sequence[str]
    rounds: int
    seconds: float
    """Of measuring, all levels together."""
    levels: Sequence[LevelReport]
    floor_microseconds: float | None
    """The bare products of the policy: the least that a decision can cost."""
    memory: int
    """Resident bytes at the end."""
    memory_growth: int
    """How much more than after the first round."""
    blocks: Sequence[dict[ClientLevel, float]]
    """Decisions per second in each round, by level."""

    @property
    def advice(self) -> str | None:
        """How long to measure until every level is resolved; None if all are."""
        widths = [
            level.throughput.high - level.throughput.low
            for level in self.levels
            if level.throughput.low is not None and level.throughput.high is not None
        ]
        if max(widths, default=0.0) <= RESOLVED:
            return None
        # The width of an interval shrinks with the root of the time.
        seconds = self.seconds * (max(widths) / RESOLVED) ** 2
        return (
            f"The widest interval is {max(widths):.1%} of the throughput, wider than {RESOLVED:.0%}: not resolved. "
            f"Measure for about {np.ceil(seconds / 60) * 60:.0f} s (--seconds), or on a machine where less else runs."
        )

    def json_values(self) -> dict[str, Any]:
        """The report for `--json`."""
        values = {name: getattr(self, name) for name in ("clients", "rounds", "seconds", "floor_microseconds")}
        return values | {
            "memory": self.memory,
            "memory_growth": self.memory_growth,
            "levels": [level.json_values() for level in self.levels],
            "blocks": list(self.blocks),
            "advice": self.advice,
        }


def report_on(recording: Recording, seed: int = 0) -> ProfileReport:
    """Compare the levels over all complete rounds; the same recording gives the same intervals."""
    rounds = recording.rounds()
    if len(rounds) < 2:
        raise ProfileFailed(
            f"The program ended after {len(rounds)} complete rounds of the levels; two are the least, about ten "
            f"seconds of deciding. Let it run longer."
        )
    if not all(block["decisions"] for blocks in rounds for block in blocks.values()):
        raise ProfileFailed(
            "The program took no decision for a whole block of half a second or more. Measure it under load, when it "
            "decides all the time."
        )
    speeds = [{level: _speed(block) for level, block in blocks.items()} for blocks in rounds]
    rng = np.random.default_rng(seed)
    return ProfileReport(
        recording.clients,
        len(rounds),
        sum(block["seconds"] for blocks in rounds for block in blocks.values()),
        [_level(level, [blocks[level] for blocks in rounds], _relative(level, speeds, rng)) for level in ClientLevel],
        None if recording.floor is None else recording.floor / 1e3,
        recording.blocks[-1]["memory"],
        recording.blocks[-1]["memory"] - max(block["memory"] for block in rounds[0].values()),
        speeds,
    )


def _speed(block: dict[str, Any]) -> float:
    return float(block["decisions"] / block["seconds"])


def _relative(level: ClientLevel, speeds: Sequence[dict[ClientLevel, float]], rng: np.random.Generator) -> Estimate:
    """The throughput of a level relative to `off`, with a bootstrap interval over rounds."""
    ratios = np.log([each[level] / each[ClientLevel.OFF] for each in speeds])
    if level is ClientLevel.OFF:
        return Estimate(1.0, 1.0, 1.0)
    draws = ratios[rng.integers(len(ratios), size=(_RESAMPLES, len(ratios)))].mean(axis=1)
    low, high = np.exp(np.percentile(draws, [2.5, 97.5]))
    return Estimate(float(np.exp(ratios.mean())), float(low), float(high))


def _level(level: ClientLevel, blocks: Sequence[dict[str, Any]], throughput: Estimate) -> LevelReport:
    totals = {name: sum(block[name] for block in blocks) for name in blocks[0] if name in _SUMMED}
    seconds, decisions = totals["seconds"], totals["decisions"]
    ages = [block["age"] for block in blocks if block["age"] is not None]
    return LevelReport(
        level,
        throughput,
        decisions,
        decisions / seconds,
        _quantiles(blocks),
        (totals["cpu"] - totals["background_cpu"]) / decisions * 1e6,
        totals["background_cpu"] / decisions * 1e6,
        totals["sent_bytes"] / seconds,
        totals["sent_messages"] / seconds,
        totals["received_bytes"] / seconds,
        totals["received_messages"] / seconds,
        totals["waits"] / seconds,
        totals["preemptions"] / seconds,
        float(np.mean([block["backlog"] for block in blocks])),
        float(np.mean(ages)) if ages else None,
    )


_SUMMED = {
    *("seconds", "decisions", "cpu", "background_cpu", "sent_bytes", "sent_messages", "received_bytes"),
    *("received_messages", "waits", "preemptions"),
}


def _quantiles(blocks: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Quantiles of the time in `act` in microseconds, and the longest."""
    counts: Counter[int] = Counter()
    for block in blocks:
        counts.update({int(bucket): count for bucket, count in block["times"].items()})
    buckets = sorted(counts)
    reached = np.cumsum([counts[bucket] for bucket in buckets])
    found = {
        name: bucket_time(buckets[int(np.searchsorted(reached, share * reached[-1]))]) / 1e3
        for name, share in _QUANTILES.items()
        if len(reached)
    }
    return found | {"max": max(block["longest"] for block in blocks) / 1e3}
