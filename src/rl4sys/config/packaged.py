"""Where the configs are that come with RL4Sys."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def packaged_configs() -> Path:
    """The directory of the configs that come with RL4Sys."""
    installed = Path(str(resources.files("rl4sys"))) / "configs"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "configs"
