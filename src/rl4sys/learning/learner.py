"""The one learning path: segments in, versions out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from rl4sys.engine import Algorithm, Imitator, Progress, UpdateResult, result_of, run_update
from rl4sys.experience import Array, DecidedBy, Segment, SegmentPack
from rl4sys.learning.incumbent_decisions import IncumbentDecisions
from rl4sys.learning.normalizers import ObservationStatistics, RewardScale
from rl4sys.learning.reward_centering import RewardCentering
from rl4sys.learning.skipped_updates import MAX_SKIPPED_IN_ROW, Diverged, SkippedUpdates
from rl4sys.learning.time_discount import TimeDiscount
from rl4sys.learning.weight_transfer import KnownWeights, Transfer, TransferMismatch, transfer
from rl4sys.networks import NonFiniteUpdate, is_out_of_memory
from rl4sys.state import State, require
from rl4sys.weights import ModelStore

Updating: TypeAlias = Callable[[Any], UpdateResult]
"""Learns from one batch."""


class OutOfMemory(MemoryError):
    """An update needs more memory than is available and cannot be split further."""

    def __init__(self, update: int, steps: int, cause: BaseException) -> None:
        first_line = str(cause).partition("\n")[0] or type(cause).__name__
        super().__init__(
            f"There is not enough memory for update {update} at step {steps:,}, and its batch cannot be split "
            f"further ({first_line}). Lower algorithm.batch_size or algorithm.minibatch_size, make the networks "
            f"smaller, or free some memory; earlier checkpoints are intact."
        )


class Buffer(Protocol):
    """Holds experience and decides when there is something to learn from."""

    def add(self, segment: Segment, age: int) -> None:
        """Take in a segment whose policy is `age` versions old."""

    def due(self) -> Iterator[Any]:
        """The batches to learn from now."""

    def annotate(self, ids: Array, feedback: Mapping[str, Array]) -> None:
        """Record what the algorithm reports about drawn rows, such as priorities."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Steps taken in, and steps refused by reason."""

    def state(self) -> State:
        """Everything that later batches depend on."""

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""


@runtime_checkable
class PackBuffer(Protocol):
    """A buffer that takes in many segments at once."""

    def absorb(self, pack: SegmentPack, age: int) -> int:
        """Take in the first segments of a pack as `add` would, as many as make nothing due; returns how many."""


