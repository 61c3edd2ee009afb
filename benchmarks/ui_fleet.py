"""The fleet page: how soon it shows a killed client, what it costs a server, and whether memory stays flat.

Run `python benchmarks/ui_fleet.py`; it needs the extras `ui` and `dev`, and Debian's chromium. Three real servers, the
first with three clients in processes of their own; `rl4sys ui` in another, and a headless browser.

- killed client: seconds from `kill -9` until the open page shows that the client has left, and the part of it after the
  server itself says so;
- cost: CPU time of a server for one Status call, as a share of one core at one call every two seconds, and how many
  calls it gets from five open pages;
- idle: CPU time and resident memory of `rl4sys ui` with three servers and no page, and with five pages;
- updates: resident memory of `rl4sys ui` and the JavaScript heap of the page after the first 1,000 live updates and
  after all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from serving import serving

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.processes import free_port
from tests.ui.small_fleet import SmallFleet

from rl4sys.ui.page_address import PageAddress
from rl4sys.ui.settings import UiSettings
from rl4sys.ui.ui_server import serve
from rl4sys.wire.generated import status_pb2

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

_TICKS = os.sysconf("SC_CLK_TCK")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
_PAGES = 5


class PageProcess:
    """`rl4sys ui` in a process of its own."""

    def __init__(self, servers: list[str], seconds: float) -> None:
        self.port = free_port()
        command = [sys.executable, __file__, "--serve", str(self.port), str(seconds), *servers]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._link = self._printed()

    def sign_in(self, browser: Browser) -> BrowserContext:
        """A browser profile with a session."""
        context = browser.new_context()
        page = context.new_page()
        page.goto(self._link)
        page.wait_for_url("**/fleet")
        page.close()
        self._link = self._printed()
        return context

    def page(self, context: BrowserContext) -> Page:
        """The fleet page, once it is live."""
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{self.port}/fleet")
        page.wait_for_selector(".curve canvas", state="attached")
        return page

    def _printed(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mb(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", lines)[0]) / 1024

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


@contextmanager
def page_process(servers: list[str], seconds: float = 2.0) -> Iterator[PageProcess]:
    process = PageProcess(servers, seconds)
    try:
        yield process
    finally:
        process.close()


def killed_clients(fleet: SmallFleet, browser: Browser, ui: PageProcess, trials: int) -> None:
    context = ui.sign_in(browser)
    page = ui.page(context)
    whole, after = [], []
    for _ in range(trials):
        page.wait_for_selector("text=3 connected clients")
        knows = _Knows(fleet)
        began = time.monotonic()
        fleet.kill_client("node-2")
        page.wait_for_selector("tr.gone:has-text('node-2')")
        shown = time.monotonic()
        whole.append(shown - began)
        after.append(shown - knows.when())
        fleet.start_client("node-2")
    context.close()
    print(
        f"killed client → page: median {_median(whole):.2f} s, longest {max(whole):.2f} s; after the server knows: "
        f"longest {max(after):.2f} s over {trials} kills (≤ 3 s: {_met(max(after) <= 3)})"
    )


class _Knows:
    """When the server itself says that a client has left."""

    def __init__(self, fleet: SmallFleet) -> None:
        self._fleet, self._at = fleet, 0.0
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while True:
            status = self._fleet.server.transport.status(status_pb2.StatusRequest(), 10.0)
            if any(client.HasField("disconnected_seconds") for client in status.clients):
                self._at = time.monotonic()
                return
            time.sleep(0.02)

    def when(self) -> float:
        self._thread.join()
        return self._at


def server_cost(fleet: SmallFleet, browser: Browser, ui: PageProcess, seconds: float) -> None:
    """Clients are away meanwhile, so that only calls of Status take time; the status still lists them."""
    calls = 400
    process = fleet.server.process.pid
    before = _cpu(process)
    time.sleep(seconds)
    idle = (_cpu(process) - before) / seconds
    before, began = _cpu(process), time.monotonic()
    for _ in range(calls):
        fleet.server.transport.status(status_pb2.StatusRequest(), 10.0)
    each = (_cpu(process) - before - idle * (time.monotonic() - began)) / calls
    context = ui.sign_in(browser)
    pages = [ui.page(context) for _ in range(_PAGES)]
    first, began = _status_calls(fleet), time.monotonic()
    time.sleep(seconds)
    rate = (_status_calls(fleet) - first - 1) / (time.monotonic() - began)
    del pages
    context.close()
    share = each * rate
    print(
        f"cost for a server: {1e3 * each:.2f} ms of CPU a call, {rate:.2f} calls a second from {_PAGES} pages: "
        f"{share:.2%} of a core (≤ 1 %: {_met(share <= 0.01)})"
    )


def _status_calls(fleet: SmallFleet) -> int:
    status = fleet.server.transport.status(status_pb2.StatusRequest(), 10.0)
    return sum(call.count for call in status.server.calls if call.method == "Status")


def idle_process(browser: Browser, ui: PageProcess, seconds: float) -> None:
    shares = []
    for count in (0, _PAGES):
        context = ui.sign_in(browser)
        pages = [ui.page(context) for _ in range(count)]
        before = ui.cpu_seconds()
        time.sleep(seconds)
        shares.append((ui.cpu_seconds() - before) / seconds)
        del pages
        context.close()
    print(
        f"rl4sys ui with 3 servers: {ui.memory_mb():.0f} MB (≤ 150: {_met(ui.memory_mb() <= 150)}), "
        f"{shares[0]:.2%} of a core without a page (≤ 1 %: {_met(shares[0] <= 0.01)}), {shares[1]:.2%} with {_PAGES}"
    )


def many_updates(fleet: SmallFleet, browser: Browser, updates: int) -> None:
    with page_process([fleet.server.address], 0.01) as ui:
        context = ui.sign_in(browser)
        page = ui.page(context)
        page.evaluate(
            """() => {
                window.updates = 0;
                const seen = new MutationObserver(() => { window.updates += 1; });
                seen.observe(document.getElementById('live'), {subtree: true, childList: true, characterData: true});
            }"""
        )
        sessions = context.new_cdp_session(page)
        measured = []
        for wanted in (updates // 10, updates):
            page.wait_for_function(f"() => window.updates >= {wanted}", timeout=3_600_000, polling=1_000)
            heap = _heap_mb(page, sessions)
            nodes = page.evaluate("() => document.getElementsByTagName('*').length")
            measured.append((ui.memory_mb(), heap, nodes))
        context.close()
    (memory, heap, nodes), (memory_end, heap_end, nodes_end) = measured
    growth = max(memory_end / memory, heap_end / heap) - 1
    print(
        f"{updates:,} updates: process {memory:.0f} → {memory_end:.0f} MB, page {heap:.2f} → {heap_end:.2f} MB, "
        f"{nodes} → {nodes_end} elements (≤ +10 %: {_met(growth <= 0.1)})"
    )


def _heap_mb(page: Page, session: CDPSession) -> float:
    """What is in use. A collection leaves some garbage behind, more or less by chance: the least of ten counts."""
    found = []
    for _ in range(10):
        session.send("HeapProfiler.collectGarbage")
        found.append(session.send("Runtime.getHeapUsage")["usedSize"] / 1e6)
        page.wait_for_timeout(300)
    return min(found)


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=10_000, help="0 to leave them out")
    parser.add_argument("--kills", type=int, default=5, help="0 to leave them out")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long CPU time is measured; 0 to leave it out")
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        port, seconds, *servers = options.serve
        settings = UiSettings((), tuple(servers), PageAddress(f"127.0.0.1:{port}"), ask_seconds=float(seconds))
        serve(settings, lambda link: print(link, flush=True))
        return
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="rl4sys-bench-") as place:
        fleet = SmallFleet(Path(place))
        stack.callback(fleet.close)
        fleet.start()
        others = [stack.enter_context(serving("--workers", "threads")).address for _ in range(2)]
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(_FLAGS))
        stack.callback(browser.close)
        if options.kills:
            with page_process([fleet.server.address, *others]) as ui:
                killed_clients(fleet, browser, ui, options.kills)
        if options.updates:
            many_updates(fleet, browser, options.updates)
        if not options.seconds:
            return
        for name in ("node-1", "node-2", "node-3"):
            fleet.kill_client(name)
        with page_process([fleet.server.address, *others]) as ui:
            idle_process(browser, ui, options.seconds)
            server_cost(fleet, browser, ui, options.seconds)


if __name__ == "__main__":
    main()
