"""Algorithms, networks and buffers of plug-ins. Only who makes learners imports this: it needs torch."""

from __future__ import annotations

from pathlib import Path

from rl4sys.algorithms import ALGORITHMS
from rl4sys.config import load_plugins
from rl4sys.networks import NETWORKS
from rl4sys.replay import BUFFERS, GOAL_REWARDS


def load_learner_plugins(plugins: tuple[str, ...]) -> None:
    """Run the plug-ins of a server's config, and let installed packages add components, or raise `ConfigError`."""
    load_plugins(plugins, relative_to=Path.cwd())
    for registry in (ALGORITHMS, NETWORKS, BUFFERS, GOAL_REWARDS):
        registry.load_entry_points(f"rl4sys.{registry.kind}s")
