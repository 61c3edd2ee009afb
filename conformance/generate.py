"""Writes the golden vectors, or with --check reports whether the committed ones are current.

Run `python conformance/generate.py` after a new op or head, and commit what changed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import recordings
import transcripts
from dreamer_cases import dreamer_cases
from episode_cases import episode_cases
from head_cases import head_cases
from noise_cases import noise_cases, same
from op_cases import op_cases
from patch_cases import patch_cases, patch_differences, write_patches
from push_cases import push_differences, write_pushes
from vectors import Case, differences, read, write

VECTORS = Path(__file__).parent / "vectors"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the written files; change nothing")
    check = parser.parse_args().check
    episodes = [*episode_cases(), *dreamer_cases()]
    policies = {"ops": list(op_cases()), "heads": list(head_cases()), "episodes": episodes}
    noise = noise_cases()
    if not check:
        VECTORS.mkdir(exist_ok=True)
        for name, cases in policies.items():
            write(VECTORS / name, cases)
        (VECTORS / "noise.json").write_text(json.dumps(noise, indent=1) + "\n")
        transcripts.write(VECTORS / "transcripts.json")
        recordings.write(VECTORS / "recordings.json")
        write_patches(VECTORS / "patches", patch_cases())
        write_pushes(VECTORS / "pushes.json")
        return 0
    problems = list(_problems(policies, noise))
    if problems:
        advice = "Run python conformance/generate.py if the change is meant."
        sys.stderr.write("\n".join([*problems, advice, ""]))
    return 1 if problems else 0


def _problems(policies: dict[str, list[Case]], noise: dict[str, Any]) -> Iterator[str]:
    for name, cases in policies.items():
        for difference in differences(read(VECTORS / name), cases):
            yield f"{name}: {difference}"
    if not same(json.loads((VECTORS / "noise.json").read_text()), noise):
        yield "noise: noise.json differs"
    if json.loads((VECTORS / "recordings.json").read_text()) != {"recordings": recordings.recordings()}:
        yield "recordings: recordings.json differs"
    for difference in transcripts.differences(VECTORS / "transcripts.json"):
        yield f"transcripts: {difference}"
    for difference in patch_differences(VECTORS / "patches", patch_cases()):
        yield f"patches: {difference}"
    for difference in push_differences(VECTORS / "pushes.json"):
        yield f"pushes: {difference}"


if __name__ == "__main__":
    sys.exit(main())
