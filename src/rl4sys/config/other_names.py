"""The names of settings in other libraries, and which of ours was probably meant; only used for suggestions."""

from __future__ import annotations

from collections.abc import Sequence

from rl4sys.suggestions import nearest

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    # Shared by several libraries.
    "learning_rate": ("lr", "algorithm.lr"),
    "lr": ("algorithm.lr",),
    "gamma": ("algorithm.gamma",),
    "discount": ("gamma", "algorithm.gamma"),
    "discount_factor": ("gamma", "algorithm.gamma"),
    "tau": ("polyak",),
    "batch_size": ("minibatch_size",),
    "minibatch_size": ("batch_size",),
    "buffer_size": ("buffer.size",),
    "total_timesteps": ("training.total_timesteps",),
    "num_envs": ("environment.num_envs",),
    # Stable-Baselines3.
    "ent_coef": ("entropy_coef", "initial_temperature"),
    "vf_coef": ("value_coef",),
    "clip_range": ("clip_ratio",),
    "clip_range_vf": ("clip_value",),
    "n_steps": ("n_step", "buffer.size"),
    "n_epochs": ("epochs",),
    "n_envs": ("num_envs", "environment.num_envs"),
    "train_freq": ("train_frequency",),
    "gradient_steps": ("updates_per_step",),
    "target_policy_noise": ("target_noise",),
    "exploration_initial_eps": ("epsilon_start",),
    "exploration_final_eps": ("epsilon_end",),
    "net_arch": ("network.actor.hidden_dims",),
    "policy_kwargs": ("network.actor.hidden_dims",),
    "activation_fn": ("network.actor.activation",),
    "eval_freq": ("training.eval_frequency",),
    "n_eval_episodes": ("training.num_eval_episodes",),
    "save_freq": ("training.checkpoint_frequency",),
    "log_interval": ("training.log_frequency",),
    "tensorboard_log": ("logging.tensorboard",),
    "norm_obs": ("environment.normalize_obs",),
    "norm_reward": ("environment.normalize_reward",),
    "env_kwargs": ("environment.kwargs",),
    # CleanRL.
    "exp_name": ("experiment.name",),
    "env_id": ("environment.name",),
    "env": ("environment.name",),
    "algo": ("algorithm.name",),
    "cuda": ("experiment.device",),
    "torch_deterministic": ("experiment.seed",),
    "track": ("logging.wandb.enabled",),
    "wandb": ("logging.wandb.enabled",),
    "mlflow": ("logging.mlflow.enabled",),
    "wandb_project_name": ("logging.wandb.project",),
    "capture_video": ("training.video_frequency",),
    "num_steps": ("buffer.size",),
    "update_epochs": ("epochs",),
    "clip_coef": ("clip_ratio",),
    "clip_vloss": ("clip_value",),
    "norm_adv": ("normalize_advantage",),
    "policy_lr": ("lr",),
    "q_lr": ("critic_lr", "lr"),
    "policy_frequency": ("policy_delay",),
    "policy_noise": ("target_noise",),
    "noise_clip": ("target_noise_clip",),
    "exploration_noise": ("exploration_std",),
    "start_e": ("epsilon_start",),
    "end_e": ("epsilon_end",),
    "target_network_frequency": ("target_update_interval", "polyak"),
    "alpha": ("initial_temperature",),
    "autotune": ("temperature",),
    # RLlib.
    "lambda": ("gae_lambda",),
    "lambda_": ("gae_lambda",),
    "entropy_coeff": ("entropy_coef",),
    "vf_loss_coeff": ("value_coef",),
    "clip_param": ("clip_ratio",),
    "vf_clip_param": ("clip_value",),
    "kl_target": ("target_kl",),
    "grad_clip": ("max_grad_norm",),
    "num_sgd_iter": ("epochs",),
    "num_epochs": ("epochs",),
    "sgd_minibatch_size": ("minibatch_size",),
    "train_batch_size": ("batch_size", "buffer.size"),
    "train_batch_size_per_learner": ("batch_size", "buffer.size"),
    "rollout_fragment_length": ("buffer.size",),
    "num_workers": ("training.collectors",),
    "num_rollout_workers": ("training.collectors",),
    "num_env_runners": ("training.collectors",),
    "num_envs_per_worker": ("environment.num_envs",),
    "num_envs_per_env_runner": ("environment.num_envs",),
    "num_gpus": ("where.gpus",),
    "evaluation_interval": ("training.eval_frequency",),
    "evaluation_duration": ("training.num_eval_episodes",),
    "fcnet_hiddens": ("network.actor.hidden_dims",),
    "fcnet_activation": ("network.actor.activation",),
    "env_config": ("environment.kwargs",),
    "num_steps_sampled_before_learning_starts": ("learning_starts",),
    "target_network_update_freq": ("target_update_interval", "polyak"),
    "timesteps_total": ("training.total_timesteps",),
    "max_timesteps": ("training.total_timesteps",),
}
"""Names of settings elsewhere, with ours in the order of preference: within the same section, or in full."""


def usual_name(key: str, allowed: Sequence[str]) -> str | None:
    """Our name for a setting of another library: one that is allowed in its section, or a full key elsewhere."""
    return next((name for name in OTHER_NAMES.get(key.casefold(), ()) if name in allowed or "." in name), None)


def meant_key(place: Sequence[str], keys: Sequence[str]) -> str | None:
    """Which of all `keys` of a config was probably meant by an unknown one at a place; None if none is near.

    The same section comes first, then a name of another library or the same name in any section, then a similar name.
    """
    section, name = ".".join(place[:-1]), place[-1]
    names = [name, *OTHER_NAMES.get(name.casefold(), ())]
    for candidate in names if section else ():
        if (own := f"{section}.{candidate}") in keys:
            return own
    for candidate in names:
        found = [key for key in keys if key == candidate or key.endswith(f".{candidate}")]
        if found:
            return min(found, key=lambda key: key.count("."))
    inside = [key for key in keys if key.startswith(f"{section}.")] if section else []
    for near in (inside, keys):
        ends = {key.rpartition(".")[2]: key for key in reversed(near)}
        if (match := nearest(name, ends)) is not None:
            return ends[match]
    return None
