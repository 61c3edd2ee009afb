"""A trial that trains as a SLURM job, whose machines are lost, ends in the fingerprint of the undisturbed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.runs import PPO, small
from laboratory.trials.test_launcher import EventLog
from rl4sys.clusters.slurm_launcher import SlurmLauncher, SlurmOptions
from rl4sys.experiments import Result
from rl4sys.laboratory.trials.launcher import Launcher, Outcome, Reported, run_launches
from rl4sys.laboratory.trials.local_launcher import LocalLauncher
from rl4sys.laboratory.trials.trial import Trial, TrialOptions
from rl4sys.run_files import RESULT

from .fake_slurm import FakeSlurm

OPTIONS = SlurmOptions(jobs=1, poll_seconds=0.0, lag_seconds=0.0)


class Losses(EventLog):
    """Loses the machine of a job when it has logged some records: once requeued by SLURM, once not.

    The second time only after the job has begun again: many records may be handled at once.
    """

    def __init__(self, slurm: FakeSlurm) -> None:
        super().__init__()
        self._slurm = slurm
        self._losses = 0

    def handle(self, event: object) -> None:
        super().handle(event)
        begun = [index for index, each in enumerate(self.events) if isinstance(each, Reported) and "run" in each.values]
        if len(begun) == self._losses + 1 <= 2 and self._records_since(begun[-1]) >= 2:
            self._losses += 1
            self._slurm.lose(1, "NODE_FAIL", requeue=self._losses == 1)

    def _records_since(self, index: int) -> int:
        return sum(isinstance(each, Reported) and "record" in each.values for each in self.events[index:])


def trained(launcher: Launcher, place: Path, log: EventLog, *, has_own_directory: bool) -> Result:
    config = small(PPO, place, training__total_timesteps=16_000, training__log_frequency=400)
    trial = Trial("one", config, has_own_directory=has_own_directory)
    run_launches(launcher, [trial.launch(TrialOptions())], log, lambda: False)
    assert log.endings()["one"].outcome is Outcome.FINISHED, log.endings()
    result = Result.read(Path(str(log.reported("run")[-1])) / RESULT)
    assert result is not None
    return result


@pytest.mark.slow
@pytest.mark.parametrize("has_own_directory", [True, False])
def test_lost_machines_change_no_bit(slurm: FakeSlurm, tmp_path: Path, has_own_directory: bool) -> None:
    here = trained(LocalLauncher(1), tmp_path / "here", EventLog(), has_own_directory=has_own_directory)
    there = trained(SlurmLauncher(OPTIONS), Path("there"), Losses(slurm), has_own_directory=has_own_directory)
    assert there.fingerprint == here.fingerprint
    assert slurm.numbers() == [1, 2]
    assert len([path for path in Path("there").iterdir() if (path / "config.yaml").is_file()]) == 1
