from __future__ import annotations

import ctypes
import os
import signal
import threading
from pathlib import Path

import pytest
from tests.server.conftest import THREADS

from rl4sys.server import GrpcServer, ServerOptions, serve


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs threads that can be sent signals")
def test_a_signal_delivered_to_a_library_thread_also_ends_the_server(tmp_path: Path) -> None:
    # Like threads of OpenBLAS or gRPC: it runs no Python, so the signal does not wake the main thread.
    sleeping = threading.Thread(target=ctypes.CDLL(None).pause, daemon=True)
    sleeping.start()

    def ready(server: GrpcServer) -> None:
        threading.Timer(0.2, signal.pthread_kill, (sleeping.ident, signal.SIGTERM)).start()

    before = signal.getsignal(signal.SIGTERM)
    serve(ServerOptions("127.0.0.1:0", tmp_path, service=THREADS), ready)
    assert signal.getsignal(signal.SIGTERM) is before
    assert os.path.isdir(tmp_path / "learners")
