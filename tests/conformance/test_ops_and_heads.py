"""Every op and head exists in every runtime, exporter, golden vector and page, and CONTRIBUTING lists these places."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rl4sys.experiments.policies.greedy import HEAD_PARAMETERS
from rl4sys.experiments.policies.onnx_ops import EMITTERS
from rl4sys.networks import FUNCTIONS
from rl4sys.policy import CLIENT_HEADS, COMPILERS, HEAD_KINDS
from rl4sys.policy.local_ops import LOCAL_COMPILERS
from rl4sys.wire.generated import policy_pb2

from .golden import HEADS, OPS

ROOT = Path(__file__).parents[2]
Names = Callable[[], set[str]]


def matches(pattern: str, *paths: str) -> set[str]:
    return {name for path in paths for name in re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE)}


def rows(heading: str) -> set[str]:
    """The names in the first column of the table below a heading of docs/policies.md."""
    text = (ROOT / "docs/policies.md").read_text()
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def snake(names: set[str]) -> set[str]:
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in names}


def numpy_heads() -> set[str]:
    return matches(r'^ +case "(\w+)"', "src/rl4sys/policy/heads.py", "src/rl4sys/policy/vector_heads.py")


def cpp_head_kinds() -> set[str]:
    """The values of the enumeration."""
    declared = (ROOT / "cpp/include/rl4sys/policy_spec.hpp").read_text().split("enum class HeadKind")[1].split("};")[0]
    return snake(set(re.findall(r"^    (\w+) = \d+,$", declared, re.MULTILINE)))


def cpp_heads() -> set[str]:
    """The cases that compile a head, and not those that refuse it."""
    files = "cpp/src/policy/heads.cpp", "cpp/src/policy/vector_heads.cpp"
    return snake(matches(r"^ +case HeadKind::(\w+):\s+(?:if \(.*\) )?return compile_", *files))


PLACES_OF_AN_OP: dict[str, Names] = {
    "src/rl4sys/policy/ops.py": lambda: set(COMPILERS),
    "src/rl4sys/networks/program.py": lambda: set(FUNCTIONS) - set(LOCAL_COMPILERS),
    "cpp/src/policy/ops.cpp": lambda: matches(r'^ +\{"(\w+)", compile_', "cpp/src/policy/ops.cpp"),
    "src/rl4sys/experiments/policies/onnx_ops.py": lambda: set(EMITTERS),
    "conformance/op_cases.py": lambda: {op.kind for case in OPS.values() for op in case.spec.program.ops},
    "docs/policies.md": lambda: rows("Ops"),
}
PLACES_OF_A_HEAD: dict[str, Names] = {
    "src/rl4sys/policy/policy_spec.py": lambda: set(HEAD_KINDS),
    "src/rl4sys/policy/heads.py": numpy_heads,
    "src/rl4sys/policy/vector_heads.py": numpy_heads,
    "cpp/include/rl4sys/policy_spec.hpp": cpp_head_kinds,
    "cpp/src/policy/policy_spec.cpp": lambda: matches(
        r'^ +\{HeadKind::\w+, "(\w+)"\}', "cpp/src/policy/policy_spec.cpp"
    ),
    "cpp/src/policy/heads.cpp": cpp_heads,
    "cpp/src/policy/vector_heads.cpp": cpp_heads,
    "proto/rl4sys/v1/policy.proto": lambda: {
        name.removeprefix("HEAD_KIND_").lower() for name, number in policy_pb2.HeadKind.items() if number
    },
    "src/rl4sys/experiments/policies/greedy.py": lambda: set(HEAD_PARAMETERS),
    "conformance/head_cases.py": lambda: {case.spec.head.kind for case in HEADS.values()},
    "docs/policies.md": lambda: rows("Heads"),
}
PLACES_OF_A_CLIENT_HEAD = {
    "cpp/src/policy/heads.cpp",
    "cpp/src/policy/vector_heads.cpp",
    "src/rl4sys/experiments/policies/greedy.py",
    "conformance/head_cases.py",
}


@pytest.mark.parametrize("place", PLACES_OF_AN_OP)
def test_every_op_is_in(place: str) -> None:
    assert PLACES_OF_AN_OP[place]() == set(COMPILERS), f"Add the missing op to {place}."


@pytest.mark.parametrize("place", PLACES_OF_A_HEAD)
def test_every_head_is_in(place: str) -> None:
    # The format knows a head that only the server runs.
    expected = set(CLIENT_HEADS if place in PLACES_OF_A_CLIENT_HEAD else HEAD_KINDS)
    assert PLACES_OF_A_HEAD[place]() == expected, f"Add the missing head to {place}."


@pytest.mark.parametrize(("what", "places"), [("An op", PLACES_OF_AN_OP), ("A head", PLACES_OF_A_HEAD)])
def test_contributing_lists_every_place(what: str, places: dict[str, Names]) -> None:
    paragraph = (ROOT / "CONTRIBUTING.md").read_text().split(f"**{what}.**")[1].split("\n**")[0]
    assert [place for place in places if f"]({place})" not in paragraph] == []
