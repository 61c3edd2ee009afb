from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import DQN, OBSERVATION, PPO, SAC, action_of, synthetic_segment

from rl4sys.checkpoints import encode_state
from rl4sys.config import ConfigError
from rl4sys.experience import Array
from rl4sys.learning import Learner
from rl4sys.records import Record
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand, decode_record
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.workers.events import Commanded, Event, Published
from rl4sys.server.workers.fold import Fold
from rl4sys.server.workers.folded_commands import CommandRefused, check
from rl4sys.server.workers.learner_config import canonical, resolve
from rl4sys.state import StateMismatch, digest
from rl4sys.wire import SegmentFormat, encode_segment

Method = tuple[str, dict[str, Any]]
METHODS = pytest.mark.parametrize("method", [PPO, DQN, SAC], ids=lambda method: method[0])
NORMALIZED = (PPO[0], {**PPO[1], "normalize_obs": True})


def set_(**changes: Any) -> LearnerCommand:
    return LearnerCommand(CommandKind.SET, {name.replace("__", "."): value for name, value in changes.items()})


FREEZE, UNFREEZE = LearnerCommand(CommandKind.FREEZE), LearnerCommand(CommandKind.UNFREEZE)


class FoldedLog:
    """A learner's directory without a log: records are given to the fold one by one."""

    def __init__(self, directory: Path, method: Method) -> None:
        self.directory, self.method = directory, method
        directory.mkdir(parents=True, exist_ok=True)
        LearnerSetup("a", *method, OBSERVATION, action_of(method), 1_000).write(directory)
        self.records: list[Record] = []
        self.events: list[Event] = []
        self.open()

    def open(self) -> None:
        """Fold again from the newest checkpoint, as after a crash."""
        self.fold = Fold(self.directory, 1_000_000, self.events.append)
        for record in self.records[self.fold.position :]:
            self.fold.take(record)

    def segments(self, numbers: Sequence[int]) -> None:
        spec = self.fold.learner.algorithm.policies.explore
        version = self.fold.learner.store.latest
        for number in numbers:
            data = encode_segment(SegmentFormat.of(spec), synthetic_segment(spec, "a", number, version=version))
            self.take(StoredSegment("a", 1, number, 8, data))

    def take(self, entry: StoredSegment | LearnerCommand) -> None:
        self.records.append(Record(len(self.records), entry.encode()))
        self.fold.take(self.records[-1])

    @property
    def weights(self) -> Array:
        return self.fold.learner.store.newest.blob

    @property
    def version(self) -> int:
        return self.fold.learner.store.latest

    def commanded(self) -> Commanded:
        return [event for event in self.events if isinstance(event, Commanded)][-1]


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., FoldedLog]:
    return lambda method=PPO, name="a": FoldedLog(tmp_path / name, method)


def test_a_command_is_read_back_and_segments_of_old_logs_stay_readable() -> None:
    command = LearnerCommand(CommandKind.INSTALL, {"steps": 3}, b"\x00weights")
    assert decode_record(command.encode()) == command
    segment = StoredSegment("a", 1, 2, 3, b"bytes")
    assert decode_record(segment.encode()) == segment


def test_a_command_of_a_newer_version_is_refused_with_advice() -> None:
    newer = LearnerCommand(CommandKind.FREEZE).encode().replace(b"freeze", b"frieze")
    with pytest.raises(ValueError, match=r"the command 'frieze'.*Serve the data directory with the version"):
        decode_record(newer)


@METHODS
def test_a_changed_setting_applies_to_what_follows(log: Callable[..., FoldedLog], method: Method) -> None:
    changed, unchanged = log(method), log(method, "b")
    for each in (changed, unchanged):
        each.segments(range(10))
    np.testing.assert_array_equal(changed.weights, unchanged.weights)
    changed.take(set_(algorithm__lr=0.01))
    assert changed.commanded().problem == ""
    assert json.loads(changed.commanded().settings)["algorithm"]["lr"] == 0.01
    for each in (changed, unchanged):
        each.segments(range(10, 20))
    assert changed.version == unchanged.version
    assert not np.array_equal(changed.weights, unchanged.weights)


