"""Durable records: append-only logs that survive crashes, their readers, and the outbox of a client."""

from rl4sys.records.deduplication import Deduplication
from rl4sys.records.disk_outbox import DiskOutbox, fresh_epoch
from rl4sys.records.durability import Durability
from rl4sys.records.errors import (
    Backlogged,
    LogBroken,
    LogClosed,
    LogFull,
    LogInUse,
    RecordsDamaged,
    RecordsGone,
)
from rl4sys.records.files import DiskFiles, Files
from rl4sys.records.group_commit import DurableLog
from rl4sys.records.memory_files import MemoryFiles
from rl4sys.records.outbox import Offer, OfferOutcome, Outbox, OutboxLimits, Overflow, Parcel
from rl4sys.records.reader import Record, RecordReader, verify
from rl4sys.records.record_log import RecordLog

__all__ = [
    "Backlogged",
    "Deduplication",
    "DiskFiles",
    "DiskOutbox",
    "Durability",
    "DurableLog",
    "Files",
    "LogBroken",
    "LogClosed",
    "LogFull",
    "LogInUse",
    "MemoryFiles",
    "Offer",
    "OfferOutcome",
    "Outbox",
    "OutboxLimits",
    "Overflow",
    "Parcel",
    "Record",
    "RecordLog",
    "RecordReader",
    "RecordsDamaged",
    "RecordsGone",
    "fresh_epoch",
    "verify",
]
