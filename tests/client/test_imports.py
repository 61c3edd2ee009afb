from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "pydantic", "ray", "omegaconf", "gymnasium", "yaml", "rl4sys.config")


def test_the_client_imports_no_training_libraries() -> None:
    program = (
        "import sys, rl4sys.client, rl4sys.client.grpc_transport;"
        "rl4sys.client.load_settings({'client_id': 'c', 'algorithm': 'ppo'});"
        f"print(*sorted(sys.modules.keys() & set({HEAVY!r})))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_a_client_within_the_servers_process_needs_no_grpc() -> None:
    program = "import sys, rl4sys.client; print('grpc' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
