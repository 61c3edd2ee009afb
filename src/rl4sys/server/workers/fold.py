"""A learner as a fold over its log: equal records in equal order give equal weights, also after crashes."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rl4sys.checkpoints import Checkpoints, NoCheckpoint, ReplayRows
from rl4sys.engine.earlier_states import is_earlier
from rl4sys.experience import DecidedBy, Segment, SegmentPack
from rl4sys.failpoints import failpoint
from rl4sys.learning import choose_device
from rl4sys.records import Record
from rl4sys.seeding import Seeds
from rl4sys.server.learners.held_data import KEPT_CHECKPOINTS, require_whole
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand, decode_record
from rl4sys.server.learners.learner_setup import LearnerSetup, is_learner
from rl4sys.server.workers.checkpoint_timer import CheckpointTimer
from rl4sys.server.workers.curves import Curves
from rl4sys.server.workers.episode_returns import EpisodeReturns
from rl4sys.server.workers.events import Commanded, Event, LearnerProgress, Published, Ready, Saved
from rl4sys.server.workers.folded_commands import (
    REFUSALS,
    changed_config,
    install,
    rebuilt,
    require_compatible,
    warm_start,
)
from rl4sys.server.workers.learner_config import build_learner, canonical, resolve
from rl4sys.state import State, require
from rl4sys.wire import SegmentFormat, decode_checked_pack, decode_checked_segment

_log = logging.getLogger(__name__)

_ADVICE = "An older one is tried, then the log from its beginning. To use this one, restore it from a backup."
_CURVE_STEPS = 1_000
"""Steps between two points of a curve."""
_UNKNOWN_VERSION, _FROZEN = "unknown_version", "frozen"


class Fold:
    """Learns from records one by one. Only their order affects the result, not how they are batched."""

    def __init__(
        self,
        directory: Path,
        committed: int,
        send: Callable[[Event], None],
        wall_clock: Callable[[], float] = time.time,
        before_save: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the learner, or restore it from the newest good checkpoint within the log.

        `before_save` syncs the log: it must not end before a checkpoint, or `DataHeld` is raised at the next start.
        """
        require_whole(directory, committed)
        self._directory = directory
        self._setup = LearnerSetup.read(directory)
        self._original = self._config = resolve(self._setup.algorithm, self._setup.parameters)
        self._device = choose_device(self._config.device, allow_fallback=True)
        self.learner = build_learner(
            self._config, self._setup, self._device, directory / "scratch", is_new=not committed
        )
        self.position = 0
        """The number of the next record."""
        self._send, self._wall_clock, self._before_save = send, wall_clock, before_save
        self._form = SegmentFormat.of(self.learner.algorithm.policies.explore)
        self._episodes = EpisodeReturns()
        self._unknown_version = 0
        self._is_frozen = False
        self._unused: Counter[str] = Counter()
        """Steps that were not learned from, because of an operator or of who decided."""
        self._metrics: dict[str, float] = {}
        self._checkpoints = Checkpoints(directory / "checkpoints", KEPT_CHECKPOINTS, _ADVICE)
        self._saved_at: int | None = None
        self._checkpoint_age: float | None = None
        self._restore(committed)
        self._curves = Curves(directory / "tensorboard", self.learner.steps)

    def ready(self) -> Ready:
        """The first event for the host."""
        newest = self.learner.store.newest
        return Ready(
            policy=self.learner.algorithm.policies.explore.to_json(),
            exploit=self.learner.algorithm.policies.exploit.to_json(),
            config=canonical(self._original),
            settings=canonical(self._config),
            is_frozen=self._is_frozen,
            noise_seed=Seeds(self._config.seed).integer("decisions"),
            version=newest.number,
            position=self.position,
            device=str(self._device),
            checkpoint_age=self._checkpoint_age,
            progress=self.progress(),
            blob=newest.blob.tobytes(),
        )

    @property
    def threads(self) -> int:
        """Number of torch threads."""
        return self._config.threads

    def take(self, record: Record) -> None:
        """Learn from one record, publish a new version if there is one, and save when it is due."""
        stored = decode_record(record.payload)
        if isinstance(stored, LearnerCommand):
            self._obey(stored, record.number + 1)
            return
        # The serving process accepted it, and the log has checked its CRC.
        before = self.learner.steps
        if stored.segments == 1:
            self._take_segment(decode_checked_segment(self._form, stored.segment, client=stored.client))
        else:
            self._take_pack(
                decode_checked_pack(self._form, stored.segment, client=stored.client, count=stored.segments)
            )
        self.position = record.number + 1
        failpoint("after offset")
        if _crossed(before, self.learner.steps, _CURVE_STEPS):
            self._curves.log(self.learner.steps, self._curve_points())
        if _crossed(before, self.learner.steps, self._config.checkpoint_frequency):
            self._save_if_possible()

    def _take_segment(self, segment: Segment) -> None:
        if (reason := self._unused_because(segment)) is None:
            self._learn(segment)
            return
        if reason == _UNKNOWN_VERSION:
            self._unknown_version += segment.steps
        else:
            self._unused[reason] += segment.steps
        if reason == _FROZEN:
            self._note_episode(segment)

    def _take_pack(self, pack: SegmentPack) -> None:
        """Do what its segments would one by one, but take in at once those with which nothing is due."""
        while len(pack):
            taken = 0
            if self._unused_because(pack) is None:
                failpoint("before learn")
                taken = self.learner.absorb(pack)
                failpoint("after learn")
            if taken and pack.decided_by is DecidedBy.POLICY:
                self._episodes.note_pack(pack.part(0, taken))
            if taken < len(pack):
                self._take_segment(pack.segment(taken))
                taken += 1
            pack = pack.part(taken, len(pack))

    def _unused_because(self, segment: Segment | SegmentPack) -> str | None:
        """Why nothing is learned from a segment; None if something is."""
        if segment.policy_version > self.learner.store.latest:
            # The host accepts it while unfolded records may still produce versions.
            return _UNKNOWN_VERSION
        if self._is_frozen:
            return _FROZEN
        if segment.elapsed is None and self._config.algorithm.horizon_seconds is not None:
            # The serving process refuses such segments; these came before an operator set the horizon.
            return "no_time"
        if segment.decided_by is DecidedBy.FALLBACK and self._replay() is None:
            # Gradients of a policy need decisions of that policy.
            return "fallback"
        return None

    def progress(self) -> LearnerProgress:
        """The present progress."""
        skipped = self.learner.skips.total
        unused = {
            "too_old": self._too_old,
            "unknown_version": self._unknown_version,
            "incumbent": self.learner.incumbent.unused,
            **self._unused,
        }
        return LearnerProgress(
            position=self.position,
            steps=self._learned_steps,
            updates=self.learner.updates,
            episodes=self._episodes.count,
            mean_return=self._episodes.mean_return,
            unused={reason: steps for reason, steps in unused.items() if steps},
            metrics=self._metrics | ({"skipped_updates": float(skipped)} if skipped else {}),
            outcomes=self._episodes.outcomes(),
        )

    @property
    def _too_old(self) -> int:
        return self.learner.buffer.counts.get("too_old", 0)

    @property
    def _learned_steps(self) -> int:
        return self.learner.steps - self._too_old - self.learner.incumbent.unused

    def save(self) -> None:
        """Write a checkpoint, unless there is one of this position."""
        if self._saved_at == self.position:
            return
        state = {
            "position": self.position,
            "learner": self.learner.state(),
            "episodes": self._episodes.state(),
            "unknown_version": self._unknown_version,
        }
        if self._config != self._original or self._is_frozen or self._unused:
            settings = canonical(self._config)
            state["commands"] = {"settings": settings, "is_frozen": self._is_frozen, "unused": dict(self._unused)}
        failpoint("before save")
        if not is_learner(self._directory):
            raise FileNotFoundError(f"{self._directory} was removed while the learner was running")
        self._before_save()
        self._checkpoints.save(self.position, state, self._replay())
        failpoint("after save")
        self._saved_at = self.position
        self._send(Saved(self.position, self._checkpoints.steps()[0]))

    def save_if_due(self, timer: CheckpointTimer, now: float) -> None:
        """Write a checkpoint if there has been none for long enough."""
        if timer.is_due(now, has_unsaved=self.position > (self._saved_at or 0)):
            self._save_if_possible()

    def make_room(self) -> None:
        """Save a checkpoint, and tell the host that only the newest one is needed, if its bytes are sound."""
        self._save_if_possible()
        if self._saved_at is not None and self._checkpoints.fault(self._saved_at) is None:
            self._send(Saved(self._saved_at, self._saved_at))

    def close(self) -> None:
        """Close the curves."""
        self._curves.close()

    def _save_if_possible(self) -> None:
        try:
            self.save()
        except OSError as error:
            # The log has everything a checkpoint would have: without one, only the next start is slower.
            _log.warning("Learner %s could not be saved, and continues: %s", self._setup.learner, error)

    def _obey(self, command: LearnerCommand, position: int) -> None:
        """Carry out a command. One that does not fit is refused every time that the log is folded."""
        version, problem = self.learner.store.latest, ""
        failpoint("before command")
        try:
            self._carry_out(command)
        except REFUSALS as error:
            problem = str(error)
            _log.warning("Learner %s cannot %s: %s", self._setup.learner, command.kind, error)
        self.position = position
        failpoint("after command")
        self._send_newer_than(version)
        newest = self.learner.store.latest
        self._send(Commanded(position, problem, canonical(self._config), self._is_frozen, newest))

    def _carry_out(self, command: LearnerCommand) -> None:
        match command.kind:
            case CommandKind.SET:
                after = changed_config(self._config, command.values)
                require_compatible(self._setup, self._config, after)
                scratch = self._directory / "scratch"
                self.learner = rebuilt(self.learner, self._setup, self._config, after, scratch)
                self._config = after
            case CommandKind.FREEZE | CommandKind.UNFREEZE:
                self._is_frozen = command.kind is CommandKind.FREEZE
            case CommandKind.INSTALL:
                install(self.learner, command)
            case CommandKind.WARM_START:
                warm_start(self.learner, self._setup, self._config, command)

    def _learn(self, segment: Segment) -> None:
        version = self.learner.store.latest
        failpoint("before learn")
        metrics = self.learner.learn([segment])
        failpoint("after learn")
        self._note_episode(segment)
        if metrics:
            self._metrics = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        self._send_newer_than(version)

    def _note_episode(self, segment: Segment) -> None:
        """Add a segment to the returns of the policy, unless something else decided."""
        if segment.decided_by is DecidedBy.POLICY:
            self._episodes.note(segment)

    def _send_newer_than(self, version: int) -> None:
        newest = self.learner.store.newest
        if newest.number > version:
            self._send(Published(newest.number, newest.blob.tobytes(), self._learned_steps))
            failpoint("after version")

    def _restore(self, committed: int) -> None:
        self._checkpoints.tidy()
        # A newer one is damaged: otherwise the log would be incomplete.
        for step in [step for step in self._checkpoints.steps()[::-1] if step <= committed]:
            try:
                loaded = self._checkpoints.load(step)
            except NoCheckpoint as error:
                _log.warning("Learner %s skips a damaged checkpoint: %s", self._setup.learner, error)
                continue
            # Only learners that an operator has changed have the last one.
            state = {"commands": None, **loaded.state}
            require(state, "position", "learner", "episodes", "unknown_version", "commands")
            failpoint("before restore")
            if state["commands"] is not None:
                self._restore_commands(state["commands"])
            if is_earlier(loaded.state["learner"]["algorithm"]):
                _log.warning(
                    "Learner %s was saved by a version before 0.2: it continues, but not bit for bit.",
                    self._setup.learner,
                )
            self.learner.restore(loaded.state["learner"])
            if (replay := self._replay()) is not None:
                for first, rows in self._checkpoints.replay_rows(loaded):
                    replay.load_rows(first, rows)
            self._episodes.restore(loaded.state["episodes"])
            self._unknown_version = int(loaded.state["unknown_version"])
            self.position = self._saved_at = int(loaded.state["position"])
            self._checkpoint_age = max(0.0, self._wall_clock() - self._checkpoints.written(step))
            failpoint("after restore")
            return

    def _restore_commands(self, state: State) -> None:
        """Continue with the settings that commands had given the learner."""
        require(state, "settings", "is_frozen", "unused")
        self._is_frozen, self._unused = bool(state["is_frozen"]), Counter(state["unused"])
        settings = resolve(self._setup.algorithm, json.loads(state["settings"]))
        if settings != self._config:
            self._config = settings
            self._device = choose_device(settings.device, allow_fallback=True)
            scratch = self._directory / "scratch"
            self.learner = build_learner(settings, self._setup, self._device, scratch, is_new=False)

    def _replay(self) -> ReplayRows | None:
        buffer = self.learner.buffer
        return buffer if isinstance(buffer, ReplayRows) else None

    def _curve_points(self) -> dict[str, float]:
        points = {f"train/{name}": value for name, value in self._metrics.items()}
        points |= {f"buffer/{name}": float(count) for name, count in self.learner.buffer.counts.items()}
        if self._episodes.mean_return is not None:
            points["rollout/return"] = self._episodes.mean_return
        return points | {"episodes": float(self._episodes.count), "version": float(self.learner.store.latest)}


def _crossed(before: int, after: int, frequency: int) -> bool:
    """Whether a multiple of the frequency lies in (before, after]."""
    return after // frequency > before // frequency
