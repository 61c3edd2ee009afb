"""`rl4sys model`: how well the model of a run predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json, OneRun, Runs


def model(
    run: OneRun,
    steps: Annotated[int, typer.Option(min=1, help="Fresh steps to compare with, over all episodes.")] = 1_000,
    horizon: Annotated[int, typer.Option(min=1, help="Steps ahead of the longest prediction.")] = 15,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environments.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The plot to write.")] = Path("model.png"),
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the model of a run with fresh episodes, and plot the result.

    Shows the error of predictions over several steps, beside the error of predicting no change, how often the model's
    intervals contain the true value, and whether its members disagree where there is no data.

    [bold]Examples[/]

      rl4sys model runs/pets-Pendulum-v1-seed0-20260101-120000

      rl4sys model pets-Pendulum --horizon 30 --output model.png --json
    """
    from rl4sys.cli.output import print_json, print_table, show
    from rl4sys.dynamics import LEVELS
    from rl4sys.experiments import RunDirectory
    from rl4sys.experiments.models.model_plot import plot_model
    from rl4sys.experiments.models.model_report import report_on_model

    directory = RunDirectory(Path(run))
    report = report_on_model(directory, steps=steps, horizon=horizon, seed=seed)
    written = plot_model(report, directory.path.name, output)
    covered = None if report.coverage is None else dict(zip(LEVELS, report.coverage.tolist(), strict=True))
    ratio = report.disagreement_off_data / report.disagreement if report.disagreement else None
    if json:
        print_json(
            {
                "run": str(directory.path),
                "step": report.step,
                "fresh_steps": report.fresh_steps,
                "open_loop_error": report.open_loop.tolist(),
                "copy_last_error": report.copy_last.tolist(),
                "reward_r2": report.reward_r2,
                "coverage": covered,
                "disagreement": report.disagreement,
                "disagreement_off_data": report.disagreement_off_data,
                "plot": str(written),
            }
        )
        return
    first, last = report.open_loop[0], report.open_loop[-1]
    rows = [
        ["error 1 step ahead", f"{first:.3f}", f"{report.copy_last[0]:.3f} by copying the last observation"],
        [f"error {horizon} steps ahead", f"{last:.3f}", f"{report.copy_last[-1]:.3f} by copying the last observation"],
        ["predicted variance of rewards", f"{report.reward_r2:.1%}", "1 step ahead"],
    ]
    if covered is not None:
        rows.append(["90 % intervals hold", f"{covered[0.9]:.1%}", "of the truth, 1 step ahead"])
    if ratio is not None:
        rows.append(
            ["disagreement of members", f"{report.disagreement:.3f}", f"{ratio:.1f} times as much off the data"]
        )
    print_table(("prediction", "value", "beside"), rows)
    show(f"wrote {written}")
