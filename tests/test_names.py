"""A public class name exists once, and the same thing has the same file name in Python and in C++."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, CPP = ROOT / "src/rl4sys", ROOT / "cpp/src"
SHARED = ("client", "policy", "records", "weights", "wire")
"""Packages that exist in both languages."""

ONLY_IN_CPP = {
    "client/absent_transport": "In Python, gRPC works in a forked child.",
    "client/batch_rows": "In Python, each kind of batch reads the observations itself.",
    "client/c_api": "The C interface.",
    "client/clock": "Python has time.monotonic.",
    "client/fork_gate": "In Python, gRPC works in a forked child.",
    "client/grpc_library": "In Python, gRPC starts and logs by itself.",
    "client/grpc_threads": "Python takes signals in its main thread.",
    "client/json": "Python has json.",
    "client/log": "Python has logging.",
    "policy/arrays": "In Python, rl4sys.experience has ArraySpec.",
    "policy/compiler": "In Python, numpy allocates registers.",
    "policy/convolution": "In Python, part of ops.",
    "policy/elements": "In Python, numpy converts element types.",
    "policy/kernel_sets": "In Python, numpy computes.",
    "policy/kernels": "In Python, numpy computes.",
    "policy/kernels_avx2": "In Python, numpy computes.",
    "policy/kernels_avx512": "In Python, numpy computes.",
    "policy/kernels_baseline": "In Python, numpy computes.",
    "policy/op_compilers": "In Python, ops are functions over arrays.",
    "policy/op_reader": "In Python, ops are functions over arrays.",
    "policy/plan": "In Python, part of numpy_policy.",
    "policy/plan_rows": "In Python, part of numpy_policy.",
    "policy/policy": "In Python, numpy_policy.",
    "policy/policy_json": "In Python, part of policy_spec.",
    "policy/policy_json_writer": "In Python, part of policy_spec.",
    "policy/registers": "In Python, numpy allocates registers.",
    "records/bytes": "Python has struct.",
    "records/crc32": "Python has zlib.",
    "weights/byte_order": "numpy has dtypes with a byte order.",
    "weights/digest": "Python has hashlib.",
    "wire/segment_columns": "In Python, columns.",
}
"""C++ modules without a Python module of the same name, with the reason."""

ELSEWHERE_IN_CPP = {
    "AnyOutbox": "A protocol where it is used in Python, an abstract class beside its subclasses in C++.",
    "ProfileOrder": "In C++, a record of the calls, as all messages are; in Python, it also plans the blocks.",
    "Traffic": "In C++, a record of the calls; in Python, it counts.",
}
"""Classes whose files have different names, with the reason."""


def python_classes() -> dict[str, list[str]]:
    """Every public class with the modules that define it; generated code is left out."""
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE).with_suffix(""))
        if "generated" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(module)
    return found


def cpp_classes() -> dict[str, str]:
    pattern = re.compile(r"^(?:class|struct|enum class) (\w+)[^;]*?\{", re.MULTILINE)
    return {
        name: str(path.relative_to(CPP).with_suffix(""))
        for path in sorted(CPP.rglob("*.?pp"))
        for name in pattern.findall(path.read_text())
    }


def cpp_modules() -> set[str]:
    return {str(path.relative_to(CPP).with_suffix("")) for path in CPP.rglob("*.?pp")}


def test_a_public_class_name_exists_once() -> None:
    assert {name: modules for name, modules in python_classes().items() if len(modules) > 1} == {}


@pytest.mark.parametrize("package", SHARED)
def test_a_cpp_module_has_the_name_of_its_python_module(package: str) -> None:
    modules = {name for name in cpp_modules() if name.startswith(f"{package}/")}
    python = {str(path.relative_to(SOURCE).with_suffix("")) for path in (SOURCE / package).glob("*.py")}
    without_twin = {name for name in ONLY_IN_CPP if name.startswith(f"{package}/")}
    assert modules - python == without_twin


def test_a_class_in_both_languages_stands_in_files_of_the_same_name() -> None:
    modules = {name: m for name, (m, *_) in python_classes().items() if m.split("/")[0] in SHARED}
    apart = {name: (place, modules[name]) for name, place in cpp_classes().items() if modules.get(name, place) != place}
    assert {name: places for name, places in apart.items() if name not in ELSEWHERE_IN_CPP} == {}
    assert apart.keys() == ELSEWHERE_IN_CPP.keys()
