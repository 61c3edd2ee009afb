"""Reads the golden vectors as conformance/README.md describes them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy import PolicySpec
from rl4sys.policy.chance import chance_registers, compile_chance

CONFORMANCE = Path(__file__).parents[2] / "conformance"
VECTORS = CONFORMANCE / "vectors"


class Golden(NamedTuple):
    spec: PolicySpec
    arrays: Arrays

    def group(self, prefix: str) -> dict[str, Array]:
        return {n.removeprefix(prefix + "."): a for n, a in self.arrays.items() if n.startswith(prefix + ".")}

    def registers(self) -> dict[str, Array]:
        """The observation, and what chance gives the program: all that an op can read at the start."""
        drawn = chance_registers(self.spec, len(self.arrays["noise"]))
        fill = compile_chance(self.spec, drawn)
        if fill is not None:
            fill(self.arrays["noise"])
        return self.group("observation") | drawn


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


OPS, HEADS, EPISODES = golden("ops"), golden("heads"), golden("episodes")
