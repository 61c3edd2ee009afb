"""Runs on several ranks, each in its own process."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.programs import Program

from rl4sys.experiments import ExperimentConfig, Result, RunDirectory, load_experiment

PROGRAM = str(Path(__file__).with_name("rank_program.py"))
TO_THE_END = 10**9


def start_ranks(source: Path, ranks: int, stop_step: int = TO_THE_END) -> list[Program]:
    """Start all ranks of a config file or a run."""
    port_file = source.parent / f".port-{source.name}-{stop_step}"
    port_file.unlink(missing_ok=True)
    return [
        Program(PROGRAM, str(rank), str(ranks), str(source), str(port_file), str(stop_step)) for rank in range(ranks)
    ]


def finish_ranks(programs: list[Program], seconds: float = 120.0) -> None:
    """Wait until all ranks have ended as they should."""
    try:
        codes = [program.wait(seconds) for program in programs]
    finally:
        for program in programs:
            program.kill()
    assert codes == [0] * len(programs), [program.communicate() for program in programs]


def train_on_ranks(config: ExperimentConfig, directory: Path, stop_step: int = TO_THE_END) -> RunDirectory:
    """Train a config in a directory on its ranks; returns the run."""
    directory.mkdir()
    moved = load_experiment(config.model_dump(mode="json"), {"directory": str(directory / "runs")})
    source = directory / "config.yaml"
    source.write_text(yaml.safe_dump(moved.model_dump(mode="json")))
    finish_ranks(start_ranks(source, config.training.ranks, stop_step))
    (run,) = (directory / "runs").glob("[!.]*")
    return RunDirectory(run)


def resume_on_ranks(run: RunDirectory, ranks: int) -> None:
    """Resume a run and train it to its end."""
    finish_ranks(start_ranks(run.path, ranks))


def fingerprint_of(run: RunDirectory) -> dict[str, str]:
    """The hashes of a finished run."""
    result = Result.read(run.result)
    assert result is not None
    assert result.finished
    return dict(result.fingerprint)
