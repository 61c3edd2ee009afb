"""The arrays that a learner expects in segments, and the check for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from rl4sys.experience.segment import Array, Arrays, Ending, Segment


class SchemaMismatch(ValueError):
    """A segment does not have the expected arrays."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Name, element type and shape of one array, without its leading (time or batch) axis."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class SegmentSchema:
    """The arrays of every segment of one learner."""

    observation: tuple[ArraySpec, ...]
    action: ArraySpec
    extras: tuple[ArraySpec, ...] = ()
    carry: tuple[ArraySpec, ...] = field(default=())

    def check(self, segment: Segment) -> None:
        """Raise `SchemaMismatch` if the segment does not match this schema."""
        for problem in self._problems(segment):
            raise SchemaMismatch(
                f"Stream {segment.stream.client}/{segment.stream.agent}/{segment.stream.lane}, episode "
                f"{segment.episode}, step {segment.start}: {problem} Make the sender match the learner's "
                f"schema, or let it join a learner of its own."
            )

    def _problems(self, segment: Segment) -> Iterator[str]:
        steps = segment.steps
        if steps == 0:
            yield "the segment has no steps."
        if segment.start < 0 or segment.episode < 0 or segment.policy_version < 0:
            yield (
                f"start {segment.start}, episode {segment.episode} and policy version "
                f"{segment.policy_version} must not be negative."
            )
        if segment.ending not in tuple(Ending):
            yield f"ending {segment.ending!r} is not one of {', '.join(e.name for e in Ending)}."
        yield from _named("observation", segment.observation, self.observation, rows=steps + 1)
        yield from _named("extras", segment.extras, self.extras, rows=steps)
        yield from _named("carry", segment.carry, self.carry, rows=None)
        yield from _array("action", segment.action, self.action, rows=steps)
        yield from _array("reward", segment.reward, ArraySpec("reward", "float32", ()), rows=steps)
        if segment.elapsed is not None:
            yield from _array("elapsed", segment.elapsed, ArraySpec("elapsed", "float32", ()), rows=steps)
            if not (segment.elapsed >= 0).all():
                yield f"elapsed contains {segment.elapsed.min()}; time does not go backwards."


def _named(group: str, arrays: Arrays, specs: tuple[ArraySpec, ...], rows: int | None) -> Iterator[str]:
    expected: Mapping[str, ArraySpec] = {spec.name: spec for spec in specs}
    if arrays.keys() != expected.keys():
        yield f"{group} has arrays {sorted(arrays)}; expected {sorted(expected)}."
        return
    for name, spec in expected.items():
        yield from _array(f"{group} '{name}'", arrays[name], spec, rows)


def _array(what: str, array: Array, spec: ArraySpec, rows: int | None) -> Iterator[str]:
    shape = spec.shape if rows is None else (rows, *spec.shape)
    if array.shape != shape:
        yield f"{what} has shape {array.shape}; expected {shape}."
    elif array.dtype != np.dtype(spec.dtype):
        yield f"{what} has dtype {array.dtype}; expected {spec.dtype}."
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        yield f"{what} contains NaN or infinity."
