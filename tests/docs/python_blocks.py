"""Checks Python blocks: they compile, what they import exists, and so does every name they take from RL4Sys."""

from __future__ import annotations

import ast
import importlib
import inspect
from types import ModuleType
from typing import Any


def check_python(text: str, shown: set[str]) -> None:
    """Fail, with the name, unless the block compiles and its imports, attributes and keywords exist.

    `shown` are modules that the page itself shows.
    """
    tree = ast.parse(text)
    known: dict[str, Any] = {"rl4sys": importlib.import_module("rl4sys")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name not in shown]
            known |= {alias.asname or alias.name.partition(".")[0]: _module(alias.name) for alias in names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module not in shown:
            module = importlib.import_module(node.module)
            known |= {alias.asname or alias.name: getattr(module, alias.name) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            _value(node, known)
        elif isinstance(node, ast.Call):
            _check_keywords(node, known)


def _module(name: str) -> ModuleType:
    importlib.import_module(name)
    return importlib.import_module(name.partition(".")[0])


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """What a dotted name of imported modules and classes stands for; None if it begins with another name."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    owner = _value(node.value, known)
    return getattr(owner, node.attr) if isinstance(owner, ModuleType | type) else None


def _check_keywords(call: ast.Call, known: dict[str, Any]) -> None:
    """The keywords of a call of something that was imported from RL4Sys."""
    function = _value(call.func, known)
    if function is None or not str(getattr(function, "__module__", "")).startswith("rl4sys"):
        return
    parameters = inspect.signature(function).parameters.values()
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        unknown = {word.arg for word in call.keywords} - {parameter.name for parameter in parameters}
        assert unknown == set(), f"{ast.unparse(call.func)} has no parameter {unknown}"
