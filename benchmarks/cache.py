"""Hit rates of the cache that learns (`cpp/examples/cache.cpp`), compared with LRU, S3-FIFO, Belady's bound and others.

Run `make cpp` and `python benchmarks/cache.py`; `--trace OLTP.lis.zst --plot oltp.png` serves and draws your own.
Each seed has its own server and learner, which learns while the trace is served once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from serving import serving

ROOT = Path(__file__).parents[1]
BUILD = Path(os.environ.get("RL4SYS_CPP_BUILD", ROOT / "cpp" / "build" / "release"))
EXAMPLES = ROOT / "cpp" / "examples"


def serve_trace(seed: int, arguments: list[str]) -> dict[str, Any]:
    """The report of the program, with a learner and samples of this seed."""
    program = BUILD / "examples" / "cache"
    if not program.is_file():
        raise SystemExit(f"{program} is missing. Run `make cpp` first.")
    settings = json.loads((EXAMPLES / "cache.json").read_text()) | {"seed": seed}
    with serving() as server, tempfile.TemporaryDirectory() as place:
        config = Path(place, "cache.json")
        config.write_text(json.dumps(settings))
        options = ["--server", server.address, "--config", str(config), "--seed", str(seed), "--json"]
        done = subprocess.run([str(program), *arguments, *options], stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def smallest_lead(report: dict[str, Any]) -> float:
    """Points by which the learned cache is ahead of LRU, in its worst block after the first."""
    rates = report["hit_rates"]
    blocks = zip(rates["learned"]["blocks"], rates["LRU"]["blocks"], strict=True)
    return min((learned - lru for learned, lru in list(blocks)[1:]), default=float("nan"))


def show(seed: int, report: dict[str, Any]) -> None:
    """One line for the caches that do not learn, and one for the one that does."""
    learned = report["learned"]
    print(f"seed {seed}")
    for part in ("second_half", "all"):
        rates = [f"{name} {rates[part]:.2f}" for name, rates in report["hit_rates"].items()]
        print(f"  hit rate in %, {part.replace('_', ' '):12}{'  '.join(rates)}")
    print(f"  smallest lead over LRU after the first block: {smallest_lead(report):.2f} points")
    print(f"  act: median {learned['act_median_us']:.2f} µs, p99 {learned['act_p99_us']:.2f} µs")
    share = f"{learned['guarded_evictions']:,} of {learned['evictions']:,} evictions"
    print(f"  guard: {learned['guard_activations']} times, {share}; versions {learned['version']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trace", help="a trace, plain or .zst; otherwise one is generated")
    parser.add_argument("--capacity", default="1000", help="pages in the cache (%(default)s)")
    parser.add_argument("--rate", default="20000", help="requests a second (%(default)s)")
    parser.add_argument("--lag", default="0", help="evictions before a new version is waited for; 0 for never")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--plot", type=Path, help="draw the first seed into this PNG file")
    parser.add_argument("--json", action="store_true", help="print the reports as one JSON object by seed")
    options = parser.parse_args()
    arguments = ["--capacity", options.capacity, "--rate", options.rate, "--lag", options.lag]
    arguments += ["--trace", options.trace] if options.trace else []
    reports = {}
    for seed in options.seeds:
        reports[seed] = serve_trace(seed, arguments)
        if not options.json:
            show(seed, reports[seed])
    if options.json:
        print(json.dumps(reports))
    else:
        halves = [report["hit_rates"]["learned"]["second_half"] for report in reports.values()]
        print(
            f"learned, second half: mean {statistics.fmean(halves):.2f} %, from {min(halves):.2f} to {max(halves):.2f}"
        )
    if options.plot:
        draw = [sys.executable, str(EXAMPLES / "plot_cache.py"), "-", "--out", str(options.plot)]
        subprocess.run(
            draw, input=json.dumps(reports[options.seeds[0]]), text=True, check=True, stdout=subprocess.DEVNULL
        )


if __name__ == "__main__":
    main()
