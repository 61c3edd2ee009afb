"""Reads the config files of the original RL4Sys: the flat one, and the one in sections.

Every documented name keeps its meaning; these are translated:

- `pi_lr` and `vf_lr` are the learning rates of actor and critic (`lr`, `critic_lr`), `train_pi_iters` and
  `train_v_iters` their epochs over each batch (`epochs`, `critic_epochs`). Where both are
  equal, one optimizer serves both networks.
- `batch_size` is the size of one gradient step: PPO's `minibatch_size`.
- `traj_per_epoch` trajectories are collected before each update (`episodes_per_update`); the buffer holds that
  many of length `max_traj_length`.
- `max_traj_length` is the most steps of one segment (`max_segment_length`).
- `act_dim` is the number of choices for PPO, DQN and a SAC with `discrete: true`, and the size of a vector within
  ±`act_limit` for PPO_Continuous and the others.
- `connection_timeout_seconds` or else `request_timeout_seconds` is `timeout`.
- `debug` and `log_level` are for `RL4SysAgent`; `enable_compression` is read and has no effect.
- `send_frequency` trajectories are sent together, after one second at the latest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rl4sys.client.original_parameters import CONTINUOUS, ON_POLICY, algorithm_of, translate_parameters
from rl4sys.client.section import Section, SettingsError, shown

_LEVELS = ("", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_SECTIONS = ("algorithm_parameters", "network_architecture", "training", "communication")
_FLAT = ("algorithm_name", "train_server_address", "max_traj_length", "act_limit", "type")
_DEFAULT_LENGTH = 1000
"""Length of a trajectory where `max_traj_length` is not given."""


@dataclass(frozen=True, slots=True)
class OriginalNames:
    """What programs read from an original config, as it stands there."""

    algorithm: str
    parameters: dict[str, Any]
    kind: str
    """`onpolicy` or `offpolicy`."""
    debug: bool
    log_level: str
    """Empty if it is not given."""


def original_names(values: Mapping[str, Any]) -> OriginalNames:
    """The attributes of an original agent, from the values of its config."""
    top = Section(values)
    algorithm = top.raw("algorithm_name", top.raw("algorithm", ""))
    name = algorithm if isinstance(algorithm, str) else ""
    parameters = top.raw("algorithm_parameters", {})
    return OriginalNames(
        algorithm=name,
        parameters=dict(parameters) if isinstance(parameters, Mapping) else {},
        kind="onpolicy" if name.lower().startswith("ppo") else "offpolicy",
        debug=top.raw("debug", False) is True,
        log_level=top.choice("log_level", _LEVELS, "") if "log_level" in top else "",
    )


def is_original(values: Mapping[str, Any]) -> bool:
    """Whether a config has the keys of an original one."""
    return any(name in values for name in (*_SECTIONS, *_FLAT))


def translate(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings with the present names."""
    top = Section(values)
    original = top.text("algorithm_name") or top.text("algorithm") or "PPO"
    name = algorithm_of(original)
    parameters, training = top.section("algorithm_parameters"), top.section("training")
    communication, network = top.section("communication"), top.section("network_architecture")
    _require_kind(top, name)
    _check_switches(top)
    waits = [top.raw(key) for key in ("timeout", "connection_timeout_seconds", "request_timeout_seconds")]
    longest = top.whole("max_traj_length", least=1)
    ours: dict[str, Any] = {
        "client_id": top.raw("client_id"),
        "server": communication.text("server_address") or top.text("train_server_address"),
        "timeout": communication.raw("timeout", next((wait for wait in waits if wait is not None), None)),
        "send_frequency": communication.raw("send_frequency", top.raw("send_frequency")),
        "max_segment_length": longest,
        "seed": parameters.raw("seed", top.raw("seed")),
        **_spaces(top, parameters, original),
    }
    if ours["send_frequency"] is not None:
        ours["send_interval"] = 1.0
    found = translate_parameters((parameters, training), name, longest or _DEFAULT_LENGTH, ours.get("observation"))
    ours |= {"algorithm": {"name": name, **found.algorithm}, "buffer": found.buffer or None}
    ours["network"] = _network(network, found.hidden)
    # Settings that the original files did not have may be added to them: a token, an outbox, a cache.
    ours |= communication.rest() | top.rest()
    return {key: value for key, value in ours.items() if value is not None}


def _check_switches(top: Section) -> None:
    for name in ("enable_compression", "debug"):
        if not isinstance(value := top.raw(name, False), bool):
            raise SettingsError(f"{name}: got {shown(value)}; expected true or false.")
    if "log_level" in top:
        top.choice("log_level", _LEVELS, "")


def _require_kind(top: Section, name: str) -> None:
    kind = top.text("type", top.text("algorithm_type"))
    if kind is None:
        return
    plain = kind.lower().replace("-", "").replace("_", "")
    expected = "onpolicy" if name in ON_POLICY else "offpolicy"
    if plain != expected:
        raise SettingsError(f"type: got '{kind}'; {name.upper()} is '{expected}'. Correct it or leave it out.")


def _network(network: Section, hidden: list[int] | None) -> dict[str, Any] | None:
    sizes, activation = network.raw("hidden_sizes", hidden), network.text("activation")
    network.finish()
    body = {"type": "mlp", "hidden_dims": sizes, "activation": activation}
    body = {key: value for key, value in body.items() if value is not None}
    return {"actor": body, "critic": dict(body)} if len(body) > 1 else None


def _spaces(top: Section, parameters: Section, original: str) -> dict[str, Any]:
    size, count = (parameters.whole(key, top.whole(key, least=1), least=1) for key in ("input_size", "act_dim"))
    limit = parameters.number("act_limit", top.number("act_limit", 1.0)) or 1.0
    spaces: dict[str, Any] = {} if size is None else {"observation": size}
    if count is not None:
        name = original.lower()
        is_vector = name == "ppo_continuous" or (name in CONTINUOUS and parameters.raw("discrete") is not True)
        spaces["action"] = {"low": [-limit] * count, "high": [limit] * count} if is_vector else count
    return spaces
