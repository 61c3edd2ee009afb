"""Runs a sweep on a Ray cluster that starts its workers on demand, with Ray's own provider of fake nodes.

It runs inside a network and process namespace of its own, since Ray ends clusters of this kind for the whole machine.
Prints JSON: the numbers of workers as they changed, and how the sweep ended.

    python -m clusters.autoscaling_inside DIRECTORY
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import ray

from cli.commands import start, write_config
from experiments.runs import PPO, values

ADDRESS = "127.0.0.1:6379"
CLUSTER = {
    "cluster_name": "fake",
    "max_workers": 2,
    "idle_timeout_minutes": 0.2,
    "provider": {
        "type": "fake_multinode",
        "gcs_address": ADDRESS,
        "launch_multiple": True,
        # All fake nodes have the address of this machine, and need no set-up.
        "use_node_id_as_ip": True,
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
    },
    "head_node_type": "ray.head.default",
    "available_node_types": {
        "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
        "worker": {"resources": {"CPU": 1}, "node_config": {}, "min_workers": 0, "max_workers": 2},
    },
    "upscaling_speed": 1.0,
    "auth": {},
    "file_mounts": {},
    "file_mounts_sync_continuously": False,
    **dict.fromkeys(("cluster_synced_files", "rsync_exclude", "rsync_filter"), ()),
    **{f"{part}_commands": [] for part in ("initialization", "setup", "head_setup", "worker_setup")},
    **{f"{part}_start_ray_commands": [] for part in ("head", "worker")},
}
SWEEP = {"base_config": "base.yaml", "sweep": {"algorithm.lr": [1e-3, 3e-4]}, "seeds": [1]}
_SECONDS = 240.0
"""Seconds for the cluster to have as many workers as are waited for."""


def main(directory: Path) -> None:
    """Start the cluster, run the sweep, and wait until its workers have ended."""
    os.chdir(directory)
    (directory / "cluster.json").write_text(json.dumps(CLUSTER))
    (directory / "sweep.json").write_text(json.dumps(SWEEP))
    base = values(PPO, Path("runs"))
    # Long enough for the second worker to start while the first trial trains.
    base["training"] = {**base["training"], "total_timesteps": 6_000}
    write_config(directory / "base.yaml", base)
    options = ["--port=6379", "--node-ip-address=127.0.0.1", "--num-cpus=0", "--disable-usage-stats"]
    subprocess.run(
        ["ray", "start", "--head", *options, "--include-dashboard=false", "--autoscaling-config=cluster.json"],
        env=os.environ | {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"},
        stdout=sys.stderr,
        check=True,
    )
    ray.init(address=ADDRESS, log_to_driver=False)
    counts = [_workers()]
    where = ("--on", "ray", "--address", ADDRESS, "--storage", f"file://{directory}/store", "--name", "there")
    sweep = start("sweep", "sweep.json", *where, "where.autoscaling=true", cwd=directory)
    deadline = time.monotonic() + _SECONDS
    while (sweep.poll() is None or counts[-1] > 0) and time.monotonic() < deadline:
        if (count := _workers()) != counts[-1]:
            counts.append(count)
        time.sleep(0.1)
    _, err = sweep.communicate()
    print(json.dumps({"code": sweep.wait(), "err": err, "workers": counts}))


def _workers() -> int:
    return sum(node["Alive"] and node["Resources"].get("CPU", 0) > 0 for node in ray.nodes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
