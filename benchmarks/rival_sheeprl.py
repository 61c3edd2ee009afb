"""Updates per second of SheepRL's DreamerV3, for `world_models.py`: its own networks, losses and optimizers."""

from __future__ import annotations

import json
import sys
import time

import gymnasium
import hydra
import numpy as np
import torch
from lightning.fabric import Fabric
from sheeprl.algos.dreamer_v3.agent import build_agent
from sheeprl.algos.dreamer_v3.dreamer_v3 import train
from sheeprl.algos.dreamer_v3.utils import Moments
from sheeprl.utils.metric import MetricAggregator
from sheeprl.utils.utils import dotdict


def main() -> None:
    job = json.loads(sys.argv[1])
    torch.set_num_threads(job["threads"])
    with hydra.initialize_config_module("sheeprl.configs", version_base="1.3"):
        composed = hydra.compose(
            "config",
            [
                "exp=dreamer_v3",
                f"algo=dreamer_v3_{job['size'].upper()}",
                "env=gym",
                "env.id=Pendulum-v1",
                f"algo.per_rank_batch_size={job['batch']}",
                f"algo.per_rank_sequence_length={job['length']}",
                "algo.mlp_keys.encoder=[state]",
                "algo.mlp_keys.decoder=[state]",
                "algo.cnn_keys.encoder=[]",
                "algo.cnn_keys.decoder=[]",
            ],
        )
    from omegaconf import OmegaConf

    cfg = dotdict(OmegaConf.to_container(composed, resolve=True, throw_on_missing=False))
    MetricAggregator.disabled = True
    fabric = Fabric(accelerator="cpu", devices=1)
    space = gymnasium.spaces.Dict({"state": gymnasium.spaces.Box(-8.0, 8.0, (3,), np.float32)})
    world_model, actor, critic, target_critic, _ = build_agent(fabric, (1,), True, cfg, space)
    parts = (cfg.algo.world_model, world_model), (cfg.algo.actor, actor), (cfg.algo.critic, critic)
    optimizers = fabric.setup_optimizers(
        *(hydra.utils.instantiate(part.optimizer, params=net.parameters(), _convert_="all") for part, net in parts)
    )
    settings = cfg.algo.actor.moments
    moments = Moments(settings.decay, settings.max, settings.percentile.low, settings.percentile.high)
    shape = (job["length"], job["batch"])
    generator = torch.Generator().manual_seed(0)

    def batch() -> dict[str, torch.Tensor]:
        return {
            "state": torch.randn(*shape, 3, generator=generator),
            "actions": torch.rand(*shape, 1, generator=generator) * 2 - 1,
            "rewards": torch.randn(*shape, 1, generator=generator),
            "terminated": torch.zeros(*shape, 1),
            "truncated": torch.zeros(*shape, 1),
            "is_first": torch.zeros(*shape, 1),
        }

    def update() -> None:
        train(fabric, world_model, actor, critic, target_critic, *optimizers, batch(), None, cfg, True, (1,), moments)

    for _ in range(job["warmup"]):
        update()
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(job["updates"]):
        update()
    parameters = sum(p.numel() for net in (world_model, actor, critic) for p in net.parameters())
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    print(
        json.dumps({"seconds": seconds / job["updates"], "cpu": cpu_seconds / job["updates"], "parameters": parameters})
    )


if __name__ == "__main__":
    main()
