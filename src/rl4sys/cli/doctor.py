"""`rl4sys doctor`: what is here, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import platform
from importlib import metadata
from typing import Annotated, Any

import typer
from rich.table import Table

from rl4sys import __version__
from rl4sys.cli.output import console, print_json
from rl4sys.experiments.devices import choose_device, usable_cores

_PARTS = (
    ("numpy", "numpy", "the client core", "pip install rl4sys"),
    ("zstandard", "zstandard", "model patches", "pip install rl4sys"),
    ("torch", "torch", "training", "pip install 'rl4sys[train]'"),
    ("gymnasium", "gymnasium", "environments", "pip install 'rl4sys[train]'"),
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
    facts = _facts()
    if json:
        print_json(facts)
        return
    table = Table("part", "version", "for", "how to get it", title=f"rl4sys {facts['rl4sys']}")
    for part in facts["parts"]:
        missing = part["version"] is None
        version = "[yellow]missing[/]" if missing else str(part["version"])
        table.add_row(part["name"], version, part["purpose"], part["install"] if missing else "")
    console.print(table)
    console.print(f"python {facts['python']} on {facts['platform']}, {facts['cores']} core(s)", highlight=False)
    gpus = ", ".join(facts["gpus"]) or "no CUDA GPU"
    console.print(f"devices: {gpus}; `device: auto` chooses {facts['device']}", highlight=False)


def _facts() -> dict[str, Any]:
    import torch

    return {
        "rl4sys": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": usable_cores(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "device": str(choose_device("auto")),
        "parts": [
            {"name": package, "version": _version(module, package), "purpose": purpose, "install": install}
            for module, package, purpose, install in _PARTS
        ],
    }


def _version(module: str, package: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "installed"
