"""Segments and batches: experience in columns."""

from rl4sys.experience.batches import Sequences, Transitions
from rl4sys.experience.schema import ArraySpec, SchemaMismatch, SegmentSchema
from rl4sys.experience.segment import Array, Arrays, DecidedBy, Ending, Segment, StreamKey
from rl4sys.experience.segment_pack import SegmentPack

__all__ = [
    "Array",
    "ArraySpec",
    "Arrays",
    "DecidedBy",
    "Ending",
    "SchemaMismatch",
    "Segment",
    "SegmentPack",
    "SegmentSchema",
    "Sequences",
    "StreamKey",
    "Transitions",
]
