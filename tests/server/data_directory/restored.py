"""A restored backup compared, bit by bit, with the fold of the same records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.server.clients import ScriptedClient, join_request
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.server.data_directory.backup_manifest import BackupManifest
from rl4sys.server.data_directory.directory_check import check_directory
from rl4sys.server.data_directory.restore import restore
from rl4sys.wire.generated import status_pb2

OPTIONS = ServiceOptions(workers="threads", restart_seconds=0.01)


def require_equal_bits(backup: Path, place: Path, method: tuple[str, dict[str, Any]], name: str = "a") -> int:
    """Restore a backup and serve it: it has the weights of its records, and continues with them; returns how many."""
    manifest, _ = restore(backup, place, 0.0)
    records = manifest.learners[name].records
    assert check_directory(place).findings == []
    service = TrainingService(place, OPTIONS)
    try:
        transport = InProcessTransport(service)
        client = ScriptedClient(transport, join_request(name, method))
        expected = local_learner(method, records, name).store.newest
        wait_for_version(client, expected.number)
        assert transport.status(status_pb2.StatusRequest(), 5.0).learners[0].version == expected.number
        np.testing.assert_array_equal(client.weights(), expected.blob)
        if records:
            assert client.push(range(records)).repeated_segments == records
        client.push(range(records, records + 4))
        later = local_learner(method, records + 4, name).store.newest
        wait_for_version(client, later.number)
        np.testing.assert_array_equal(client.weights(), later.blob)
        assert not transport.status(status_pb2.StatusRequest(), 5.0).learners[0].problem
    finally:
        service.drain()
    return records


def learner_records(backup: Path, name: str = "a") -> int:
    """How many records a backup has of a learner."""
    return BackupManifest.read(backup).learners[name].records
