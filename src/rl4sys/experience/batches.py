"""The two shapes in which experience reaches an algorithm."""

from __future__ import annotations

from dataclasses import dataclass

from rl4sys.experience.segment import Array, Arrays, StreamKey


@dataclass(frozen=True, slots=True)
class Transitions:
    """Independent moments, drawn from replay: [B, …].

    With windows of n steps `reward` is [B, n], zero after the end of the episode, and `next_observation` is
    what followed the last of the `span` steps that exist.
    """

    observation: Arrays
    action: Array
    reward: Array
    discount: Array
    """[B]: 0 when the episode terminated within the window, else 1."""
    next_observation: Arrays
    span: Array
    """[B]: how many steps lie between `observation` and `next_observation`."""
    extras: Arrays
    weight: Array
    """[B]: importance weight of a draw that was not uniform; ones otherwise."""
    ids: Array
    """[B]: where the rows came from, for `annotate`."""

    def __len__(self) -> int:
        return len(self.reward)


@dataclass(frozen=True, slots=True)
class Sequences:
    """Experience in order: [B, L, …], one row of B per stream.

    Where an episode (or the data) ends, one more row holds only the observation that followed: there `acted`
    is false, and so no return can leak from one episode into another. Padding is not acted either.
    """

    observation: Arrays
    action: Array
    reward: Array
    discount: Array
    """[B, L]: 0 where the action of this row terminated the episode, else 1."""
    acted: Array
    """[B, L] bool: whether an action was taken here and its outcome is known."""
    is_first: Array
    """[B, L] bool: whether an episode starts here."""
    age: Array
    """[B, L] int32: how many versions lie between the policy that acted and the newest one."""
    extras: Arrays
    carry: Arrays
    """[B, …]: policy memory before the first row of each stream."""
    streams: tuple[StreamKey, ...]

    @property
    def steps(self) -> int:
        """The number of actions in the batch."""
        return int(self.acted.sum())
