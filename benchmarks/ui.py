"""The pages of `rl4sys ui` with 10,000 runs and three servers, in a process of its own: time to the first page and to
its first paint in a browser, a filter, a comparison of 50 runs, a new line of metrics, 10,000 live updates, page
weight, memory and idle CPU time. Each figure is printed with its limit, met or missed. Needs Debian's chromium.

.venv/bin/python benchmarks/ui.py [--json] [--runs 10000] [--updates 10000] [--idle-seconds 20]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import yaml

from rl4sys.laboratory.run_index.index import open_index
from serving import serving as server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GROUPS, SEEDS, POINTS = 5, 10, 10_000
ROUNDS = 7
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
LIMITS = {
    "first page, s": 1.0,
    "first contentful paint, s": 1.0,
    "a filter until it is shown, s": 0.3,
    "a filter, s": 0.3,
    "a filter with a sort, s": 0.3,
    "page 100, s": 0.3,
    "comparison, s": 2.0,
    "comparison, CPU s": 2.0,
    "the same again, s": 0.2,
    "a new line to the page, s": 1.0,
    "page weight, KB": 300.0,
    "requests of a page": 20.0,
    "memory with 3 servers, MB": 150.0,
    "memory after updates, +%": 10.0,
    "heap of the page after updates, +%": 10.0,
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


def fill(root: Path, runs: int) -> None:
    """Short runs, and five groups of ten long ones."""
    chance = random.Random(0)
    for number in range(max(0, runs - GROUPS * SEEDS)):
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
        self._host, self.url = host, f"http://{host}"
        self._cookie = ""
        self._cookie = self.get(f"/{query}")[2]["set-cookie"].partition(";")[0]

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the session."""
        name, _, value = self._cookie.partition("=")
        return name, value

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
def serving(directory: Path, servers: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], Pages]]:
    command = [sys.executable, "-m", "rl4sys", "ui", "--runs", "runs", "--listen", "127.0.0.1:0"]
    command += [word for address in servers for word in ("--server", address)]
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


def share_of_a_core(process: subprocess.Popen[str], seconds: float) -> float:
    before = cpu_seconds(process)
    time.sleep(seconds)
    return 100 * (cpu_seconds(process) - before) / seconds


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


@contextmanager
def browser_page(browser: Browser, pages: Pages) -> Iterator[Page]:
    """An empty tab that is signed in."""
    context = browser.new_context()
    name, value = pages.cookie
    context.add_cookies([{"name": name, "value": value, "url": pages.url}])
    try:
        yield context.new_page()
    finally:
        context.close()


def paint(browser: Browser, pages: Pages) -> tuple[float, float]:
    """Seconds until a browser paints the page of runs, and until a filter that is typed has changed the table."""
    paints, filters = [], []
    for _ in range(ROUNDS):
        with browser_page(browser, pages) as page:
            page.goto(f"{pages.url}/runs")
            page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
            paints.append(
                page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1e3
            )
            filters.append(
                page.evaluate(
                    """() => new Promise((shown) => {
                        const field = document.getElementById('conditions'), began = performance.now();
                        new MutationObserver(() => requestAnimationFrame(() => shown(performance.now() - began)))
                            .observe(document.getElementById('table'), {subtree: true, childList: true});
                        field.value = 'id=long-0-*';
                        field.dispatchEvent(new Event('input', {bubbles: true}));
                    })"""
                )
                / 1e3
            )
    return statistics.median(paints), statistics.median(filters)


def run_updates(
    process: subprocess.Popen[str], browser: Browser, pages: Pages, root: Path, updates: int
) -> tuple[float, float]:
    """Growth in percent of the process and of the heap of a run's page, from a tenth of the live updates to all."""
    metrics = root / "long-1-seed0" / "metrics.jsonl"
    with browser_page(browser, pages) as page:
        page.goto(f"{pages.url}/run/runs/{metrics.parent.name}")
        page.wait_for_selector(".plot canvas")
        session, measured, step = page.context.new_cdp_session(page), [], 300_000
        for count in (updates // 10, updates - updates // 10):
            for _ in range(count):
                step += 10
                with metrics.open("a") as file:
                    file.write(line(step, float(step)))
                time.sleep(0.01)
            page.wait_for_function(f"() => document.querySelector('.plot').ariaLabel.includes('{step:,}')")
            session.send("HeapProfiler.collectGarbage")
            measured.append((memory(process), session.send("Runtime.getHeapUsage")["usedSize"]))
    (memory_first, heap_first), (memory_last, heap_last) = measured
    return 100 * (memory_last / memory_first - 1), 100 * (heap_last / heap_first - 1)


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


def measure(directory: Path, servers: Sequence[str], browser: Browser, options: argparse.Namespace) -> dict[str, float]:
    root = directory / "runs"
    compared = f"/compare?filter={quote('name=algorithm*')}"
    with serving(directory, servers) as (process, pages):
        found = {"first page, s": pages.timed("/runs")}
        idle = share_of_a_core(process, options.idle_seconds)
        found["first contentful paint, s"], found["a filter until it is shown, s"] = paint(browser, pages)
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
        pages.timed("/fleet")
        found["memory with 3 servers, MB"] = memory(process)
        if options.updates:
            grown = run_updates(process, browser, pages, root, options.updates)
            found["memory after updates, +%"], found["heap of the page after updates, +%"] = grown
        found["idle CPU, %"] = idle
        events = pages.stream("/runs/live")
        next(events)
        found["CPU with a page open, %"] = share_of_a_core(process, options.idle_seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--runs", type=int, default=10_000, help="runs in the index")
    parser.add_argument(
        "--updates", type=int, default=10_000, help="lines of metrics that a page shows live; 0 to leave them out"
    )
    parser.add_argument("--idle-seconds", type=float, default=20.0, help="how long CPU time is measured")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fill(directory / "runs", options.runs)
        servers = [stack.enter_context(server("--workers", "threads")).address for _ in range(3)]
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(_FLAGS))
        stack.callback(browser.close)
        found = measure(directory, servers, browser, options)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        verdict = "met" if value <= LIMITS[name] else "missed"
        print(f"{name:<36} {value:>9.3f}   at most {LIMITS[name]:g}: {verdict}")


if __name__ == "__main__":
    main()
