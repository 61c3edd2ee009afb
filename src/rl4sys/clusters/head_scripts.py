"""Shell scripts that run on the head of a Ray cluster, where its dashboard is on loopback."""

from __future__ import annotations

import shlex

from rl4sys.clusters.submission import Submission

WORK = "~/rl4sys-work"
"""Where commands run on a head."""
_DASHBOARD = "--address http://127.0.0.1:8265"


def submit(submission: Submission) -> str:
    """A script for the head that starts a job: a file holds the command, since Ray joins words without quoting."""
    script = f"cd {WORK} && exec {shlex.join(submission.command)}"
    path = f"{WORK}/{submission.id}.sh"
    job = f"ray job submit {_DASHBOARD} --no-wait --submission-id {submission.id} -- bash {path}"
    return f"printf %s {shlex.quote(script)} > {path} && {job}"


def follow(id: str) -> str:
    """A script for the head that shows a job until it ends, and fails if the job did."""
    return f"ray job logs {_DASHBOARD} --follow {id}; ray job status {_DASHBOARD} {id} 2>&1 | grep -q succeeded"


def is_running(id: str) -> str:
    """A script for the head that prints `still running` while a job does."""
    # In two parts: `ray exec` prints the script itself, too.
    asking = f"ray job status {_DASHBOARD} {id} 2>&1 | grep -Eq 'PENDING|RUNNING'"
    return f"{asking} && printf 'still %s\\n' running || true"


def logs(id: str | None) -> str:
    """A script for the head that shows the output of a job, by default of the latest."""
    latest = f'$(basename "$(ls -t {WORK}/rl4sys-*.sh | head -n 1)" .sh)'
    return f"ray job logs {_DASHBOARD} {shlex.quote(id) if id else latest}"


def list_jobs() -> str:
    """A script for the head that lists its jobs."""
    return f"ray job list {_DASHBOARD}"
