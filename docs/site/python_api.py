"""Writes pages of the Python API: the public names of each package, for mkdocstrings to describe."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from staged_pages import ROOT

import rl4sys

PACKAGES = {
    "rl4sys.client": "A learning policy inside a program.",
    "rl4sys.experiments": "Runs, their configs, loggers and callbacks.",
    "rl4sys.algorithms": "The algorithms, and what one of your own is made of.",
    "rl4sys.networks": "Networks by name, losses and optimizers.",
    "rl4sys.replay": "Buffers, goals and hindsight.",
    "rl4sys.environments": "Environments by name, spaces and lanes.",
    "rl4sys.collection": "Sources of experience, and recorded episodes.",
    "rl4sys.policy": "Policies as data, and the numpy runtime.",
    "rl4sys.experience": "Segments, streams and batches.",
    "rl4sys.server": "The training server, for programs that contain one.",
}


def python_pages() -> Iterator[tuple[str, str]]:
    """The name and text of each page."""
    lines = ["# Python API", "", "What `import rl4sys` offers. The packages with the rest:", ""]
    lines += [f"- [`{package}`]({_name(package)}): {purpose}" for package, purpose in PACKAGES.items()]
    lines += ["", *_entries({name: home for name, home in sorted(rl4sys._HOMES.items()) if _is_described(name)})]
    yield "python/index.md", "\n".join(lines) + "\n"
    for package, purpose in PACKAGES.items():
        names = [name for name in _public_names(package) if _is_described(name)]
        lines = [f"# {package}", "", purpose, "", *_entries(dict.fromkeys(names, package))]
        yield f"python/{_name(package)}", "\n".join(lines) + "\n"


def _public_names(package: str) -> list[str]:
    """`__all__` of a package, read without importing it: torch takes longer than the whole page."""
    source = ROOT / "src" / package.replace(".", "/") / "__init__.py"
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{source} has no __all__; expected a list of the public names.")


def _is_described(name: str) -> bool:
    """Whether a name is of this API, and not one of the original RL4Sys, or a constant."""
    return not name.startswith("RL4Sys") and not name.isupper()


def _name(package: str) -> str:
    return f"{package.removeprefix('rl4sys.')}.md"


def _entries(homes: dict[str, str]) -> Iterator[str]:
    for name, home in homes.items():
        yield f"::: {home}.{name}\n"
