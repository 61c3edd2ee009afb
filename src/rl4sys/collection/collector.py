"""Acts in environments and records what happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rl4sys.collection.rollout import Rollout
from rl4sys.environments import EpisodeSummary, Incumbent, Step
from rl4sys.experience import Array, Arrays, StreamKey
from rl4sys.policy import NUMPY, Decision, KeyedNoise, PolicySpec, run_policy
from rl4sys.state import State, require


class Environments(Protocol):
    """Several lanes of one environment that step together."""

    @property
    def count(self) -> int:
        """How many lanes there are."""

    def reset(self) -> Arrays:
        """Start an episode in every lane."""

    def step(self, action: Array) -> Step:
        """Act once in every lane."""

    def episodes(self) -> Sequence[EpisodeSummary]:
        """The episodes that ended since the last call."""

    def state(self) -> State:
        """Where every lane is."""

    def restore(self, state: State) -> Arrays:
        """Put every lane back; returns what is to be acted on."""

    inexact: list[str]
    """After `restore`: why lanes could not resume exactly."""
    restarted: list[int]
    """After `restore`: the lanes that began a new episode instead."""

    def close(self) -> None:
        """Free what the lanes hold."""


class Collector:
    """Fills rollouts. Chance comes from keyed noise, so its state is one counter."""

    def __init__(
        self, environments: Environments, spec: PolicySpec, client: str, seed: int, kernels: str = NUMPY
    ) -> None:
        self._environments = environments
        self._policy = run_policy(spec, kernels=kernels)
        lanes = environments.count
        streams = [StreamKey(client, "agent", lane) for lane in range(lanes)]
        self._noise = KeyedNoise(seed, streams, self._policy.noise_size)
        self._decisions = 0
        self._episode = np.zeros(lanes, np.int64)
        self._start = np.zeros(lanes, np.int64)
        self._carry = self._policy.initial_carry(lanes)
        self._observation: Arrays | None = None

    def load(self, weights: Array) -> None:
        """Act with these weights from now on."""
        self._policy.load(weights)

    def fill(self, rollout: Rollout, version: int, incumbent: Incumbent | None = None) -> None:
        """Record as many vector steps as fit into the rollout, by the policy or by the incumbent."""
        columns = rollout.columns
        columns["version"][0] = version
        columns["episode"][:] = self._episode
        columns["start"][:] = self._start
        seen, final, extras = (list(rollout.group(g).items()) for g in ("observation", "final", "extras"))
        for name, column in rollout.group("carry").items():
            column[:] = self._carry[name]
        actions, rewards, endings, acted = (columns[n] for n in ("action", "reward", "ending", "acted"))
        elapsed = columns.get("elapsed")
        acted.fill(True)
        for _, column in final:
            # What an earlier rollout left here must not make two equal rollouts differ.
            column.fill(0)
        act, step_all, noise = self._policy.act, self._environments.step, self._noise.at
        observation = self._environments.reset() if self._observation is None else self._observation
        remembers = bool(self._carry)
        nothing = {name: np.zeros(column.shape[1:], column.dtype) for name, column in extras}
        for t in range(len(rewards)):
            for name, column in seen:
                column[t] = observation[name]
            if incumbent is None:
                decision = act(observation, noise(self._decisions), self._carry)
                self._decisions += 1
            else:
                decision = Decision(incumbent.decide(observation), nothing, self._carry)
            actions[t] = decision.action
            for name, column in extras:
                column[t] = decision.extras[name]
            step = step_all(decision.action)
            rewards[t] = step.reward
            endings[t] = step.ending
            if elapsed is not None and step.elapsed is not None:
                elapsed[t] = step.elapsed
            observation = step.observation
            self._start += 1
            if step.acted is not None:
                acted[t] = step.acted
                self._start -= ~step.acted
            if remembers:
                self._carry = {name: memory.copy() for name, memory in decision.carry.items()}
                if step.acted is not None:
                    # Where the call was spent on a reset, the policy looked at the end of the last episode once more.
                    for memory in self._carry.values():
                        memory[~step.acted] = 0.0
            for lane, arrays in step.final_observation.items():
                for name, column in final:
                    column[t, lane] = arrays[name]
                self._episode[lane] += 1
                self._start[lane] = 0
                for memory in self._carry.values():
                    memory[lane] = 0.0
        for name, column in seen:
            column[len(rewards)] = observation[name]
        self._observation = observation

    def episodes(self) -> Sequence[EpisodeSummary]:
        """The episodes that ended since the last call."""
        return self._environments.episodes()

    def state(self) -> State:
        """The position of every lane and the counters."""
        return {
            "decisions": self._decisions,
            "episode": self._episode.copy(),
            "start": self._start.copy(),
            "carry": {name: memory.copy() for name, memory in self._carry.items()},
            "environments": self._environments.state() if self._observation is not None else None,
        }

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        require(state, "decisions", "episode", "start", "carry", "environments")
        self._decisions = int(state["decisions"])
        self._episode[:], self._start[:] = state["episode"], state["start"]
        self._carry = {name: np.array(memory) for name, memory in state["carry"].items()}
        self._observation = None
        if state["environments"] is None:
            return ()
        self._observation = self._environments.restore(state["environments"])
        for lane in self._environments.restarted:
            self._episode[lane] += 1
            self._start[lane] = 0
            for memory in self._carry.values():
                memory[lane] = 0.0
        return self._environments.inexact

    def close(self) -> None:
        """Close the environments."""
        self._environments.close()
