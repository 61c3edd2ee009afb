"""`rl4sys profile`: measure what the client costs the system that it is in, of a program or of a connected client."""

from __future__ import annotations

import json as json_format
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.options import Debug, Json
from rl4sys.cli.server_connection import ServerConnection, with_server

if TYPE_CHECKING:
    from rl4sys.laboratory.client_profile import ProfileReport, Recording

_PAUSE = 0.2
_GRACE = 10.0
"""Seconds that the program has to end after SIGTERM."""


@with_server
def profile(
    server: ServerConnection,
    words: Annotated[
        list[str],
        typer.Argument(metavar="CLIENT_ID | -- COMMAND...", help="A connected client, or a program to start."),
    ],
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="Seconds of measuring, all levels together.")] = 60.0,
    out: Annotated[Path, typer.Option(help="The directory for profile.png and profile.json.")] = Path("profile"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order and the lengths of blocks.")] = 0,
    learner: Annotated[str, typer.Option(metavar="LEARNER", help="The learner of CLIENT_ID, if it uses several.")] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure what the client costs the system that it is in.

    Alternates four levels of a client in random blocks of 0.5 to 2 seconds, in the same process: `off` (the fallback
    decides), `decide` (the policy does), `record` (and decisions are recorded), `full` (and experience is sent,
    versions are received). Then it prints what each level costs, and draws a page. The program needs a fallback.

    With a CLIENT_ID it orders this of a client that is connected to the server now, in Python or C++; afterwards the
    client works as before. Meanwhile the fallback decides a quarter of the time, and three quarters of the experience
    are not sent. With -- COMMAND it starts a Python program that calls rl4sys.connect, measures it, and ends it.

    [bold]Examples[/]

      rl4sys profile node-17 --server trainer:50051 --seconds 120

      rl4sys profile -- python scheduler.py

      rl4sys profile --seconds 120 --out costs --json -- python balancer.py --port 8080
    """
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.cli.profiled_client import measure_client
    from rl4sys.laboratory.client_profile import plot_profile, report_on

    if _is_client(words):
        recording = measure_client(server, words[0], learner, seconds, seed)
    else:
        recording = _run(words, seconds, seed, is_quiet=json)
    found = report_on(recording)
    out.mkdir(parents=True, exist_ok=True)
    values = found.json_values()
    (out / "profile.json").write_text(json_format.dumps(values, indent=1) + "\n")
    picture = plot_profile(found, out / "profile.png")
    if json:
        print_json(values)
    else:
        _print(found)
        show(f"wrote {picture} and {out / 'profile.json'}")
    if found.advice is not None:
        report(found.advice)


def _is_client(words: list[str]) -> bool:
    """Whether one word names a client: a program follows `--`, has arguments or is a path."""
    return len(words) == 1 and "--" not in sys.argv and os.sep not in words[0]


def _run(command: list[str], seconds: float, seed: int, *, is_quiet: bool) -> Recording:
    """Start the program, wait until it is measured, and end it."""
    from rl4sys.client.connection import PROFILE
    from rl4sys.client.profiler import ORDER
    from rl4sys.laboratory.client_profile import ProfileFailed, Recording

    with tempfile.TemporaryDirectory(prefix="rl4sys-profile-") as name:
        directory = Path(name)
        (directory / ORDER).write_text(json_format.dumps({"seconds": seconds, "seed": seed}))
        try:
            program = subprocess.Popen(
                command, env=os.environ | {PROFILE: name}, stdout=sys.stderr if is_quiet else None
            )
        except OSError as error:
            raise ProfileFailed(f"'{command[0]}' cannot be started: {error.strerror}.") from error
        try:
            _follow(program, directory, seconds)
        finally:
            _end(program)
        recording = Recording.read(directory)
    if recording.problem is not None:
        raise ProfileFailed(f"The program could not be measured: {recording.problem}.")
    if not recording.blocks:
        raise ProfileFailed(
            f"The program ended with exit code {program.returncode} before anything was measured: it took no decision. "
            f"It must call rl4sys.connect (Python) and decide for as long as it is measured."
        )
    return recording


def _follow(program: subprocess.Popen[bytes], directory: Path, seconds: float) -> None:
    """Show progress until the recording is complete or the program has ended."""
    from rich.progress import Progress

    from rl4sys.cli.output import errors
    from rl4sys.laboratory.client_profile import Recording

    with Progress(console=errors, transient=True) as progress:
        bar = progress.add_task("measuring", total=seconds)
        while program.poll() is None:
            recording = Recording.read(directory)
            if recording.is_complete:
                return
            progress.update(bar, completed=sum(block["seconds"] for block in recording.blocks))
            time.sleep(_PAUSE)


def _end(program: subprocess.Popen[bytes]) -> None:
    if program.poll() is not None:
        return
    program.send_signal(signal.SIGTERM)
    try:
        program.wait(_GRACE)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


def _print(found: ProfileReport) -> None:
    from rl4sys.cli.output import print_table, show

    columns = ["level", "throughput", "95 % interval", "decisions/s", "p50", "p90", "p99", "p99.9", "max (µs)"]
    columns += ["caller µs", "background µs", "sent B/s", "received B/s", "backlog"]
    rows = []
    for level in found.levels:
        low, high = level.throughput.low or 0.0, level.throughput.high or 0.0
        rows.append(
            [
                level.level.value,
                f"{level.throughput.value:.3f}",
                f"{low:.3f} to {high:.3f}" if level.is_resolved else f"{low:.3f} to {high:.3f}, not resolved",
                f"{level.decisions_per_second:,.0f}",
                *(f"{level.act_microseconds.get(name, 0.0):.1f}" for name in ("p50", "p90", "p99", "p99.9", "max")),
                f"{level.caller_cpu_microseconds:.1f}",
                f"{level.background_cpu_microseconds:.1f}",
                f"{level.sent_bytes_per_second:,.0f}",
                f"{level.received_bytes_per_second:,.0f}",
                f"{level.backlog:.1f}",
            ]
        )
    print_table(columns, rows)
    floor = (
        ""
        if found.floor_microseconds is None
        else f"the bare products of the policy take {found.floor_microseconds:.1f} µs; "
    )
    show(f"{floor}{found.memory / 1e6:.0f} MB resident, {found.memory_growth / 1e6:+.1f} MB since the first round")
