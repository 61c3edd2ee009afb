"""`rl4sys doctor`: what is here, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import platform
from importlib import metadata
from typing import Annotated, Any

import typer

from rl4sys import __version__

_PARTS = (
    ("numpy", "numpy", "the client core", "pip install rl4sys"),
    ("zstandard", "zstandard", "model patches", "pip install rl4sys"),
    ("torch", "torch", "training", "pip install 'rl4sys[train]'"),
    ("gymnasium", "gymnasium", "environments", "pip install 'rl4sys[train]'"),
    ("pydantic", "pydantic", "configs", "pip install 'rl4sys[train]'"),
    ("omegaconf", "omegaconf", "configs", "pip install 'rl4sys[train]'"),
    ("safetensors", "safetensors", "checkpoints", "pip install 'rl4sys[train]'"),
    ("Box2D", "box2d", "LunarLander, BipedalWalker", "pip install 'gymnasium[box2d]'"),
    ("tensorboard", "tensorboard", "TensorBoard logs", "pip install 'rl4sys[train]'"),
    ("matplotlib", "matplotlib", "plots", "pip install 'rl4sys[train]'"),
    ("envpool", "envpool", "fast vector environments (optional)", "pip install 'rl4sys[envpool]'"),
    ("wandb", "wandb", "Weights & Biases (optional)", "pip install 'rl4sys[wandb]'"),
)


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Show what is installed, which devices there are, what is missing and how to get it.

    [bold]Examples[/]

      rl4sys doctor

      rl4sys doctor --json
    """
    from rl4sys.cli.output import print_json, print_table, show

    facts = _facts()
    if json:
        print_json(facts)
        return
    rows = [
        [part["name"], part["version"] or "missing", part["purpose"], "" if part["version"] else part["install"]]
        for part in facts["parts"]
    ]
    print_table((f"rl4sys {facts['rl4sys']}", "version", "for", "how to get it"), rows)
    show(f"python {facts['python']} on {facts['platform']}, {facts['cores']} core(s)")
    show(f"devices: {', '.join(facts['gpus']) or 'no CUDA GPU'}; `device: auto` chooses {facts['device']}")


def _facts() -> dict[str, Any]:
    parts = [
        {"name": package, "version": _version(module, package), "purpose": purpose, "install": install}
        for module, package, purpose, install in _PARTS
    ]
    gpus = _gpus()
    return {
        "rl4sys": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "gpus": gpus,
        "device": "cuda" if gpus else "cpu",
        "parts": parts,
    }


def _gpus() -> list[str]:
    try:
        import torch
    except ImportError:
        return []
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def _version(module: str, package: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "installed"
