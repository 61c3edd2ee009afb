from __future__ import annotations

import hashlib
from pathlib import Path

import rl4sys.ui

VENDOR = Path(rl4sys.ui.__file__).parent / "static" / "vendor"


def test_vendored_files_have_their_recorded_hashes() -> None:
    lines = (VENDOR / "SHA256SUMS").read_text().splitlines()
    recorded = {name: digest for digest, name in (line.split() for line in lines)}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.glob("uPlot*")}
    assert found == recorded
    assert "uPlot.LICENSE" in found
