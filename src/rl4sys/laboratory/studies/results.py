"""The results of a study: its summary and its plots."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import optuna
from optuna.trial import TrialState

from rl4sys.experiments import NothingToPlot
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.study_summary import FEWEST, TuneSummary, importances, summary_of
from rl4sys.laboratory.trials.names import short_names


def summarize_study(config: TuneConfig, study: optuna.Study) -> TuneSummary:
    """Summarize a study."""
    return summary_of(study, config.name or "", config.place)


def plot_history(study: optuna.Study, title: str, output: Path) -> Path:
    """Plot the return of every trial, and the best so far, into a PNG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    trials = study.get_trials(deepcopy=False)
    complete = [(trial.number, trial.value) for trial in trials if trial.state is TrialState.COMPLETE]
    if not complete:
        raise NothingToPlot("There is nothing to plot yet: no trial of the study is finished.")
    pruned = [
        (trial.number, trial.intermediate_values[trial.last_step])
        for trial in trials
        if trial.state is TrialState.PRUNED and trial.last_step is not None
    ]
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    numbers, values = zip(*complete, strict=True)
    if pruned:
        axes.plot(*zip(*pruned, strict=True), "x", color="0.6", markersize=5, label=f"{len(pruned)} given up early")
    axes.plot(numbers, values, "o", color="C0", alpha=0.6, markersize=5, label=f"{len(complete)} finished")
    best = [*accumulate(values, max), max(values)]
    axes.step([*numbers, trials[-1].number], best, where="post", color="C1", linewidth=2, label="best so far")
    axes.set_title(title)
    axes.set_xlabel("trial")
    axes.set_ylabel("return")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(framealpha=0.85)
    figure.savefig(output, dpi=150)
    return output


def plot_importances(study: optuna.Study, title: str, output: Path) -> Path:
    """Plot the importance of each setting into a PNG."""
    from matplotlib.figure import Figure

    found = importances(study)
    if not found:
        raise NothingToPlot(f"Importances need {FEWEST} finished trials with different returns.")
    names = short_names(list(found))
    figure = Figure(figsize=(8, 1.4 + 0.4 * len(found)), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh([names[key] for key in found], list(found.values()), color="C0", height=0.65)
    axes.bar_label(bars, [f"{share:.0%}" for share in found.values()], padding=4)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(found.values()))
    axes.set_title(f"{title}: importance of settings")
    axes.set_xlabel("importance")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(output, dpi=150)
    return output
