"""Reads the golden vectors as conformance/README.md describes them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy import PolicySpec

CONFORMANCE = Path(__file__).parents[2] / "conformance"
VECTORS = CONFORMANCE / "vectors"


class Golden(NamedTuple):
    spec: PolicySpec
    arrays: Arrays

    def group(self, prefix: str) -> dict[str, Array]:
        return {n.removeprefix(prefix + "."): a for n, a in self.arrays.items() if n.startswith(prefix + ".")}


def strict_json(name: str) -> Any:
    """Parse strictly: Python's NaN and Infinity are refused."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{name} holds {constant}, which is not JSON.")

    return json.loads((VECTORS / name).read_text(), parse_constant=refuse)


def golden(name: str) -> dict[str, Golden]:
    index = strict_json(f"{name}.json")
    data = (VECTORS / index["file"]).read_bytes()
    cases = {}
    for case in index["cases"]:
        arrays = {}
        for entry in case["arrays"]:
            dtype = np.dtype(entry["dtype"]).newbyteorder("<")
            count = int(np.prod(entry["shape"]))
            array = np.frombuffer(data, dtype, count, entry["offset"])
            arrays[entry["name"]] = array.reshape(entry["shape"])
        cases[case["name"]] = Golden(PolicySpec.from_json(json.dumps(case["spec"])), arrays)
    return cases


OPS, HEADS = golden("ops"), golden("heads")
