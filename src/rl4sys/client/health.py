"""The health of an agent, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """The state of an agent at one point in time."""

    connected: bool
    """Whether the last call to the server succeeded."""
    learner: str | None
    """The learner that trains this policy; None before the first policy."""
    version: int | None
    """The version of the weights in use."""
    age: float | None
    """Seconds since that version arrived."""
    decisions: int
    """Actions chosen by the policy since the start."""
    fallback_decisions: int
    """Actions chosen by the fallback."""
    incumbent_decisions: int
    """Decisions that the system took by itself and reported with `took`."""
    open_episodes: int
    backlog: int
    """Segments waiting to be sent or acknowledged."""
    backlog_bytes: int
    acknowledged: int
    """Segments that the server has stored."""
    mode: str
    """`explore`, `exploit` or `observe`."""
    off: str
    """Why the policy does not decide: `control`, `kill_file`, `lease`, `no_policy` or `level`; empty if it does."""
    control: str
    """The latest order of an operator: `follow`, `frozen` or `off`, with its author and reason."""
    control_sequence: int
    """The sequence of that order; 0 if there was none."""
    record_share: float
    """The share of episodes that the server asked to record."""
    observed_decisions: int
    """Decisions of the fallback with which the policy was compared, in `mode: observe`."""
    agreed_decisions: int
    """How many of these the policy would have taken, too."""
    decision_time: tuple[int, ...]
    """A histogram of a sample of decisions: bucket i counts those of less than 2^i microseconds."""
    warning: str | None
    """What the server says is wrong with this client, such as another program with the same client_id."""
    drops: Mapping[str, int]
    """Segments that will never be sent, by reason; under `no_final_observation` and `schema_changed`, decisions."""
    late_rewards: int
    """Rewards for decisions that were sealed already."""
    damaged_patches: int
    """Patches that failed verification; the weights were then pulled in full."""
    lineage: str | None
    """The history of weights that the version belongs to; empty from servers that know no lineages."""
    lineage_problem: str | None
    """Why the versions of the server are not followed, and nothing is recorded; None if they are."""
    versions_not_taken: int
    """Versions that were not taken, because they were older than the present one or an operator froze it."""
    bad_inputs: int
    """Observations that could not be used: NaN, infinity, a missing array, a wrong shape, or a decision like that."""
    unanswered_decisions: int
    """With `decide: server`: decisions that the server did not answer in time, or for which it was not asked because it
    had not answered just before. The fallback took them."""
    defaulted_inputs: int
    """Observations in which a default stood for an array that was left out or for a feature that was NaN."""
    thinned_episodes: int
    """Episodes, or spans of long ones, that were not recorded because the learner cannot use all of them in time."""
    unrecorded_decisions: int
    """Actions that were not recorded."""
    runtime: str
    """What runs the policy: `numpy`, or the native runtime with its kernel set, such as `native-avx2`."""
    last_error: str | None
    stopped: str | None
    """Why nothing is sent or received at present: the server refuses this client, or a thread died; None otherwise."""
