"""The installed packages and devices, found without any extra, so that it always works."""

from __future__ import annotations

import importlib.util
import platform
from importlib import metadata
from typing import Any

from rl4sys import __version__
from rl4sys.cores import usable_cores
from rl4sys.policy import kernel_set, native_problem

_PARTS = (
    ("numpy", "numpy", "the client core", "pip install rl4sys"),
    ("grpc", "grpcio", "connecting to a training server", "pip install rl4sys"),
    ("zstandard", "zstandard", "model patches", "pip install rl4sys"),
    ("rl4sys_native", "rl4sys-native", "faster decisions (optional)", "pip install 'rl4sys[native]'"),
    ("torch", "torch", "training", "pip install 'rl4sys[train]'"),
    ("gymnasium", "gymnasium", "environments", "pip install 'rl4sys[train]'"),
    ("pydantic", "pydantic", "configs", "pip install 'rl4sys[train]'"),
    ("safetensors", "safetensors", "checkpoints", "pip install 'rl4sys[train]'"),
    ("Box2D", "box2d", "LunarLander, BipedalWalker", "pip install 'gymnasium[box2d]'"),
    ("tensorboard", "tensorboard", "TensorBoard logs", "pip install 'rl4sys[train]'"),
    ("matplotlib", "matplotlib", "plots", "pip install 'rl4sys[train]'"),
    ("mujoco", "mujoco", "MuJoCo robots (optional)", "pip install 'rl4sys[mujoco]'"),
    ("dm_control", "dm_control", "dm_control tasks (optional)", "pip install 'rl4sys[dmc]'"),
    ("ale_py", "ale-py", "Atari games, GPL-2.0 (optional)", "pip install 'rl4sys[atari]'"),
    ("imageio_ffmpeg", "imageio-ffmpeg", "videos (optional)", "pip install 'rl4sys[video]'"),
    ("onnx", "onnx", "exporting policies (optional)", "pip install 'rl4sys[onnx]'"),
    ("onnxruntime", "onnxruntime", "checking and timing exports (optional)", "pip install 'rl4sys[onnx]'"),
    ("optuna", "optuna", "tuning (optional)", "pip install 'rl4sys[tune]'"),
    ("starlette", "starlette", "pages in a browser (optional)", "pip install 'rl4sys[ui]'"),
    ("envpool", "envpool", "fast vector environments (optional)", "pip install 'rl4sys[envpool]'"),
    ("wandb", "wandb", "Weights & Biases (optional)", "pip install 'rl4sys[wandb]'"),
    ("mlflow", "mlflow-skinny", "MLflow (optional)", "pip install 'rl4sys[mlflow]'"),
)


def inventory() -> dict[str, Any]:
    """Packages with versions, purposes and install commands; Python, cores and devices."""
    parts = [
        {"name": package, "version": _version(module, package), "purpose": purpose, "install": install}
        for module, package, purpose, install in _PARTS
    ]
    gpus = _gpus()
    return {
        "rl4sys": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(usable_cores()),
        "gpus": gpus,
        "device": "cuda" if gpus else "cpu",
        "runtime": kernel_set(),
        "runtime_problem": native_problem(),
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


def lines(found: dict[str, Any]) -> list[str]:
    """The inventory as plain text."""
    parts = [
        f"{part['name']:<14} {part['version'] or 'missing':<14} {part['purpose']}"
        + ("" if part["version"] else f": {part['install']}")
        for part in found["parts"]
    ]
    return [f"rl4sys {found['rl4sys']}", *parts, *machine(found)]


def machine(found: dict[str, Any]) -> list[str]:
    """Python, cores, devices and what runs policies, in three lines."""
    reason = f" ({found['runtime_problem'].rstrip('.')})" if found["runtime_problem"] else ""
    return [
        f"python {found['python']} on {found['platform']}, {found['cores']} core(s)",
        f"devices: {', '.join(found['gpus']) or 'no CUDA GPU'}; `device: auto` chooses {found['device']}",
        f"policies run with {found['runtime']}{reason}",
    ]
