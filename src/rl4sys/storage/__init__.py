"""Runs that move: copies of run directories in object storage, from which any machine can resume them."""

from rl4sys.storage.object_storage import ObjectStorage, StorageUnavailable, is_url, open_storage
from rl4sys.storage.stored_run import NotStored, StoredContents, StoredRun, Superseded, find_stored_runs

__all__ = [
    "NotStored",
    "ObjectStorage",
    "StorageUnavailable",
    "StoredContents",
    "StoredRun",
    "Superseded",
    "find_stored_runs",
    "is_url",
    "open_storage",
]
