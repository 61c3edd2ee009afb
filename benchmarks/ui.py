"""The pages of `rl4sys ui` with 10,000 runs: time to the first page, a filter, a comparison of 50 runs, a new line of
metrics, page weight, memory and idle CPU time, in a process of its own.

.venv/bin/python benchmarks/ui.py [--json]
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import yaml

from rl4sys.laboratory.run_index.index import open_index

RUNS = 10_000
GROUPS, SEEDS, POINTS = 5, 10, 10_000
ROUNDS = 7
IDLE_SECONDS = 20.0
LIMITS = {
    "first page, s": 1.0,
    "a filter, s": 0.3,
    "a filter with a sort, s": 0.3,
    "page 100, s": 0.3,
    "comparison, s": 2.0,
    "comparison, CPU s": 2.0,
    "the same again, s": 0.2,
    "a new line to the page, s": 1.0,
    "page weight, KB": 300.0,
    "requests of a page": 20.0,
    "memory, MB": 150.0,
    "idle CPU, %": 1.0,
    "CPU with a page open, %": 3.0,
}
"""What `make bench` compares with; the last is not a gate of the project but shows what watching costs."""


def write_run(path: Path, algorithm: str, seed: int, lines: list[str], last: float) -> None:
    path.mkdir(parents=True)
    config = {
        "experiment": {"name": None, "seed": seed},
        "algorithm": {"name": algorithm, "lr": 1e-3},
        "environment": {"name": "CartPole-v1"},
        "training": {"total_timesteps": 100_000},
    }
    (path / "config.yaml").write_text(yaml.safe_dump(config))
    manifest = {"seed": seed, "config": f"{algorithm:0<64}", "git": {"revision": "0123456789abcdef", "dirty": False}}
    (path / "manifest.json").write_text(json.dumps(manifest))
    (path / "metrics.jsonl").write_text("".join(lines))
    process = {"host": "lab", "pid": 1, "birth": 1, "created": 1.8e9 - 60 * seed, "started": 1.8e9, "ended": 1.8e9 + 60}
    (path / "process.json").write_text(json.dumps(process | {"cause": None, "heard": None}))
    result = {"steps": 100_000, "finished": True, "evaluation": last, "best": last, "seconds": 1.0, "fingerprint": {}}
    (path / "result.json").write_text(json.dumps(result))


def line(step: int, value: float) -> str:
    return json.dumps({"step": step, "metrics": {"evaluation/return": value}, "timing": {"seconds": step / 1e3}}) + "\n"


def fill(root: Path) -> None:
    """Ten thousand short runs, and five groups of ten long ones."""
    chance = random.Random(0)
    for number in range(RUNS - GROUPS * SEEDS):
        value = float(number % 500)
        write_run(root / f"ppo-CartPole-v1-seed{number}", "ppo", number, [line(100_000, value)], value)
    for group in range(GROUPS):
        for seed in range(SEEDS):
            lines = [line(10 * step, chance.gauss(step / 100, 10)) for step in range(1, POINTS + 1)]
            write_run(root / f"long-{group}-seed{seed}", f"algorithm{group}", seed, lines, POINTS / 100)
    with open_index(root):
        pass


class Pages:
    """A browser that is signed in, as far as the server can see."""

    def __init__(self, link: str) -> None:
        host, _, query = link.removeprefix("http://").partition("/")
        self._host = host
        self._cookie = ""
        self._cookie = self.get(f"/{query}")[2]["set-cookie"].partition(";")[0]

    def get(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(self._host, timeout=60)
        try:
            connection.request("GET", path, headers={"Cookie": self._cookie, "Accept": "text/html"})
            answer = connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def timed(self, path: str) -> float:
        before = time.perf_counter()
        status, _, _ = self.get(path)
        if status != 200:
            raise RuntimeError(f"{path}: {status}")
        return time.perf_counter() - before

    def stream(self, path: str) -> Iterator[bytes]:
        connection = http.client.HTTPConnection(self._host, timeout=60)
        connection.request("GET", path, headers={"Cookie": self._cookie})
        yield from connection.getresponse()


@contextmanager
def serving(directory: Path) -> Iterator[tuple[subprocess.Popen[str], Pages]]:
    command = [sys.executable, "-m", "rl4sys", "ui", "--runs", "runs", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        if found is None:
            raise RuntimeError("the pages did not start")
        yield process, Pages(found[0])
    finally:
        process.terminate()
        process.wait()


def memory(process: subprocess.Popen[str]) -> float:
    """Resident memory in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share_of_a_core(process: subprocess.Popen[str]) -> float:
    before = cpu_seconds(process)
    time.sleep(IDLE_SECONDS)
    return 100 * (cpu_seconds(process) - before) / IDLE_SECONDS


