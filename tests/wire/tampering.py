"""Damage to messages: byte by byte, or by building invalid ones."""

import random
from collections.abc import Callable

from rl4sys.wire.generated import experience_pb2


def rebuilt(data: bytes, change: Callable[[experience_pb2.Segment], object]) -> bytes:
    """A serialized segment with `change` applied to the message."""
    message = experience_pb2.Segment.FromString(data)
    change(message)
    return message.SerializeToString()


def mutated(data: bytes, chance: random.Random) -> bytes:
    """One to three flips, truncations, insertions, deletions or repetitions."""
    damaged = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(6):
            case 0 if at < len(damaged):
                damaged[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(damaged):
                damaged[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            case 2:
                del damaged[at:]
            case 3:
                damaged[at:at] = chance.randbytes(chance.randint(1, 12))
            case 4:
                del damaged[at : at + chance.randint(1, 8)]
            case _:
                damaged[at:at] = damaged[at : at + chance.randint(1, 40)]
    return bytes(damaged)
