"""The files that hold golden vectors: a JSON index beside raw little-endian arrays (see README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rl4sys.policy import PolicySpec

Array = npt.NDArray[Any]

TOLERANCE = 1e-5
"""Relative plus absolute. Covers what float32 loses to another order of summation."""
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Case:
    """One policy with its inputs and expected outputs."""

    name: str
    spec: PolicySpec
    arrays: Mapping[str, Array]


def write(path: Path, cases: Iterable[Case]) -> None:
    """Write `path`.json and `path`.bin."""
    lines, data = [], bytearray()
    for case in cases:
        entries = array_entries(case.arrays, data)
        lines.append(json.dumps({"name": case.name, "spec": json.loads(case.spec.to_json()), "arrays": entries}))
    index = f'{{"file": "{path.name}.bin", "cases": [\n' + ",\n".join(lines) + "\n]}\n"
    path.with_suffix(".json").write_text(index)
    path.with_suffix(".bin").write_bytes(data)


def array_entries(arrays: Mapping[str, Array], data: bytearray) -> list[dict[str, Any]]:
    """Append arrays to `data`; returns their entries for the index."""
    entries = []
    for name, array in arrays.items():
        data += bytes(-len(data) % _ALIGNMENT)
        entries.append({"name": name, "dtype": array.dtype.name, "shape": array.shape, "offset": len(data)})
        data += np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return entries


def read(path: Path) -> list[Case]:
    """Read back what `write` wrote."""
    index = json.loads(path.with_suffix(".json").read_text())
    data = path.with_name(index["file"]).read_bytes()
    return [
        Case(
            case["name"],
            PolicySpec.from_json(json.dumps(case["spec"])),
            read_arrays(data, case["arrays"]),
        )
        for case in index["cases"]
    ]


def read_arrays(data: bytes, entries: Iterable[Mapping[str, Any]]) -> dict[str, Array]:
    """The arrays that `array_entries` described."""
    return {entry["name"]: _array(data, entry) for entry in entries}


def _array(data: bytes, entry: Mapping[str, Any]) -> Array:
    dtype = np.dtype(entry["dtype"]).newbyteorder("<")
    count = int(np.prod(entry["shape"]))
    return np.frombuffer(data, dtype, count, entry["offset"]).reshape(entry["shape"])


def differences(found: list[Case], expected: list[Case]) -> Iterator[str]:
    """Describes the differences between two lists of cases."""
    if [case.name for case in found] != [case.name for case in expected]:
        yield f"cases are {[case.name for case in found]}; expected {[case.name for case in expected]}"
        return
    for one, other in zip(found, expected, strict=True):
        if one.spec != other.spec:
            yield f"{one.name}: the spec differs"
        if one.arrays.keys() != other.arrays.keys():
            yield f"{one.name}: arrays are {list(one.arrays)}; expected {list(other.arrays)}"
            continue
        for name, array in one.arrays.items():
            if not agrees(array, other.arrays[name]):
                yield f"{one.name}: '{name}' differs"


def agrees(found: Array, expected: Array) -> bool:
    """Whether integers and bools are equal and floats within the tolerance."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    tolerance = TOLERANCE if found.dtype.kind == "f" else 0.0
    return np.allclose(found, expected, rtol=tolerance, atol=tolerance)
