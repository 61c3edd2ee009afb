"""The section `where` of a config: on which machines runs train. It changes nothing of what they learn."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rl4sys.config import Config


class WhereSection(Config):
    """On which machines runs train; the options of the command line come first."""

    on: Literal["local", "ray", "slurm"] = "local"
    """`local`: processes on this machine. `ray`: a Ray cluster. `slurm`: one job per run."""
    address: str | None = None
    """The Ray cluster: none starts Ray on this machine, `auto` or `HOST:6379` joins one, `http://HOST:8265` submits the
    command to one as a Ray job."""
    cpus: int | None = Field(None, ge=1)
    """Cores per run. Here: by default an equal share of all cores; on a cluster: 1."""
    gpus: float = Field(0, ge=0)
    """GPUs per run; 0.5 lets two runs share one."""
    jobs: int | None = Field(None, ge=1)
    """Runs at the same time. On a cluster: by default as many as it has cores for."""
    retries: int = Field(3, ge=0)
    """How often a run is continued after its process or machine was lost. A run that fails by itself is not retried."""
    storage: str | None = None
    """Where runs are kept so that every machine can continue them: a directory that all of them see, or a URL
    (`s3://`, `gs://`, `file://`)."""
    autoscaling: bool = False
    """Whether the cluster starts machines when they are asked for, so that what it has now says little."""
