"""No line of the package unpickles, evaluates or loads data that could run code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rl4sys
from rl4sys.config import ConfigError
from rl4sys.config.files import parse_yaml

SOURCES = sorted(Path(rl4sys.__file__).parent.rglob("*.py"))
FORBIDDEN_MODULES = {
    *("pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"),
    *("pickletools", "copyreg", "dbm", "code", "codeop"),
}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "__import__"),
    *("torch.load", "torch.save", "torch.jit.load", "torch.hub.load"),
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.full_load_all"),
    *("numpy.load", "np.load", "numpy.fromfile", "pandas.read_pickle"),
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
}
# What multiprocessing sends through these, it pickles.
PICKLING = {"Queue", "SimpleQueue", "JoinableQueue", "Manager", "Pool", "Pipe", "Process", "ProcessPoolExecutor"}
ALLOWED = {
    # With a loader of its own that is a `yaml.SafeLoader` and adds nothing that builds objects; see the test below.
    ("config/files.py", "yaml.load"),
    # With the safe loader, in its C form where there is one.
    ("run_files.py", "yaml.load"),
    # Without pickles: `allow_pickle=True` would be found whatever the file.
    ("collection/recorded_episodes.py", "np.load"),
}


def forbidden(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and name of every unsafe call."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [(node.lineno, alias.name) for alias in names if alias.name.split(".")[0] in FORBIDDEN_MODULES]
            case ast.ImportFrom(module=str(module), names=names):
                if module.split(".")[0] in FORBIDDEN_MODULES:
                    found.append((node.lineno, module))
                if module.split(".")[0] in ("multiprocessing", "concurrent"):
                    found += [(node.lineno, f"{module}.{alias.name}") for alias in names if alias.name in PICKLING]
            case ast.Call(func=func, keywords=keywords):
                name = ast.unparse(func)
                first, _, last = name.rpartition(".")
                is_method = last in PICKLING and first.split(".")[0] in ("multiprocessing", "context", "mp")
                unpickles = any(k.arg == "allow_pickle" and ast.unparse(k.value) != "False" for k in keywords)
                untrusting = any(k.arg == "weights_only" and ast.unparse(k.value) == "False" for k in keywords)
                if name in FORBIDDEN_CALLS or is_method or unpickles or untrusting:
                    found.append((node.lineno, name))
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(Path(rl4sys.__file__).parent)))
def test_no_line_of_code_can_execute_data_from_outside(path: Path) -> None:
    found = forbidden(ast.parse(path.read_text()))
    place = path.relative_to(Path(rl4sys.__file__).parent).as_posix()
    assert [name for _, name in found if (place, name) not in ALLOWED] == [], (place, found)


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import yaml\nyaml.load('x', Loader=yaml.Loader)",
        "eval('1')",
        "exec('1')",
        "from multiprocessing import Queue",
        "import multiprocessing\nmultiprocessing.Pipe()",
        "from concurrent.futures import ProcessPoolExecutor",
        "anything.load(x, weights_only=False)",
    ],
)
def test_the_lint_detects_unsafe_calls(text: str) -> None:
    assert forbidden(ast.parse(text))


def test_the_lint_covers_the_whole_package() -> None:
    assert len(SOURCES) > 150


def test_a_yaml_file_cannot_build_objects() -> None:
    with pytest.raises(ConfigError):
        parse_yaml("!!python/object/apply:os.getcwd []", "a file")
