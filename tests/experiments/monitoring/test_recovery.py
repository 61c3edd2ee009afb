"""Updates that are not finite are left out; when they do not end, the run goes back, and at last it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.runs import OFF_POLICY, PPO, small
from rl4sys.experiments import Run, replay_update
from rl4sys.experiments.metrics import read_metrics
from rl4sys.learning import Diverged
from rl4sys.state import digest, split

from .spiky import NAME

SPIKES = {"environment__name": NAME, "environment__num_envs": 1}


def spiky(kind: Any, directory: Path, first: int, last: int, **changes: Any) -> Run:
    changes = {**SPIKES, "environment__kwargs": {"first": first, "last": last}, **changes}
    return Run.create(small(kind, directory, **changes))


def events(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.directory.path / "events.jsonl").read_text().splitlines()]


def test_an_update_that_is_not_finite_changes_neither_weights_nor_optimizer(tmp_path: Path) -> None:
    with spiky(PPO, tmp_path, 40, 41) as run:
        run.step()
        before = digest({**run.learner.algorithm.train_state.state(), "generators": {}})
        run.step()
        assert digest({**run.learner.algorithm.train_state.state(), "generators": {}}) == before
        run.step()
        assert (run.learner.skips.total, run.learner.updates) == (1, 2)


def test_a_run_with_a_bad_batch_continues_and_counts_it(tmp_path: Path) -> None:
    run = spiky(PPO, tmp_path, 40, 41)
    assert run.train().finished
    counts = [record["metrics"].get("train/skipped_updates") for record in read_metrics(run.directory.metrics)]
    assert counts[0] is None
    assert counts[-2] == 1.0
    assert np.isfinite(run.learner.store.newest.blob).all()


def test_a_failed_update_is_traced_kept_and_can_be_done_again(tmp_path: Path) -> None:
    run = spiky(PPO, tmp_path, 40, 41)
    run.debug()
    run.train()
    (skipped,) = [event for event in events(run) if event["event"] == "skipped"]
    assert skipped["cause"] == "The loss is inf."
    assert skipped["faults"][0].startswith("batch reward: 1 of ")
    assert "is 1.0000000150474662e+30" in skipped["faults"][0]
    replayed = replay_update(Path(skipped["batch"]))
    assert (replayed.error, replayed.faults) == (skipped["cause"], skipped["faults"])
    assert replayed.is_exact


def test_too_many_in_a_row_lead_back_to_a_good_checkpoint(tmp_path: Path) -> None:
    run = spiky(PPO, tmp_path, 65, 129, stability__skipped_in_row=2)
    assert run.train().finished
    (rollback,) = [event for event in events(run) if event["event"] == "rollback"]
    assert (rollback["to"], rollback["number"]) == (64, 1)
    last = list(read_metrics(run.directory.metrics))[-2]["metrics"]
    assert (last["train/rollbacks"], last["train/skipped_updates"]) == (1.0, 2.0)


def test_a_run_that_stays_broken_fails_with_its_cause_after_all_rollbacks(tmp_path: Path) -> None:
    run = spiky(PPO, tmp_path, 65, 10_000, stability__skipped_in_row=1, stability__max_rollbacks=1)
    with pytest.raises(Diverged, match=r"not finite .* went back to a good checkpoint 1 time\(s\) already"):
        run.train()
    assert len([event for event in events(run) if event["event"] == "rollback"]) == 1


def test_a_checkpoint_is_gone_back_to_only_once(tmp_path: Path) -> None:
    run = spiky(PPO, tmp_path, 65, 10_000, stability__skipped_in_row=1, training__checkpoint_frequency=10_000)
    with pytest.raises(Diverged, match="no good checkpoint to go back to that was not tried before"):
        run.train()
    assert [event["to"] for event in events(run) if event["event"] == "rollback"] == [0]


def test_a_poisoned_replay_neither_spoils_priorities_nor_weights(tmp_path: Path) -> None:
    sac = {**OFF_POLICY, "buffer": {"type": "prioritized", "size": 150}}
    run = spiky(sac, tmp_path, 70, 71, algorithm__name="sac", stability__skipped_in_row=100)
    run.train()
    assert run.learner.skips.total > 0
    assert np.isfinite(run.learner.store.newest.blob).all()
    _, arrays = split(run.learner.state())
    assert all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f")


def test_a_run_that_went_back_resumes_exactly(tmp_path: Path) -> None:
    changes = {"stability__skipped_in_row": 2}
    expected = spiky(PPO, tmp_path, 65, 129, **changes).train().fingerprint
    run = spiky(PPO, tmp_path, 65, 129, **changes)
    run.train(stop=lambda: run.steps >= 160)
    assert Run.resume(run.directory).train().fingerprint == expected