class Learner:
    """Feeds segments to an algorithm at the buffer's pace and publishes the weights that come of it.

    Local training, the training server and recorded data all call `learn`; only they know where segments come from.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        buffer: Buffer,
        *,
        total_steps: int | None = None,
        observations: ObservationStatistics | None = None,
        rewards: RewardScale | None = None,
        incumbent: IncumbentDecisions | None = None,
        centering: RewardCentering | None = None,
        time: TimeDiscount | None = None,
        max_skipped_in_row: int = MAX_SKIPPED_IN_ROW,
    ) -> None:
        """Learning counts as diverged when `max_skipped_in_row` updates in a row are not finite."""
        self.algorithm = algorithm
        self.buffer = buffer
        self.steps = 0
        self.updates = 0
        self.progress = Progress()
        """How far the run had come when the schedules were last applied."""
        self.skips = SkippedUpdates(max_skipped_in_row)
        self.on_skip: Callable[[Any, NonFiniteUpdate], None] = lambda batch, error: None
        """Called with the batch of an update that is skipped, and the reason."""
        self.on_roll_back: Callable[[State], None] = lambda state: None
        """Called with the state that `roll_back` went back to."""
        self._updating: Updating = lambda batch: run_update(algorithm, batch)
        self._metrics: dict[str, float] = {}
        self._total_steps = total_steps
        self._observations = observations
        self._rewards = rewards
        self._centering, self._time = centering, time
        self._advance()
        self.incumbent = incumbent or IncumbentDecisions()
        """What became of decisions that the system took by itself."""
        self.store = ModelStore(algorithm.train_state.policy_weights())

    def learn(self, segments: Sequence[Segment]) -> Mapping[str, float]:
        """Add segments, learn what is due, publish. Returns the metrics of the last update, if there was one."""
        if self._time is not None:
            segments = [self._time.applied(segment) for segment in segments]
        for segment in segments:
            if segment.decided_by is not DecidedBy.INCUMBENT or self.incumbent.add(segment):
                self.buffer.add(segment, self.store.latest - segment.policy_version)
            self.steps += segment.steps
        if self._observations is not None:
            self._observations.observe(segments)
        if self._rewards is not None:
            self._rewards.observe(segments)
        if self._centering is not None:
            self._centering.observe(segments)
        oldest = max((self.store.latest - segment.policy_version for segment in segments), default=0)
        metrics: Mapping[str, float] = {}
        before = self.updates
        for batch, updating in self._due():
            seen = batch if self._centering is None else self._centering.centered(batch)
            seen = seen if self._rewards is None else self._rewards.scaled(seen)
            try:
                found, feedback = updating(seen)
            except NonFiniteUpdate as error:
                self.on_skip(seen, error)
                self.skips.note(error, self.updates + 1, self.steps)
                continue
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                raise OutOfMemory(self.updates + 1, self.steps, error) from error
            self.skips.in_row = 0
            if feedback:
                self.buffer.annotate(batch.ids, feedback)
            # What an update does not report, such as the loss of a delayed actor, keeps its last value.
            self._metrics |= found
            metrics = dict(self._metrics)
            self.updates += 1
        # Only now: for schedules a batch is the part of the run that starts where the last one ended.
        self._advance()
        if self.updates > before:
            # Only now: the batch was learned from with the statistics that its own policy had.
            self._standardize()
            weights = self.algorithm.train_state.policy_weights()
            if not np.isfinite(weights).all():
                raise Diverged(
                    f"The weights are no longer finite after update {self.updates} at step {self.steps:,}. "
                    f"Lower algorithm.lr or normalise rewards and observations; earlier checkpoints are intact."
                )
            self.store.publish(weights)
            metrics = {**metrics, "age": float(oldest)}
        return metrics

    def absorb(self, pack: SegmentPack) -> int:
        """Take in the first segments of a pack as `learn` would one by one, as many as make nothing due.

        Returns how many. Where each segment has to be looked at, it takes in none: pass them to `learn`.
        """
        statistics = (self._observations, self._rewards, self._centering, self._time)
        is_plain = pack.decided_by is not DecidedBy.INCUMBENT and all(each is None for each in statistics)
        if not is_plain or not isinstance(self.buffer, PackBuffer):
            return 0
        taken = self.buffer.absorb(pack, self.store.latest - pack.policy_version)
        if taken:
            self.steps += int(pack.ends[taken - 1])
            self._advance()
        return taken

    def _due(self) -> Iterator[tuple[Any, Updating]]:
        """The batches to learn from now, and how: the incumbent is imitated before anything else."""
        for decisions in self.incumbent.due():
            # No policy took them, so they are fitted with the statistics of the policy that comes of it.
            self._standardize()
            yield decisions, self._imitating
        for batch in self.buffer.due():
            yield batch, self._updating

    def _imitating(self, batch: Any) -> UpdateResult:
        plan, algorithm = self.incumbent.plan, self.algorithm
        assert plan is not None
        assert isinstance(algorithm, Imitator)
        with algorithm.train_state.splitter.ranks.updating():
            return result_of(algorithm.imitate(batch, plan))

    def _standardize(self) -> None:
        """Write the statistics of observations into all networks."""
        if self._observations is not None:
            for name, (mean, scale) in self._observations.standardization().items():
                self.algorithm.train_state.standardize(name, mean, scale)

    def _advance(self) -> None:
        self.progress = Progress(self.steps, self._total_steps)
        self.algorithm.train_state.advance(self.progress)

    def watch(self, around: Callable[[Updating], Updating]) -> None:
        """Wrap every update: `around` gets the present way to do one and returns the new way."""
        self._updating = around(self._updating)

    def roll_back(self, state: State) -> None:
        """Take weights, optimizers and statistics from an earlier state; steps, experience and versions continue.

        A full rollback would only repeat the failure, since everything that follows is deterministic.
        """
        self.algorithm.train_state.restore(state["algorithm"])
        self._advance()
        if self._observations is not None:
            self._observations.restore(state["observations"])
        if self._rewards is not None:
            self._rewards.restore(state["rewards"])
        self.skips.in_row = 0
        self.store.publish(self.algorithm.train_state.policy_weights())
        self.on_roll_back(state)

    def warm_start(self, state: State) -> None:
        """Continue from the weights, optimizers and statistics of another learner; steps and experience stay.

        Statistics that only one of the two has are left out. Publishes a version.
        """
        self.algorithm.train_state.restore(state["algorithm"])
        self._advance()
        if self._observations is not None and state["observations"] is not None:
            self._observations.restore(state["observations"])
        if self._rewards is not None and state["rewards"] is not None:
            self._rewards.restore(state["rewards"])
        self.skips.in_row = 0
        self.store.publish(self.algorithm.train_state.policy_weights())

    def start_from(self, known: KnownWeights, parts: Sequence[str] = (), *, normalisers: bool = False) -> Transfer:
        """Begin with weights of another learner or policy, and its statistics if asked for. Publishes a version."""
        state = self.algorithm.train_state
        if normalisers:
            if self._observations is None and self._rewards is None:
                raise TransferMismatch(
                    "There are no normalisers to take over into: set environment.normalize_obs=true as there."
                )
            if self._observations is not None:
                self._observations.take_over(known.observations, known.tensors, known.steps)
                for name, (mean, scale) in self._observations.standardization().items():
                    state.standardize(name, mean, scale)
            if self._rewards is not None and known.rewards is not None:
                self._rewards.restore({"moments": known.rewards["moments"], "returns": []})
        made = transfer(state, known, parts)
        self._advance()
        self.store.publish(state.policy_weights())
        return made

    def install(self, weights: Array, steps: int) -> None:
        """Act with the weights of a policy that was trained for `steps` steps. Publishes a version.

        Critics, other networks and experience stay. The statistics of observations are those of the policy.
        """
        state = self.algorithm.train_state
        state.install(weights)
        if self._observations is not None:
            self._observations.install(state.standardization(), steps)
            self._standardize()
        self._advance()
        self.skips.in_row = 0
        self.store.publish(state.policy_weights())

    def state(self) -> State:
        """Everything that later versions depend on, but for the rows of a replay buffer."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "skips": self.skips.state(),
            "algorithm": self.algorithm.train_state.state(),
            "metrics": dict(self._metrics),
            "buffer": self.buffer.state(),
            "store": self.store.state(),
            "observations": self._observations.state() if self._observations is not None else None,
            "rewards": self._rewards.state() if self._rewards is not None else None,
        } | self._optional_state()

    def _optional_state(self) -> dict[str, Any]:
        """What only some learners have: decisions of an incumbent, and the mean of rewards."""
        incumbent = self.incumbent.state()
        centering = {} if self._centering is None else {"centering": self._centering.state()}
        return centering | ({"incumbent": incumbent} if incumbent else {})

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        # Earlier versions saved none of them.
        state = {"skips": SkippedUpdates().state(), "metrics": {}, "incumbent": {}, "centering": None, **state}
        names = "steps", "updates", "skips", "algorithm", "metrics", "buffer", "store", "observations", "rewards"
        require(state, *names, "incumbent", "centering")
        self.steps, self.updates = int(state["steps"]), int(state["updates"])
        self.skips.restore(state["skips"])
        self.algorithm.train_state.restore(state["algorithm"])
        self._metrics = dict(state["metrics"])
        self._advance()
        self.buffer.restore(state["buffer"])
        self.store.restore(state["store"])
        self.incumbent.restore(state["incumbent"])
        if self._centering is not None and state["centering"] is not None:
            self._centering.restore(state["centering"])
        if self._observations is not None:
            self._observations.restore(state["observations"])
        if self._rewards is not None:
            self._rewards.restore(state["rewards"])
