"""Reads the config files of the original RL4Sys: the flat one, and the one in sections.

Every documented name keeps its meaning; these are translated:

- `pi_lr` and `vf_lr` are the learning rates of actor and critic (`lr`, `critic_lr`), `train_pi_iters` and
  `train_v_iters` their epochs over each batch (`epochs`, `critic_epochs`). Where both are
  equal, one optimizer serves both networks.
- `batch_size` is the size of one gradient step: PPO's `minibatch_size`.
- `traj_per_epoch` trajectories are collected before each update (`episodes_per_update`); the buffer holds that
  many of length `max_traj_length`.
- `max_traj_length` is the most steps of one segment (`max_segment_length`).
- `act_dim` is the number of choices for PPO and DQN, and the size of a vector within ±`act_limit` for the others.
- `send_frequency` trajectories are sent together, after one second at the latest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rl4sys.client.section import Section, SettingsError
from rl4sys.suggestions import did_you_mean

_ON_POLICY, _CONTINUOUS = ("ppo",), ("ddpg", "td3", "sac", "sql")
_ALGORITHMS = ("ppo", "dqn", *_CONTINUOUS)
_RENAMED = {
    "learning_rate": "lr",
    "lam": "gae_lambda",
    "pi_lr": "lr",
    "vf_lr": "critic_lr",
    "train_pi_iters": "epochs",
    "train_v_iters": "critic_epochs",
    "q_lr": "lr",
}
_LEVELS = ("", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_SECTIONS = ("algorithm_parameters", "network_architecture", "training", "communication")
_FLAT = ("algorithm_name", "train_server_address", "max_traj_length", "act_limit", "type")
_DEFAULT_LENGTH = 1000
"""Length of a trajectory where `max_traj_length` is not given."""

# fmt: off
PPO_NAMES = (
    "gamma", "lr", "critic_lr", "anneal_lr", "gae_lambda", "clip_ratio", "epochs", "critic_epochs", "minibatch_size",
    "episodes_per_update", "value_coef", "entropy_coef", "clip_value", "max_grad_norm", "target_kl",
    "normalize_advantage", "log_std_init", "max_age", "max_importance",
)
DQN_NAMES = (
    "gamma", "lr", "anneal_lr", "batch_size", "train_frequency", "gradient_steps", "learning_starts",
    "target_update_interval", "polyak", "epsilon_start", "epsilon_end", "exploration_fraction", "exploration_steps",
    "double", "dueling", "n_step", "max_grad_norm",
)
# fmt: on
_KNOWN = {"ppo": PPO_NAMES, "dqn": DQN_NAMES}


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
    name = (top.text("algorithm_name") or top.text("algorithm") or "PPO").lower()
    if name not in _ALGORITHMS:
        raise SettingsError(f"algorithm: got '{name}'; expected one of {', '.join(_ALGORITHMS)}.")
    parameters, training = top.section("algorithm_parameters"), top.section("training")
    communication, network = top.section("communication"), top.section("network_architecture")
    _require_kind(top, name)
    longest = top.whole("max_traj_length", least=1)
    ours: dict[str, Any] = {
        "client_id": top.raw("client_id"),
        "server": communication.text("server_address") or top.text("train_server_address"),
        "timeout": communication.raw("timeout", top.raw("timeout")),
        "send_frequency": communication.raw("send_frequency", top.raw("send_frequency")),
        "max_segment_length": longest,
        "seed": parameters.raw("seed", top.raw("seed")),
        "network": _network(network),
        **_spaces(top, parameters, name),
    }
    if ours["send_frequency"] is not None:
        ours["send_interval"] = 1.0
    algorithm, buffer = _parameters(parameters, training, name, longest or _DEFAULT_LENGTH)
    ours |= {"algorithm": {"name": name, **algorithm}, "buffer": buffer or None}
    # Settings that the original files did not have may be added to them: a token, an outbox, a cache.
    ours |= communication.rest() | top.rest()
    return {key: value for key, value in ours.items() if value is not None}


def _parameters(
    parameters: Section, training: Section, name: str, longest: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of the algorithm and of its buffer."""
    trajectories = parameters.whole("traj_per_epoch", least=1) or training.whole("traj_per_epoch", least=1)
    batch = training.whole("batch_size", parameters.whole("batch_size", least=1), least=1)
    found: dict[str, Any] = {}
    for part in (parameters, training):
        for key, value in part.rest().items():
            found[_RENAMED.get(key, key)] = value
    for first, second in (("lr", "critic_lr"), ("epochs", "critic_epochs")):
        if second in found and found[second] == found.get(first):
            del found[second]
    if batch is not None:
        found["minibatch_size" if name in _ON_POLICY else "batch_size"] = batch
    buffer: dict[str, Any] = {}
    size = found.pop("buffer_size", None)
    if trajectories is not None and name in _ON_POLICY:
        found["episodes_per_update"] = trajectories
        size = size or max(batch or 1, trajectories * longest)
    if size is not None:
        buffer["size"] = size
    _require_known(name, found)
    return found, buffer


def _require_known(name: str, found: Mapping[str, Any]) -> None:
    known = _KNOWN.get(name)
    for key in found if known else ():
        if known and key not in known:
            words = [*known, *_RENAMED, "traj_per_epoch", "input_size", "act_dim", "buffer_size"]
            raise SettingsError(
                f"algorithm_parameters.{key}: {name.upper()} has no such parameter{did_you_mean(key, words)}. "
                f"Known: {', '.join(sorted(words))}."
            )


def _require_kind(top: Section, name: str) -> None:
    kind = top.text("type")
    if kind is None:
        return
    plain = kind.lower().replace("-", "").replace("_", "")
    expected = "onpolicy" if name in _ON_POLICY else "offpolicy"
    if plain != expected:
        raise SettingsError(f"type: got '{kind}'; {name.upper()} is '{expected}'. Correct it or leave it out.")


def _network(network: Section) -> dict[str, Any] | None:
    sizes, activation = network.raw("hidden_sizes"), network.text("activation")
    network.finish()
    body = {"type": "mlp", "hidden_dims": sizes, "activation": activation}
    body = {key: value for key, value in body.items() if value is not None}
    return {"actor": body, "critic": dict(body)} if len(body) > 1 else None


def _spaces(top: Section, parameters: Section, name: str) -> dict[str, Any]:
    size, count = (parameters.whole(key, top.whole(key, least=1), least=1) for key in ("input_size", "act_dim"))
    limit = parameters.number("act_limit", top.number("act_limit", 1.0)) or 1.0
    spaces: dict[str, Any] = {} if size is None else {"observation": size}
    if count is not None:
        spaces["action"] = {"low": [-limit] * count, "high": [limit] * count} if name in _CONTINUOUS else count
    return spaces
