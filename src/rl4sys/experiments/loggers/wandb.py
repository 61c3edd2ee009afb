"""Weights & Biases: sent during the run, or kept in the run for `wandb sync` when there is no network."""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from rl4sys.experiments.loggers.registry import LoggedRun, LoggerConfig, Requirement, register_logger
from rl4sys.experiments.metrics import MetricRecord, flat_record
from rl4sys.policy.portable_policy import SUFFIX
from rl4sys.run_files import POLICIES, VIDEOS, WANDB

_log = logging.getLogger(__name__)
_ANSWER_SECONDS = 3.0
"""The timeout after which a server counts as unreachable, in seconds."""


@register_logger("wandb")
class WandbConfig(LoggerConfig):
    """Weights & Biases."""

    requires: ClassVar[Requirement | None] = Requirement("wandb", "rl4sys[wandb]")

    project: str = "rl4sys"
    """The project to log to."""
    tags: tuple[str, ...] = ()
    """Tags of the run."""
    group: str | None = None
    """The group of the run; if not given, the name of the experiment, so that its seeds are together."""
    artifacts: bool = False
    """Keep the best and the latest policy as artifacts when the run ends."""
    videos: bool = False
    """Send the videos of the run (`training.video_frequency`) when it ends."""
    mode: Literal["auto", "online", "offline"] = "auto"
    """`offline` writes into the run's `wandb/`, for `wandb sync` later. `auto` sends if there is a key and its server
    answers, and is offline otherwise. The variable WANDB_MODE wins over `auto`."""

    def build(self, run: LoggedRun) -> WandbLogger:
        """Join, or rejoin, the run of Weights & Biases that has the same id."""
        return WandbLogger(self, run)


class WandbLogger:
    """One run of Weights & Biases, named after the run's directory. A resumed run continues as the same run there.

    Weights & Biases only takes steps in order. What a resumed run computes again was sent before and is the same, so it
    is left out, up to the last step that was handed over.
    """

    def __init__(self, config: WandbConfig, run: LoggedRun) -> None:
        import wandb

        self._config, self._directory, self._id, self._wandb = config, run.directory, run.id, wandb
        self._marker = run.directory / WANDB / "sent.json"
        self._marker.parent.mkdir(exist_ok=True)
        self._step, self._names = _sent(self._marker)
        mode = chosen_mode(config, wandb)
        self._run = wandb.init(
            project=config.project,
            tags=list(config.tags),
            group=config.group or experiment_name(run.config),
            id=run.id,
            name=run.directory.name,
            dir=str(run.directory),
            config=dict(run.config),
            resume=None if mode == "offline" else "allow",
            mode=mode,
            settings={"silent": True, "console": "off"},
        )
        if mode == "offline":
            _log.info("Weights & Biases is offline. Send it later with: wandb sync %s/*-run-*", self._marker.parent)

    def log(self, record: MetricRecord) -> None:
        """Send every metric, unless it was sent before the run was resumed."""
        if record.step < self._step:
            return
        known = self._names if record.step == self._step else set()
        values = {name: value for name, value in flat_record(record).items() if name not in known}
        if any(name in values for name in record.metrics):
            self._run.log(values, step=record.step)
            self._step, self._names = record.step, known | values.keys()
            self._marker.write_text(json.dumps([self._step, sorted(self._names)]))

    def close(self) -> None:
        """Send the policies and videos of the run, and what is left."""
        try:
            self._send_files()
        finally:
            self._run.finish()

    def _send_files(self) -> None:
        if self._config.artifacts:
            for file in sorted((self._directory / POLICIES).glob(f"*{SUFFIX}")):
                artifact = self._wandb.Artifact(f"{self._id}-{file.stem}", type="policy")
                artifact.add_file(str(file))
                self._run.log_artifact(artifact)
        if self._config.videos:
            for file in sorted((self._directory / VIDEOS).glob("*.mp4")):
                self._run.log({f"videos/{file.stem}": self._wandb.Video(str(file), format="mp4")})


def experiment_name(config: Mapping[str, Any]) -> str:
    """The name of an experiment, which its seeds share."""
    made = f"{config['algorithm']['name']}-{config['environment']['name']}"
    return str(config["experiment"]["name"] or made)


def _sent(marker: Path) -> tuple[int, set[str]]:
    """The last step that was handed over, and the metrics of that step; a marker that a kill damaged counts as none."""
    try:
        step, names = json.loads(marker.read_bytes())
    except (OSError, ValueError):
        return -1, set()
    return int(step), set(names)


def chosen_mode(config: WandbConfig, wandb: Any) -> Literal["online", "offline"] | None:
    """`offline` where nothing could be sent; None leaves the word to the variables of Weights & Biases."""
    if config.mode != "auto":
        return config.mode
    if "WANDB_MODE" in os.environ:
        return None
    server = urlsplit(wandb.setup().settings.base_url)
    if not _answers(server.hostname or "", server.port or (80 if server.scheme == "http" else 443)):
        _log.warning("%s does not answer: Weights & Biases continues offline.", server.netloc)
        return "offline"
    if not wandb.login(prompt=False):
        _log.warning("No key for %s: Weights & Biases continues offline. Get one with: wandb login", server.netloc)
        return "offline"
    return "online"


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_ANSWER_SECONDS).close()
    except OSError:
        return False
    return True
