"""One of several processes that use a study at once: python journal_writer.py CONFIG.yaml COUNT"""

from __future__ import annotations

import sys

from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import attach, open_study, suggest
from rl4sys.laboratory.trials.config import load_many_trials

if __name__ == "__main__":
    config = load_many_trials(TuneConfig, sys.argv[1], "tuning", {})
    study = open_study(config, config.place)
    for _ in range(int(sys.argv[2])):
        number, values = suggest(study, config)
        attach(study, number).report(values["algorithm.lr"], 1)
        study.tell(number, values["algorithm.lr"])
        print(number, flush=True)
