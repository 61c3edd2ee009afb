"""The two batch shapes from which algorithms learn."""

from __future__ import annotations

from dataclasses import dataclass

from rl4sys.experience.segment import Array, Arrays, StreamKey


@dataclass(frozen=True, slots=True)
class Transitions:
    """Independent transitions, drawn from replay: [B, …].

    With windows of n steps `reward` is [B, n], zero after the end of the episode, and `next_observation` follows
    the last of the `span` steps.
    """

    observation: Arrays
    action: Array
    reward: Array
    discount: Array
    """[B]: 0 if the episode terminated within the window, else 1."""
    next_observation: Arrays
    span: Array
    """[B]: the number of steps from `observation` to `next_observation`."""
    extras: Arrays
    weight: Array
    """[B]: importance weights of prioritized draws; ones if draws are uniform."""
    ids: Array
    """[B]: identifies the rows in the buffer, for `annotate`."""

    def __len__(self) -> int:
        return len(self.reward)


@dataclass(frozen=True, slots=True)
class Sequences:
    """Experience in order: [B, L, …], one row of B per stream.

    Where an episode (or the data) ends, one more row holds only the final observation. There `acted` is false, so
    that no return can leak from one episode into another. It is also false for padding.
    """

    observation: Arrays
    action: Array
    reward: Array
    discount: Array
    """[B, L]: 0 where the action of this row terminated the episode, else 1."""
    acted: Array
    """[B, L] bool: whether an action was taken here and its result is known."""
    is_first: Array
    """[B, L] bool: whether an episode starts here."""
    age: Array
    """[B, L] int32: how many versions the acting policy is behind the newest one."""
    extras: Arrays
    carry: Arrays
    """[B, …]: policy memory before the first row of each stream."""
    streams: tuple[StreamKey, ...]

    @property
    def steps(self) -> int:
        """The number of actions in the batch."""
        return int(self.acted.sum())
