"""The parameters of algorithms under the names of the original RL4Sys, translated to the present ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rl4sys.client.section import Section, SettingsError
from rl4sys.suggestions import did_you_mean

ON_POLICY, CONTINUOUS = ("ppo",), ("ddpg", "td3", "sac", "sql")
ALGORITHMS = ("ppo", "dqn", *CONTINUOUS)
ONLY_NAMED = ("a2c", "a3c", "c51", "reinforce", "rpo", "trpo")
"""Algorithms that the original lists. Here PPO takes the place of those on-policy, DQN that of C51."""
_VARIANTS = {"ppo_continuous": "ppo"}

_RENAMED_IN_ALL = {
    "learning_rate": "lr",
    "pi_lr": "lr",
    "q_lr": "lr",
    "vf_lr": "critic_lr",
    "clip_grad_norm": "max_grad_norm",
    "buf_size": "buffer_size",
}
_RENAMED_ON_POLICY = _RENAMED_IN_ALL | {
    "lam": "gae_lambda",
    "train_pi_iters": "epochs",
    "update_epochs": "epochs",
    "train_v_iters": "critic_epochs",
    "clip_coef": "clip_ratio",
    "ent_coef": "entropy_coef",
    "vf_coef": "value_coef",
    "value_loss_coef": "value_coef",
    "norm_adv": "normalize_advantage",
    "num_steps": "buffer_size",
}
_RENAMED_OFF_POLICY = _RENAMED_IN_ALL | {
    "tau": "polyak",
    "start_e": "epsilon_start",
    "epsilon": "epsilon_start",
    "end_e": "epsilon_end",
    "epsilon_min": "epsilon_end",
    "target_network_frequency": "target_update_interval",
    "target_net_update_frequency": "target_update_interval",
    "target_update_freq": "target_update_interval",
    "target_update": "target_update_interval",
    "train_update_freq": "train_frequency",
    "train_q_iters": "train_iters",
    "policy_frequency": "policy_delay",
    "noise_scale": "exploration_std",
    "exploration_noise": "exploration_std",
    "policy_noise": "target_noise",
    "noise_clip": "target_noise_clip",
}
_NO_EFFECT = (
    "discrete",
    "log_std_min",
    "log_std_max",
    "total_timesteps",
    "total_timesteps_anneal_lr",
    "traj_per_epoch",
)
"""Names that are read and mean nothing here, or are used to translate others."""
_MOST_BYTES = 256 << 20
"""Most bytes of observations that a batch of PPO may hold, whatever `traj_per_epoch` times `max_traj_length` is."""

# fmt: off
PPO_NAMES = (
    "gamma", "lr", "critic_lr", "anneal_lr", "gae_lambda", "clip_ratio", "epochs", "critic_epochs", "minibatch_size",
    "episodes_per_update", "value_coef", "entropy_coef", "clip_value", "max_grad_norm", "target_kl",
    "normalize_advantage", "log_std_init", "max_age", "max_importance", "imitate", "center_rewards", "horizon",
    "optimizer", "schedules", "shared_trunk",
)
DQN_NAMES = (
    "gamma", "lr", "anneal_lr", "batch_size", "train_frequency", "gradient_steps", "learning_starts",
    "target_update_interval", "polyak", "epsilon_start", "epsilon_end", "exploration_fraction", "exploration_steps",
    "double", "dueling", "n_step", "sequence_length", "burn_in", "max_grad_norm", "imitate", "center_rewards",
    "horizon", "optimizer", "schedules",
)
# fmt: on
_KNOWN = {"ppo": PPO_NAMES, "dqn": DQN_NAMES}


class Translated(NamedTuple):
    """The parameters of an algorithm, of its buffer, and of its networks."""

    algorithm: dict[str, Any]
    buffer: dict[str, Any]
    hidden: list[int] | None


def algorithm_of(original: str, where: str = "algorithm_name") -> str:
    """The present name of an algorithm."""
    name = original.lower()
    name = _VARIANTS.get(name, name)
    if name in ONLY_NAMED:
        instead = "DQN" if name == "c51" else "PPO"
        raise SettingsError(f"{where}: '{original}' is only a name here; use {instead} in its place.")
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise SettingsError(f"{where}: got '{original}'; expected one of {known}{did_you_mean(name, ALGORITHMS)}.")
    return name


def translate_parameters(parts: tuple[Section, ...], name: str, longest: int, width: int | None = None) -> Translated:
    """The values of original sections with the present names; `width` is the size of an observation, if known."""
    renamed = _renamed(name)
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in part.rest().items():
            found[renamed.get(key, key)] = value
    trajectories, batch = (_whole(found, key) for key in ("traj_per_epoch", "batch_size"))
    found.pop("batch_size", None)
    for first, second in (("lr", "critic_lr"), ("epochs", "critic_epochs")):
        if second in found and found[second] == found.get(first):
            del found[second]
    if found.get("max_grad_norm") == 0:
        found["max_grad_norm"] = None
    size = found.pop("buffer_size", None)
    hidden = found.pop("hidden_size", None)
    if name in ON_POLICY:
        _translate_on_policy(found)
        count = found.pop("num_minibatches", None)
        if batch is None and isinstance(size, int) and isinstance(count, int) and count > 0:
            batch = max(1, size // count)
        if trajectories is not None:
            found["episodes_per_update"] = trajectories
            size = size or max(batch or 1, min(trajectories * longest, _MOST_BYTES // (4 * (width or 1))))
    else:
        _translate_off_policy(found, name)
    if batch is not None:
        found["minibatch_size" if name in ON_POLICY else "batch_size"] = batch
    for key in _NO_EFFECT:
        found.pop(key, None)
    _require_known(name, found)
    return Translated(found, {} if size is None else {"size": size}, None if hidden is None else [hidden, hidden])


def _translate_on_policy(found: dict[str, Any]) -> None:
    if (clip := found.pop("clip_vloss", None)) is not None:
        found["clip_value"] = found.get("clip_ratio", 0.2) if clip else None


def _translate_off_policy(found: dict[str, Any], name: str) -> None:
    polyak = found.get("polyak")
    if isinstance(polyak, float) and 0.5 < polyak < 1.0:
        # The share of the old target, as Spinning Up counts it.
        found["polyak"] = 1.0 - polyak
    rounds = found.pop("train_iters", None)
    if name == "dqn":
        if rounds is not None:
            found["gradient_steps"] = rounds
        _translate_exploration(found)
        return
    if rounds is not None:
        found["updates_per_step"] = min(1.0, rounds / found.get("train_frequency", 1))
    if name == "ddpg" and found.get("policy_delay") == 1:
        del found["policy_delay"]
    if (alpha := found.pop("alpha", None)) is not None:
        adapts = found.pop("adaptive_alpha", False)
        found |= {"initial_temperature": alpha} if adapts else {"temperature": alpha}
    elif found.pop("adaptive_alpha", None):
        found["temperature"] = "auto"


def _translate_exploration(found: dict[str, Any]) -> None:
    """Steps of exploration: a fraction of all steps, or those after which a decaying epsilon has reached its end."""
    total, fraction = found.pop("total_timesteps", None), found.get("exploration_fraction")
    if total is not None and fraction is not None:
        found["exploration_steps"] = max(1, round(total * fraction))
    decay = found.pop("epsilon_decay", None)
    if not isinstance(decay, float) or not 0.0 < decay < 1.0 or "exploration_steps" in found:
        return
    start, end = found.get("epsilon_start", 1.0), found.get("epsilon_end", 0.01)
    if start > end > 0.0:
        factor = decay > 0.5
        found["exploration_steps"] = math.ceil(
            math.log(end / start) / math.log(decay) if factor else (start - end) / decay
        )


def _renamed(name: str) -> Mapping[str, str]:
    return _RENAMED_ON_POLICY if name in ON_POLICY else _RENAMED_OFF_POLICY


def _whole(found: Mapping[str, Any], key: str) -> int | None:
    return Section(found, "algorithm_parameters").whole(key, least=1)


def _require_known(name: str, found: Mapping[str, Any]) -> None:
    known = _KNOWN.get(name)
    for key in found if known else ():
        if known and key not in known:
            words = [*known, *_renamed(name), "traj_per_epoch", "input_size", "act_dim", "buffer_size"]
            raise SettingsError(
                f"algorithm_parameters.{key}: {name.upper()} has no such parameter{did_you_mean(key, words)}. "
                f"Known: {', '.join(sorted(words))}."
            )
