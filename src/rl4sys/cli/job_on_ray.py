"""Submits a command to a Ray cluster as a job."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Sequence

import typer
from ray.job_submission import JobStatus, JobSubmissionClient

from rl4sys.cli.exit_codes import ERROR
from rl4sys.cli.output import report, show
from rl4sys.cli.where import without_option
from rl4sys.collection.cluster_address import require_dashboard

_LEFT_OUT = ["runs", ".git", ".venv*", "__pycache__", "*.mp4"]
"""What is not sent along with the working directory."""

_NOT_YET = "No available agent to submit job"
_ATTEMPTS, _PAUSE = 30, 2.0
"""How often a cluster is asked that has just started, and seconds between."""


class JobRefused(RuntimeError):
    """A job that the cluster does not take."""


def submit(address: str, arguments: Sequence[str], *, follow: bool) -> None:
    """Run the same command on the cluster; with `follow`, show its output and end as it ends."""
    require_dashboard(address)
    try:
        client = JobSubmissionClient(address)
        job = _submitted(client, command_there(arguments))
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise JobRefused(f"The cluster at {address} does not take the job: {str(error).splitlines()[0]}") from error
    show(f"job       {job} on {address}")
    logs = f"ray job logs --address {address} {job}"
    if not follow:
        show(f"follow it with: {logs} --follow")
        return
    report("its output follows; Ctrl-C leaves it running")
    try:
        asyncio.run(_print_logs(client, job))
    except KeyboardInterrupt:
        show(f"the job continues; follow it with: {logs} --follow")
        return
    if client.get_job_status(job) != JobStatus.SUCCEEDED:
        report(f"error: the job ended as {client.get_job_status(job)}; all of its output: {logs}")
        raise typer.Exit(ERROR)


def _submitted(client: JobSubmissionClient, command: str, sleep: Callable[[float], None] = time.sleep) -> str:
    """The id of a new job. A cluster that has just started takes none for some seconds, and is asked again."""
    environment = {"working_dir": ".", "excludes": _LEFT_OUT}
    for _ in range(_ATTEMPTS):
        try:
            return str(client.submit_job(entrypoint=command, runtime_env=environment))
        except RuntimeError as error:
            if _NOT_YET not in str(error):
                raise
        sleep(_PAUSE)
    return str(client.submit_job(entrypoint=command, runtime_env=environment))


def command_there(arguments: Sequence[str]) -> str:
    """The command as the cluster runs it: its own Ray is the one to join."""
    kept = [argument for argument in without_option(arguments, "--address") if argument != "--detach"]
    return shlex.join(["rl4sys", *kept, "--on", "ray", "--address", "auto"])


async def _print_logs(client: JobSubmissionClient, job: str) -> None:
    async for text in client.tail_job_logs(job):
        report(text.rstrip("\n"))
