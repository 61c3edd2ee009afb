"""`rl4sys.utils.logging_config`: sets up the standard `logging` for a program and for RL4Sys together."""

from __future__ import annotations

import logging
import logging.config
import os
from collections.abc import Mapping
from typing import Any

_PLAIN = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"


class RL4SysLogConfig:
    """Makes and applies a config for `logging.config.dictConfig`."""

    @staticmethod
    def get_default_config(
        log_level: str = "INFO",
        log_file: str | None = None,
        enable_tensorboard: bool = True,
        structured_logging: bool = False,
    ) -> dict[str, Any]:
        """Log to standard output and, if given, to a file; `structured_logging` adds the values of structured logs.

        `enable_tensorboard` has no effect: the server writes what TensorBoard shows.
        """
        places: dict[str, dict[str, Any]] = {
            "console": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}
        }
        if log_file:
            places["file"] = {"class": "logging.FileHandler", "filename": log_file, "mode": "a"}
        form = f"{_PLAIN} - %(context)s" if structured_logging else _PLAIN
        return {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"()": logging.Formatter, "fmt": form, "defaults": {"context": "{}"}}},
            "handlers": {name: {**place, "level": log_level, "formatter": "line"} for name, place in places.items()},
            "root": {"level": log_level, "handlers": list(places)},
        }

    @staticmethod
    def setup_logging(
        config_dict: Mapping[str, Any] | None = None,
        log_level: str = "INFO",
        log_file: str | None = None,
        debug: bool = False,
    ) -> None:
        """Apply a config, or the default one with these settings."""
        level = "DEBUG" if debug else log_level
        logging.config.dictConfig(dict(config_dict or RL4SysLogConfig.get_default_config(level, log_file)))

    @staticmethod
    def get_environment_config() -> dict[str, Any]:
        """The settings from RL4SYS_LOG_LEVEL, RL4SYS_LOG_FILE and RL4SYS_DEBUG."""
        return {
            "log_level": os.environ.get("RL4SYS_LOG_LEVEL", "INFO").upper(),
            "log_file": os.environ.get("RL4SYS_LOG_FILE"),
            "debug": os.environ.get("RL4SYS_DEBUG", "").lower() in ("true", "1", "yes"),
        }


def setup_rl4sys_logging(debug: bool = False, log_file: str | None = None) -> None:
    """Set up logging; arguments override the environment variables."""
    found = RL4SysLogConfig.get_environment_config()
    RL4SysLogConfig.setup_logging(
        log_level=found["log_level"], log_file=log_file or found["log_file"], debug=debug or found["debug"]
    )
