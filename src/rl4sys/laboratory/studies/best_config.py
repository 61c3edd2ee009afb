"""The best config of a study, as a file for `rl4sys train`."""

from __future__ import annotations

import optuna
import yaml

from rl4sys.atomic_files import replace_file
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import values_of
from rl4sys.laboratory.studies.study_summary import BEST, best_of


class BestConfig:
    """Keeps the best config of a study on disk."""

    def __init__(self, config: TuneConfig, study: optuna.Study) -> None:
        self._config, self._study = config, study
        self._ranges = config.ranges()
        self._written: int | None = None

    def write(self) -> None:
        """Write the best config, if it is not the one that was written last."""
        best = best_of(self._study)
        if best is None or best.number == self._written:
            return
        config = self._config.experiment(values_of(best.params, self._ranges))
        named = config.experiment.model_copy(update={"name": f"{self._config.name}-best"})
        values = config.model_copy(update={"experiment": named}).model_dump(mode="json")
        adapted = (
            "# These are its last values: they were adapted while it trained.\n" if self._config.population else ""
        )
        text = (
            f"# The best of {self._config.place}: trial {best.number}, {self._config.score} return {best.value:.2f}.\n"
            f"{adapted}# Train it with: rl4sys train {self._config.place / BEST}\n"
            f"{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}"
        )
        replace_file(self._config.place / BEST, text.encode())
        self._written = best.number
