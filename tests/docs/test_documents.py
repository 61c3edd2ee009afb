import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rl4sys.cli.app import app

from .documents import GUIDES, PAGES, ROOT, anchors, blocks, commands, files, links

COMMANDS = [command for guide in GUIDES for command in commands(guide)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the guides tell their readers to write."""
    directory = tmp_path_factory.mktemp("desk")
    (directory / "examples").symlink_to(ROOT / "examples")
    for name, text in files(ROOT / "docs" / "quickstart.md"):
        (directory / name).write_text(text)
    return directory


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_quoted_command_is_understood(command: list[str], desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    harmless = "--dry-run" if command[0] == "train" else "--help"

    outcome = CliRunner().invoke(app, [*command, harmless])

    assert outcome.exit_code == 0, outcome.output or outcome.exception


def test_the_configuration_reference_is_current() -> None:
    # In a process of its own: what other tests register does not belong into the reference.
    script = ROOT / "docs" / "write_reference.py"
    check = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)

    assert check.returncode == 0, check.stderr


@pytest.mark.slow
def test_the_python_in_readme_and_policies_runs(tmp_path: Path) -> None:
    pages = (ROOT / "README.md", ROOT / "docs" / "policies.md")
    program = "\n".join(block for page in pages for block in blocks(page, "python"))

    finished = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)

    assert finished.returncode == 0, finished.stderr
