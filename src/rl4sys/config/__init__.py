"""Typed configs, their registries, and loading them from files."""

from rl4sys.config.errors import ConfigError
from rl4sys.config.files import packaged_configs
from rl4sys.config.layers import Layers, LoadedConfig, flat, load, origins, read
from rl4sys.config.migrations import CONFIG_VERSION, MIGRATIONS, Migrations, migrate, migration
from rl4sys.config.model import Config, parse
from rl4sys.config.overrides import Overrides
from rl4sys.config.plugins import load_plugins, located, plugin_hashes, use_copies
from rl4sys.config.reference import json_schema, reference
from rl4sys.config.registry import Registry

__all__ = [
    "CONFIG_VERSION",
    "MIGRATIONS",
    "Config",
    "ConfigError",
    "Layers",
    "LoadedConfig",
    "Migrations",
    "Overrides",
    "Registry",
    "flat",
    "json_schema",
    "load",
    "load_plugins",
    "located",
    "migrate",
    "migration",
    "origins",
    "packaged_configs",
    "parse",
    "plugin_hashes",
    "read",
    "reference",
    "use_copies",
]
