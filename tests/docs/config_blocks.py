"""Checks YAML and JSON blocks against the record that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.client.settings import parse_settings
from rl4sys.config import parse
from rl4sys.experiments import ExperimentConfig, load_experiment
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.sweeps.plan import SweepConfig
from rl4sys.server.config import ServerConfig

_EXPERIMENT = {"algorithm": {"name": "ppo"}, "environment": {"name": "CartPole-v1"}}
"""What a block that shows a part of an experiment leaves out."""
_CLIENT = {"client_id": "one", "algorithm": {"name": "ppo"}, "observation": 8, "action": 4}


def check_config(text: str, values: Mapping[str, Any], desk: Path) -> None:
    """Fail, with the reason, unless the block is valid for the kind of config that its keys are of."""
    keys = values.keys()
    if "space" in keys:
        parse(TuneConfig, values)
    elif "sweep" in keys:
        parse(SweepConfig, values)
    elif text.startswith("# server.yaml") or keys & (ServerConfig.model_fields.keys() - _experiment_keys()):
        parse(ServerConfig, {**values, "experiments": _inline(values.get("experiments", {}))})
    elif "client_id" in keys or keys == {"server"}:
        parse_settings({**(_CLIENT if "client_id" not in keys else {}), **values}, desk)
    else:
        load_experiment({**({} if "extends" in keys else _EXPERIMENT), **values})


def _experiment_keys() -> set[str]:
    # A client names its server; a server has no such key.
    return {*ExperimentConfig.model_fields, "extends", "server"}


def _inline(experiments: Mapping[str, Any]) -> dict[str, Any]:
    """Experiments of a server without those that are paths of files."""
    return {name: value for name, value in experiments.items() if isinstance(value, Mapping)}