@METHODS
@pytest.mark.parametrize("saved_after", [4, 10, 11, 15])
def test_folding_again_over_a_change_gives_equal_bits(
    log: Callable[..., FoldedLog], method: Method, saved_after: int
) -> None:
    """Saved before the command, right after it, or later: the rest of the log is folded again."""
    folded = log(method)
    folded.segments(range(4))
    if saved_after == 4:
        folded.fold.save()
    folded.segments(range(4, 10))
    if saved_after == 10:
        folded.fold.save()
    folded.take(set_(algorithm__lr=0.01, algorithm__gamma=0.9))
    if saved_after == 11:
        folded.fold.save()
    folded.segments(range(10, 14))
    if saved_after == 15:
        folded.fold.save()
    folded.segments(range(14, 20))
    weights, state = folded.weights, digest(folded.fold.learner.state())
    folded.open()
    np.testing.assert_array_equal(folded.weights, weights)
    assert digest(folded.fold.learner.state()) == state
    assert folded.fold.ready().settings == folded.commanded().settings
    assert folded.fold.ready().config == canonical(resolve(*method))


def test_another_pace_of_learning_keeps_the_replayed_rows(log: Callable[..., FoldedLog]) -> None:
    folded = log(DQN)
    folded.segments(range(10))
    before = folded.fold.learner.buffer.rows(0, 80)  # type: ignore[attr-defined]  # a replay buffer
    folded.take(set_(algorithm__batch_size=16, algorithm__train_frequency=2))
    after = folded.fold.learner.buffer.rows(0, 80)  # type: ignore[attr-defined]  # as above
    assert {name: array.tolist() for name, array in before.items()} == {n: a.tolist() for n, a in after.items()}
    updates = folded.fold.learner.updates
    folded.segments([10])
    assert folded.fold.learner.updates == updates + 4


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"network.actor.hidden_dims": [4]}, "network: it cannot change.*--refold"),
        ({"buffer.size": 64}, "buffer: it cannot change"),
        ({"seed": 6}, "seed: it cannot change"),
        ({"algorithm.name": "dqn"}, "algorithm.name: it cannot change"),
        ({"algorithm.lrr": 1.0}, "algorithm.lrr.*did you mean"),
        ({"algorithm.lr": -1.0}, "algorithm.lr"),
        ({"nothing.lr": 1.0}, "there is no group of settings 'nothing'"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_and_changes_nothing(
    log: Callable[..., FoldedLog], changes: dict[str, Any], problem: str
) -> None:
    folded = log()
    folded.segments(range(4))
    state = digest(folded.fold.learner.state())
    with pytest.raises((CommandRefused, ConfigError), match=problem):
        check(folded.directory, canonical(resolve(*PPO)), LearnerCommand(CommandKind.SET, changes))
    folded.take(LearnerCommand(CommandKind.SET, changes))
    assert folded.commanded().problem
    assert digest(folded.fold.learner.state()) == state


def test_a_frozen_learner_counts_and_does_not_learn(log: Callable[..., FoldedLog]) -> None:
    folded, other = log(), log(name="b")
    folded.segments(range(4))
    folded.take(FREEZE)
    version = folded.version
    folded.segments(range(4, 12))
    assert folded.commanded().is_frozen
    assert (folded.version, folded.fold.progress().unused) == (version, {"frozen": 64})
    folded.fold.save()
    folded.open()
    assert folded.fold.ready().is_frozen
    folded.take(UNFREEZE)
    folded.segments(range(12, 16))
    for numbers in (range(4), range(12, 16)):
        other.segments(numbers)
    np.testing.assert_array_equal(folded.weights, other.weights)
    assert folded.fold.progress().unused == {"frozen": 64}


def installed(learner: Learner, steps: int = 500) -> LearnerCommand:
    return LearnerCommand(CommandKind.INSTALL, {"steps": steps}, learner.store.newest.blob.astype("<f4").tobytes())


@pytest.mark.parametrize("method", [PPO, DQN, SAC, NORMALIZED], ids=["PPO", "DQN", "SAC", "normalized"])
def test_an_installed_policy_is_the_next_version(log: Callable[..., FoldedLog], method: Method) -> None:
    folded, source = log(method), log(method, "b")
    source.segments(range(20))
    folded.segments(range(8))
    before = folded.version
    folded.take(installed(source.fold.learner))
    assert folded.commanded().problem == ""
    assert folded.version == before + 1
    published = [event for event in folded.events if isinstance(event, Published)][-1]
    assert published.blob == folded.weights.tobytes()
    # Exploration continues at the learner's own pace; everything else is the policy's.
    program = source.fold.learner.algorithm.policies.explore.program
    learned = [tensor.name for tensor in program.tensors if "epsilon" not in tensor.name]
    views = [each.fold.learner.algorithm.train_state.optimizers for each in (folded, source)]
    mine, theirs = (next(iter(optimizers.values())).parameters.views for optimizers in views)
    for name in learned:
        np.testing.assert_allclose(mine[name].detach().numpy(), theirs[name].detach().numpy(), rtol=1e-5)
    weights = folded.weights
    folded.open()
    np.testing.assert_array_equal(folded.weights, weights)
    folded.segments(range(8, 16))
    assert np.isfinite(folded.weights).all()


def test_an_installed_policy_takes_its_target_network_along(log: Callable[..., FoldedLog]) -> None:
    folded, source = log(DQN), log(DQN, "b")
    source.segments(range(20))
    folded.take(installed(source.fold.learner))
    parameters = dict(folded.fold.learner.algorithm.train_state.parameters())
    (name, acting), *_ = parameters.items()
    # The last number is ε, which the target does not use.
    np.testing.assert_array_equal(acting.flat[:-1].numpy(), parameters[f"{name}.target"].flat[:-1].numpy())


def test_a_policy_of_another_size_is_refused(log: Callable[..., FoldedLog]) -> None:
    folded = log()
    command = LearnerCommand(CommandKind.INSTALL, {"steps": 1}, b"\x00" * 12)
    with pytest.raises(CommandRefused, match="has 3 weights"):
        check(folded.directory, canonical(resolve(*PPO)), command)
    folded.take(command)
    assert "has 3 weights" in folded.commanded().problem
    assert folded.version == 0


@METHODS
def test_a_warm_start_continues_from_the_whole_state(log: Callable[..., FoldedLog], method: Method) -> None:
    folded, source = log(method), log(method, "b")
    source.segments(range(20))
    state = source.fold.learner.state()
    wanted = {name: state[name] for name in ("algorithm", "observations", "rewards")}
    command = LearnerCommand(CommandKind.WARM_START, {}, encode_state(wanted))
    assert check(folded.directory, canonical(resolve(*method)), command) == canonical(resolve(*method))
    folded.take(command)
    assert folded.version == 1
    taken = folded.fold.learner.algorithm.train_state.state()
    for name, optimizer in wanted["algorithm"]["optimizers"].items():
        np.testing.assert_array_equal(taken["optimizers"][name]["second_moment"], optimizer["second_moment"])
    assert digest(taken["targets"]) == digest(wanted["algorithm"]["targets"])


def test_a_state_of_another_shape_is_refused_and_changes_nothing(log: Callable[..., FoldedLog]) -> None:
    folded, source = log(), log(DQN, "b")
    state = source.fold.learner.state()
    wanted = {name: state[name] for name in ("algorithm", "observations", "rewards")}
    command = LearnerCommand(CommandKind.WARM_START, {}, encode_state(wanted))
    with pytest.raises(StateMismatch):
        check(folded.directory, canonical(resolve(*PPO)), command)
    before = digest(folded.fold.learner.state())
    folded.take(command)
    assert folded.commanded().problem
    assert digest(folded.fold.learner.state()) == before


@pytest.mark.parametrize("blob", [b"", b"{}", b'{"algorithm": 3}\n', b"\xff" * 100, b"[1]\n\x00\x00"])
def test_bytes_that_are_no_state_are_refused(log: Callable[..., FoldedLog], blob: bytes) -> None:
    folded = log()
    with pytest.raises(StateMismatch):
        check(folded.directory, canonical(resolve(*PPO)), LearnerCommand(CommandKind.WARM_START, {}, blob))


def test_a_learner_without_commands_saves_what_earlier_versions_saved(log: Callable[..., FoldedLog]) -> None:
    folded = log()
    folded.segments(range(4))
    folded.fold.save()
    loaded = folded.fold._checkpoints.load()
    assert sorted(loaded.state) == ["episodes", "learner", "position", "unknown_version"]