def new_line(pages: Pages, root: Path) -> float:
    """Seconds from a line of metrics to its event."""
    run, delays = root / "long-0-seed0", []
    events = pages.stream(f"/run-live/runs/{run.name}?metric=evaluation/return")
    for _ in range(ROUNDS):
        while not next(events).startswith((b"data: ", b": ")):
            pass
        before = time.perf_counter()
        with (run / "metrics.jsonl").open("a") as file:
            file.write(line(200_000, 1.0))
        while not next(events).startswith(b"event: points"):
            pass
        delays.append(time.perf_counter() - before)
    return max(delays)


def weight(pages: Pages, path: str) -> tuple[float, int]:
    """KB and number of requests of a page with all that it loads, modules of its scripts included."""
    seen: dict[str, int] = {}
    waiting = [path]
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        _, body, headers = pages.get(address)
        seen[address] = len(body)
        text = body.decode("utf-8", "replace")
        if headers["content-type"].startswith("text/html"):
            waiting += re.findall(r'(?:src|href)="(/static/[^"]+)"', text)
            waiting += [each.replace("&amp;", "&") for each in re.findall(r'data-curves="([^"]+)"', text)]
        elif address.endswith(".js") and "/vendor/" not in address:
            waiting += [
                f"/static/{name}"
                for name in re.findall(r'from "\./([^"]+)"|import "\./([^"]+)"', text)
                for name in name
                if name
            ]
    return sum(seen.values()) / 1e3, len(seen)


def measure(directory: Path) -> dict[str, float]:
    root = directory / "runs"
    compared = f"/compare?filter={quote('name=algorithm*')}"
    with serving(directory) as (process, pages):
        found = {"first page, s": pages.timed("/runs")}
        idle = share_of_a_core(process)
        for name, path in {
            "a filter, s": f"/runs?fragment=table&filter={quote('return>450 algorithm=ppo')}",
            "a filter with a sort, s": f"/runs?fragment=table&sort=best&filter={quote('id=*seed1*')}",
            "page 100, s": "/runs?fragment=table&page=100",
        }.items():
            found[name] = statistics.median(pages.timed(path) for _ in range(ROUNDS))
        before = cpu_seconds(process)
        found["comparison, s"] = pages.timed(compared) + pages.timed(compared.replace("?", "/curves.json?"))
        found["comparison, CPU s"] = cpu_seconds(process) - before
        again = compared.replace("?", "/curves.json?")
        found["the same again, s"] = statistics.median(
            pages.timed(compared) + pages.timed(again) for _ in range(ROUNDS)
        )
        found["a new line to the page, s"] = new_line(pages, root)
        sizes = [weight(pages, path) for path in ("/runs", compared, "/run/runs/long-0-seed0", "/sweeps")]
        found["page weight, KB"] = max(size for size, _ in sizes)
        found["requests of a page"] = float(max(count for _, count in sizes))
        found["memory, MB"] = memory(process)
        found["idle CPU, %"] = idle
        events = pages.stream("/runs/live")
        next(events)
        found["CPU with a page open, %"] = share_of_a_core(process)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        fill(Path(directory) / "runs")
        found = measure(Path(directory))
    if "--json" in sys.argv:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        print(f"{name:<28} {value:>9.3f}   at most {LIMITS[name]:g}")


if __name__ == "__main__":
    main()
