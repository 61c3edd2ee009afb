"""The collective calls of ranks, by torch.distributed: gloo for the CPU, NCCL for GPUs.

The only module that imports torch.distributed.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]  # as its documentation says

from rl4sys.experience import Array
from rl4sys.experiments.ranks.rank_place import RankPlace, RanksMisconfigured

_JOIN = datetime.timedelta(seconds=300)
"""How long ranks wait for each other at the start."""
_WAIT = datetime.timedelta(days=7)
"""How long a rank waits in a collective call: others may evaluate or save meanwhile. A rank that dies ends the wait."""
_HEADER = 8
"""Bytes of a length."""
_SHORT = 1 << 12
"""Bytes that a message from rank 0 has in its first part."""


class RankLost(RuntimeError):
    """Another rank ended, so this one cannot continue."""


class RankGroup:
    """All ranks of a run, seen from one of them."""

    def __init__(self, place: RankPlace) -> None:
        """Meet the others; `join` also finds out who they are."""
        self.place, self.rank, self.ranks = place, place.rank, place.ranks
        self.hosts: list[str] = []
        """The machine of each rank."""
        self._room: dict[str, int] = {}

    @classmethod
    def join(cls, place: RankPlace, announce: Callable[[int], None] = lambda port: None) -> RankGroup:
        """Wait until all ranks are there. Rank 0 calls `announce` with its port before that."""
        group = cls(place)
        if place.host in ("127.0.0.1", "localhost"):
            # Otherwise gloo takes the address of the host's name, which need not exist.
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        has_gpu = torch.cuda.is_available()
        if has_gpu:
            torch.cuda.set_device(place.local_rank % torch.cuda.device_count())
        store = _meeting_point(place)
        announce(store.port)
        with _others_may_be_lost(place):
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if has_gpu else "gloo",
                store=PrefixStore(f"rl4sys/{place.attempt}", store),
                rank=place.rank,
                world_size=place.ranks,
                timeout=_WAIT,
            )
        group.hosts = [host.decode() for host in group.gather_bytes(platform.node().encode(), "hosts")]
        return group

    @staticmethod
    def backend(device: torch.device) -> str:
        """What carries the tensors of a device."""
        return "nccl" if device.type == "cuda" else "gloo"

    def gather(self, mine: torch.Tensor, everyone: torch.Tensor) -> None:
        """Fill `everyone` [ranks, n] with the tensors [n] of all ranks, in their order."""
        with _others_may_be_lost(self.place):
            dist.all_gather(list(everyone), mine)

    def gather_bytes(self, mine: bytes, kind: str) -> list[bytes]:
        """The bytes of all ranks, in their order. Once the usual length of a kind is known, it is one call."""
        room = self._room.setdefault(kind, 0)
        message = np.zeros(_HEADER + room, np.uint8)
        message[:_HEADER] = _length_bytes(len(mine))
        if len(mine) <= room:
            message[_HEADER : _HEADER + len(mine)] = np.frombuffer(mine, np.uint8)
        everyone = self._gathered(message)
        lengths = [_length(each[:_HEADER]) for each in everyone]
        if max(lengths) <= room:
            return [each[_HEADER : _HEADER + length].tobytes() for each, length in zip(everyone, lengths, strict=True)]
        self._room[kind] = longest = max(lengths)
        message = np.zeros(longest, np.uint8)
        message[: len(mine)] = np.frombuffer(mine, np.uint8)
        return [each[:length].tobytes() for each, length in zip(self._gathered(message), lengths, strict=True)]

    def send(self, message: bytes) -> None:
        """As rank 0: send a message to all others."""
        first = np.zeros(_HEADER + _SHORT, np.uint8)
        first[:_HEADER] = _length_bytes(len(message))
        short = message[:_SHORT]
        first[_HEADER : _HEADER + len(short)] = np.frombuffer(short, np.uint8)
        self._broadcast(first)
        if len(message) > _SHORT:
            self._broadcast(np.frombuffer(message[_SHORT:], np.uint8).copy())

    def receive(self) -> bytes:
        """As any other rank: wait for a message from rank 0."""
        first = self._broadcast(np.zeros(_HEADER + _SHORT, np.uint8))
        length = _length(first[:_HEADER])
        if length <= _SHORT:
            return first[_HEADER : _HEADER + length].tobytes()
        rest = self._broadcast(np.zeros(length - _SHORT, np.uint8))
        return first[_HEADER:].tobytes() + rest.tobytes()

    def close(self) -> None:
        """Leave the group, once no rank waits for this one any more."""
        dist.destroy_process_group()

    def _gathered(self, message: Array) -> Array:
        everyone = np.zeros((self.ranks, len(message)), np.uint8)
        self.gather(torch.from_numpy(message), torch.from_numpy(everyone))
        return everyone

    def _broadcast(self, message: Array) -> Array:
        with _others_may_be_lost(self.place):
            dist.broadcast(torch.from_numpy(message), 0)
        return message


def _meeting_point(place: RankPlace) -> TCPStore:
    serves = place.rank == 0 and not place.is_served
    try:
        return TCPStore(place.host, place.port, place.ranks, is_master=serves, timeout=_JOIN, wait_for_workers=False)
    except RuntimeError as error:
        if serves:
            raise RanksMisconfigured(
                f"Rank 0 cannot listen at {place.host}:{place.port}: the port is taken, or the address is not of this "
                f"machine. Choose another port (MASTER_PORT, or --master-port of torchrun)."
            ) from error
        raise RanksMisconfigured(
            f"Rank {place.rank} does not reach rank 0 at {place.host}:{place.port}. Start all {place.ranks} ranks, and "
            f"let them connect to that port."
        ) from error


@contextmanager
def _others_may_be_lost(place: RankPlace) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # Without the place in the source of gloo, and its advice.
        cause = re.sub(r"^\[\S+:\d+\] ", "", str(error)).partition(". ")[0].partition("\n")[0]
        raise RankLost(f"Rank {place.rank} lost the connection to another rank, which has ended ({cause}).") from error


def _length_bytes(length: int) -> Array:
    return np.frombuffer(length.to_bytes(_HEADER, "little"), np.uint8)


def _length(header: Array) -> int:
    return int.from_bytes(header.tobytes(), "little")
