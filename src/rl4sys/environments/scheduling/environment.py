"""The batch system as an environment: rl4sys/BatchScheduling-v0."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.environments.scheduling.episode import SchedulingEpisode, SchedulingRules, reference_costs
from rl4sys.environments.scheduling.features import CONTEXT, ROW
from rl4sys.environments.scheduling.lublin import generate
from rl4sys.environments.scheduling.protocols import ProtocolName
from rl4sys.environments.scheduling.reference_schedule import ReferenceSchedule
from rl4sys.environments.scheduling.schedule import measure
from rl4sys.environments.scheduling.swf import read_swf
from rl4sys.environments.scheduling.workload import Workload, WorkloadTooShort

Seen = dict[str, Any]
_GENERATED = 10_000
"""Jobs of a workload where no trace is given."""
_REFERENCES = 100
"""Sequences over which the costs of SJF are averaged."""


class BatchScheduling(gymnasium.Env[Seen, Any]):
    """Schedule a random sequence of jobs; each decision chooses one of the candidates.

    A reward is what the step cost: `mix` of it is the time that jobs waited, the rest their bounded slowdowns beyond 1,
    each relative to the mean of SJF over sequences of the same part. SJF's mean return is therefore about −1. With
    `beside_sjf` it is 0: what SJF's schedule of the same sequence costs meanwhile is paid back.
    """

    def __init__(
        self,
        trace: str | None = None,
        protocol: ProtocolName = "wait",
        part: str = "training",
        length: int = 256,
        mix: float = 0.95,
        most: int = 128,
        max_wait: float | None = None,
        processors: int | None = None,
        generator_seed: int = 0,
        beside_sjf: bool = False,
    ) -> None:
        if not 0.0 <= mix <= 1.0:
            raise ValueError(f"mix={mix}: expected the share of waiting time in the cost, from 0 to 1.")
        self.rules, self._mix, self._length = SchedulingRules(protocol, most, max_wait), mix, length
        source = generator_seed if trace is None else trace
        self._jobs, self._reference = _loaded(source, processors, part, length, protocol)
        row = spaces.Box(-np.inf, np.inf, (len(ROW),), np.float32)
        context = spaces.Box(-np.inf, np.inf, (len(CONTEXT),), np.float32)
        self.observation_space = spaces.Dict({"candidates": spaces.Sequence(row, stack=True), "context": context})
        self.action_space = spaces.Discrete(most)
        self._costs = (0.0, 0.0)
        self._beside_sjf = beside_sjf

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin with a random sequence, or with the one at job `options["first"]`."""
        super().reset(seed=seed)
        first = (options or {}).get("first")
        if first is None:
            first = int(self.np_random.integers(len(self._jobs) - self._length + 1))
        self._begin(self._jobs.span(first, self._length))
        return self._see(), {}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Start a job or wait; time passes up to the next decision."""
        self.episode.choose(int(action))
        costs = self._costs_now()
        waited, slowed = (now - before for now, before in zip(costs, self._costs, strict=True))
        reward = -self._mix * waited / self._reference[0] - (1.0 - self._mix) * slowed / self._reference[1]
        self._costs = costs
        over = self.episode.over
        return self._see(), reward, over, False, self._info() if over else {}

    def _begin(self, jobs: Workload) -> None:
        self.episode = SchedulingEpisode(jobs, self.rules)
        self._sjf = ReferenceSchedule(jobs, self.rules.protocol) if self._beside_sjf else None
        self._costs = self._costs_now()

    def _costs_now(self) -> tuple[float, float]:
        """What the sequence has cost so far; beside SJF, how much more than SJF's schedule."""
        waited, slowed = self.episode.costs()
        if self._sjf is None:
            return waited, slowed
        # Nothing is left to decide at the end, but SJF's schedule may not be over.
        others = self._sjf.costs(np.inf if self.episode.over else self.episode.machine.now)
        return waited - others[0], slowed - others[1]

    def _see(self) -> Seen:
        if self.episode.over:
            # Nothing is chosen after the last decision.
            return {"candidates": np.zeros((1, len(ROW)), np.float32), "context": np.zeros(len(CONTEXT), np.float32)}
        rows, context = self.episode.observe()
        return {"candidates": rows, "context": context}

    def _info(self) -> dict[str, Any]:
        found = measure(self.episode.schedule())
        return {"slowdown": found.slowdown, "wait": found.wait, "guarded": self.episode.guarded}


@functools.lru_cache(maxsize=16)
def _loaded(
    source: str | int, processors: int | None, part: str, length: int, protocol: ProtocolName
) -> tuple[Workload, tuple[float, float]]:
    """A part of a trace, or of a workload generated from a seed, and the costs of SJF: read once for many lanes."""
    whole = (
        generate(_GENERATED, processors or 256, np.random.default_rng(source))
        if isinstance(source, int)
        else read_swf(Path(source), processors).jobs
    )
    jobs = whole if part == "all" else whole.part(part)
    if not 2 <= length <= len(jobs):
        raise WorkloadTooShort(
            f"Sequences of {length} jobs were asked for; part '{part}' of the trace has {len(jobs)} jobs. Choose a "
            f"length of 2 to {len(jobs)}, or a longer trace."
        )
    sequences = jobs.sequences(_REFERENCES, length, np.random.default_rng(0))
    return jobs, reference_costs(sequences, protocol)


def register_scheduling() -> None:
    """Make the environment known to Gymnasium."""
    if "rl4sys/BatchScheduling-v0" not in gymnasium.registry:
        gymnasium.register(
            "rl4sys/BatchScheduling-v0", entry_point=f"{__name__}:BatchScheduling", disable_env_checker=True
        )
