"""Hashes of what a run did, written with its metrics: what `rl4sys verify` compares a repetition with."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.experience import Array, Segment
from rl4sys.experiments.metrics import MetricRecord, MetricsFile, read_metrics
from rl4sys.learning import Learner
from rl4sys.policy import layout_of
from rl4sys.state import State, require, split

_MOST_TURNS = 32
"""The most turns in one mark. When there are more, every second is left out: the chain covers all of them."""


@dataclass(frozen=True, slots=True)
class HashEntry:
    """Hashes at one step. Those of the trajectory are chained: they cover all steps up to here."""

    step: int
    turns: tuple[tuple[int, int], ...]
    """Steps since the last mark, each with the chained hash of all that was collected until then."""
    trajectory: Mapping[str, int]
    """Observations, actions, rewards, endings, and what the policy noted, by name."""
    weights: Mapping[str, str]
    """Tensors of the acting policy."""
    algorithm: Mapping[str, str]
    """Everything else that the next update depends on: all parameters, optimizer moments, targets, generators."""

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(
            {
                "step": self.step,
                "turns": self.turns,
                "trajectory": self.trajectory,
                "weights": self.weights,
                "algorithm": self.algorithm,
            }
        )

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> HashEntry:
        """Read back a line of `to_json`."""
        turns = tuple((int(step), int(chain)) for step, chain in values["turns"])
        return cls(values["step"], turns, values["trajectory"], values["weights"], values["algorithm"])


class HashLog:
    """`hashes.jsonl`: a mark at the start and with the first record of each logged step.

    CRC-32 over what is collected, since its state is a number that can be saved in the middle; SHA-256 over weights.
    """

    def __init__(self, path: Path, learner: Learner) -> None:
        self._file = MetricsFile(path)
        self._learner = learner
        self._layout = layout_of(learner.algorithm.policies.explore.program)
        self._columns: dict[str, int] = {}
        self._turns: list[tuple[int, int]] = []
        self._stride = self._turn = 0
        self._marked: int | None = None
        self._is_broken = False
        if self._file.length == 0:
            self.begin()

    def begin(self) -> None:
        """Forget everything and mark the first weights."""
        self._file.cut(0)
        self._columns, self._turns, self._stride, self._turn = {}, [], 1, 0
        self._mark(self._learner.steps)

    def note_turn(self, segments: Sequence[Segment]) -> None:
        """Take in what was collected and learned from in one turn."""
        columns = self._columns
        for segment in segments:
            for name, array in _columns_of(segment):
                columns[name] = zlib.crc32(array.tobytes(), columns.get(name, 0))
            columns["ending"] = zlib.crc32(bytes((segment.ending,)), columns.get("ending", 0))
        self._turn += 1
        if self._turn % self._stride == 0:
            self._turns.append((self._learner.steps, _combined(columns)))
        if len(self._turns) > _MOST_TURNS:
            self._turns, self._stride = self._turns[1::2], self._stride * 2

    def log(self, record: MetricRecord) -> None:
        """Mark the step of a record, unless an earlier record of that step did."""
        if record.step != self._marked and not self._is_broken:
            self._mark(record.step)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def state(self) -> State:
        """Where the chain is, and how long the file."""
        return {
            "length": self._file.length,
            "columns": dict(self._columns),
            "turns": [list(turn) for turn in self._turns],
            "stride": self._stride,
            "turn": self._turn,
            "marked": self._marked,
        }

    def restore(self, state: State | None) -> None:
        """Continue where `state` was taken. Without a state the chain is broken, and nothing is marked any more."""
        self._is_broken = state is None
        if state is None:
            self._file.cut(0)
            return
        require(state, "length", "columns", "turns", "stride", "turn", "marked")
        self._file.cut(state["length"])
        self._columns = dict(state["columns"])
        self._turns = [(step, chain) for step, chain in state["turns"]]
        self._stride, self._turn, self._marked = state["stride"], state["turn"], state["marked"]

    def _mark(self, step: int) -> None:
        learner = self._learner
        rest, arrays = split(learner.algorithm.train_state.state())
        algorithm = {name: _hash(array) for name, array in arrays.items()}
        algorithm["counters and generators"] = _short(hashlib.sha256(json.dumps(rest, sort_keys=True).encode()))
        weights = {name: _hash(tensor) for name, tensor in self._layout.views(learner.store.newest.blob).items()}
        self._file.log(HashEntry(step, tuple(self._turns), dict(self._columns), weights, algorithm))
        self._turns, self._stride, self._turn, self._marked = [], 1, 0, step


def read_hash_log(path: Path) -> Iterator[HashEntry]:
    """The marks of a run, if there are any; lines that a kill or a bad disk spoilt are skipped."""
    for values in read_metrics(path):
        yield HashEntry.from_values(values)


def _columns_of(segment: Segment) -> Iterator[tuple[str, Array]]:
    for name, array in segment.observation.items():
        yield f"observation.{name}", array
    yield "action", segment.action
    yield "reward", segment.reward
    for name, array in segment.extras.items():
        yield f"extras.{name}", array


def _combined(columns: Mapping[str, int]) -> int:
    return zlib.crc32(repr(sorted(columns.items())).encode())


def _hash(array: Array) -> str:
    whole = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    whole.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return _short(whole)


def _short(whole: hashlib._Hash) -> str:
    return whole.hexdigest()[:16]
