"""The documentation site builds without a network, holds every page, and has no dead link."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from rl4sys.cli.commands import COMMANDS

from .built_site import SitePage
from .documents import PAGES, ROOT

pytestmark = pytest.mark.slow
_UNSHARED = ("unshare", "--map-root-user", "--net")
_IS_PERMITTED = shutil.which("unshare") is not None and not subprocess.run([*_UNSHARED, "true"], check=False).returncode
NO_NETWORK = _UNSHARED if _IS_PERMITTED else ()
"""Before a command: without any network, where that is permitted."""


class BuiltSite(NamedTuple):
    """The directory of a site, and the processor time that building it took."""

    directory: Path
    cpu_seconds: float


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """The site, built from the pages in a temporary directory."""
    directory = tmp_path_factory.mktemp("site")
    command = [*NO_NETWORK, sys.executable, ROOT / "docs" / "site" / "build.py", "--into", directory]
    before = _cpu_seconds_of_children()
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return BuiltSite(directory / "site", _cpu_seconds_of_children() - before)


def _cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def site(built: BuiltSite) -> Path:
    """Its directory."""
    return built.directory


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, SitePage]:
    """The built pages by their paths, without those that Doxygen writes and checks by itself."""
    found = (path for path in sorted(site.rglob("*.html")) if "cpp_api" not in path.parts and path.name != "404.html")
    return {path: SitePage(path) for path in found}


def test_the_site_is_built_within_half_a_minute_of_one_core(built: BuiltSite) -> None:
    # Not by the clock: other tests may run beside it.
    assert built.cpu_seconds <= 30.0


def test_every_link_leads_to_a_page_and_an_anchor_that_exist(pages: dict[Path, SitePage]) -> None:
    dead = []
    for page in pages.values():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("#__"):
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].ids):
                dead.append(f"{page.path.name}: {link}")
    assert dead == []


def test_a_browser_loads_nothing_from_another_host(pages: dict[Path, SitePage]) -> None:
    loaded = {name for page in pages.values() for name in page.loaded}
    assert any(name.endswith(".js") for name in loaded)
    assert [name for name in loaded if urlsplit(name).netloc or urlsplit(name).scheme not in ("", "data")] == []


def test_styles_load_nothing_from_another_host(site: Path) -> None:
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert styles
    assert re.findall(r"(?:@import|url\()\s*['\"]?(?:https?:)?//[^)]*", styles) == []


def test_words_of_a_page_can_be_found(site: Path) -> None:
    found = json.loads((site / "search.json").read_text("utf-8"))["items"]
    texts: dict[str, str] = {}
    for each in found:
        page = each["location"].partition("#")[0]
        texts[page] = f"{texts.get(page, '')} {each['title']} {each['text']}"
    words = {
        "sweeps.html": "population",
        "tutorials/canary.html": "the policy agrees with",
        "algorithms/sac.html": "temperature",
        "command_line.html": "--operator-token-file",
        "protocol.html": "PushRequest",
        "python/client.html": "act_many",
    }
    assert {page: word for page, word in words.items() if word not in texts.get(page, "")} == {}
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "cpp_api" not in path.parts}
    assert pages - texts.keys() <= {"404.html"}


def test_the_reference_is_written_from_the_code(site: Path) -> None:
    commands = (site / "command_line.html").read_text("utf-8")
    assert [name for name in COMMANDS if f'id="rl4sys-{name}' not in commands] == []
    assert "--algorithm" in commands
    assert "PushRequest" in (site / "protocol.html").read_text("utf-8")
    assert 'id="rl4sys.client.Agent.act_many"' in (site / "python" / "client.html").read_text("utf-8")


def test_every_page_of_the_project_is_in_the_navigation(site: Path) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    staged = site.with_name("pages")
    names = {page.relative_to(staged).as_posix() for page in staged.rglob("*.md")}
    hidden = {name for name in names if not name.startswith("decisions/") and f" {name}\n" not in navigation}
    assert hidden == set(), "add these to nav in mkdocs.yml"
    assert len(names) > len([page for page in PAGES if "docs" in page.parts])
