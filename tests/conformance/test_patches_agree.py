import numpy as np
import pytest

from rl4sys.weights import Encoding, Patch, PatchMismatch, apply_patch

from .golden import VECTORS, strict_json

INDEX = strict_json("patches.json")
DATA = (VECTORS / INDEX["file"]).read_bytes()
CASES = {case["name"]: case for case in INDEX["cases"]}
SIZE = 3_000


def array(case: dict, name: str) -> np.ndarray:
    (entry,) = (entry for entry in case["arrays"] if entry["name"] == name)
    return np.frombuffer(DATA, np.dtype(entry["dtype"]).newbyteorder("<"), entry["shape"][0], entry["offset"])


def applied(case: dict) -> np.ndarray:
    encoding = Encoding(case["encoding"])
    base = array(CASES["xor"], "base")
    payload, digest = array(case, "payload").tobytes(), bytes.fromhex(case["sha256"])
    return apply_patch(base, Patch(case["base"], case["target"], encoding, payload, digest, case["size"]), SIZE)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case["refused"]])
def test_a_patch_leads_to_the_golden_weights(name: str) -> None:
    assert applied(CASES[name]).tobytes() == array(CASES[name], "result").tobytes()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["refused"]])
def test_a_damaged_patch_is_refused(name: str) -> None:
    with pytest.raises(PatchMismatch):
        applied(CASES[name])


def test_every_encoding_has_a_golden_patch() -> None:
    assert {case["encoding"] for case in CASES.values() if not case["refused"]} == set(Encoding)
