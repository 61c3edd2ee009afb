"""Reads the global `config.json` of the original RL4Sys as the config of a server.

- `algorithms`: each section with parameters becomes an experiment that clients may ask for by its name in lower case.
  That of PPO is also the `default`, for clients that ask for none.
- `server.training_server`: the address to listen on.
- `max_traj_length`: the length of a trajectory, where PPO counts in trajectories.
- `model_paths`, `tensorboard`, `ensemble_algorithms` and `server.trajectory_server` have no effect.

Settings of the present config may be added: `data`, `token_file`, `limits`, …
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rl4sys.client.original_parameters import ONLY_NAMED, algorithm_of, translate_parameters
from rl4sys.client.section import Section, SettingsError
from rl4sys.config import ConfigError
from rl4sys.server.service.offered_experiments import DEFAULT

_log = logging.getLogger(__name__)
_LONGEST = 1000
_IGNORED = ("ensemble_algorithms", "model_paths", "tensorboard")


def is_original_config(values: Mapping[str, Any]) -> bool:
    """Whether this is an original global config."""
    return isinstance(values.get("algorithms"), Mapping)


def translate_config(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the present names."""
    try:
        return _translated(Section(values))
    except SettingsError as error:
        raise ConfigError(str(error)) from error


def _translated(top: Section) -> dict[str, Any]:
    longest = top.whole("max_traj_length", _LONGEST, 1) or _LONGEST
    algorithms, server = top.section("algorithms"), top.section("server")
    unavailable = []
    experiments: dict[str, dict[str, Any]] = {}
    for original in algorithms.rest():
        section = algorithms.section(original)
        if original.lower() in ONLY_NAMED:
            unavailable.append(original)
            continue
        name = algorithm_of(original, f"algorithms.{original}")
        seed = section.whole("seed")
        for size in ("input_size", "act_dim", "act_limit"):
            section.raw(size)
        found = translate_parameters((section,), name, longest)
        experiment: dict[str, Any] = {"algorithm": {"name": name, **found.algorithm}}
        experiment |= {"buffer": found.buffer} if found.buffer else {}
        experiments[original.lower()] = experiment | ({} if seed is None else {"seed": seed})
    if unavailable:
        _log.warning(
            "algorithms: %s are only names here and are not offered; use PPO, or DQN in place of C51.",
            ", ".join(unavailable),
        )
    if "ppo" in experiments:
        experiments.setdefault(DEFAULT, experiments["ppo"])
    for ignored in _IGNORED:
        top.raw(ignored)
    ours: dict[str, Any] = {"experiments": experiments}
    if (listen := _address(server)) is not None:
        ours["listen"] = listen
    rest = top.rest()
    ours["experiments"] |= rest.pop("experiments", {})
    return ours | rest


def _address(server: Section) -> str | None:
    """`host:port`, or the parts `host` and `port` (`:5556`)."""
    given = server.raw("training_server")
    if given is None:
        return None
    if isinstance(given, str):
        return given
    part = Section(given, "server.training_server")
    host, port = part.text("host", "localhost"), str(part.raw("port", "50051"))
    return f"{host}:{port.lstrip(':')}"
